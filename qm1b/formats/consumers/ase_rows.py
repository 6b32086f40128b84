"""A row as ASE's databases hold it: energies in eV, positions in Angstrom, forces in eV/Angstrom.

Shape legend: A atoms of a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, FORCE_TO_EV_PER_ANGSTROM, HARTREE_TO_EV
from pyscf_ipu.elements.spellings import SYMBOLS
from qm1b.rows.batch import Batch, Record
from qm1b.rows.dataset import Dataset

PROPERTIES = {
    "lowdin_charges": ("charges_lowdin", 1.0),
    "mayer_bond_orders": ("bond_orders", 1.0),
    "quadrupole": ("quadrupole", BOHR_TO_ANGSTROM**2),
}
"""By their name here, the field of a row and what it is multiplied by."""


@dataclass(frozen=True)
class AseRow:
    """A conformer in ASE's units, and what tells it from others."""

    numbers: Int64[np.ndarray, " A"]
    positions: Float64[np.ndarray, "A 3"]
    """Angstrom."""
    results: dict[str, float | np.ndarray]
    """By ASE's names: energy (eV), dipole (e*Angstrom) [3], charges (Mulliken, e) [A] and, if the
    run has them, magmoms (Mulliken, Bohr magnetons) [A] and forces (eV/Angstrom) [A, 3]."""
    energies: dict[str, float]
    """homo, lumo, gap and, if the level has it, dispersion in eV."""
    properties: dict[str, np.ndarray]
    """lowdin_charges (e) [A], mayer_bond_orders [A, A], quadrupole (e*Angstrom^2) [3, 3]."""
    charge: int
    multiplicity: int
    """2S + 1."""
    smiles: str
    line: int
    conformer: int
    id: str
    """Name in the input, or empty."""

    @property
    def unique_id(self) -> str:
        """32 hexadecimal digits, which ASE wants; the same for the same row."""
        parts = (self.smiles, self.line, self.conformer, self.charge)
        parts += (self.multiplicity,) * (self.multiplicity > 1)
        content = repr(parts).encode() + self.numbers.tobytes() + self.positions.tobytes()
        return hashlib.blake2b(content, digest_size=16).hexdigest()


def ase_rows(batch: Batch) -> Iterator[AseRow]:
    """The rows of a batch in ASE's units."""
    return map(_ase_row, batch.rows())


def _ase_row(row: Record) -> AseRow:
    homo, lumo = row["homo"] * HARTREE_TO_EV, row["lumo"] * HARTREE_TO_EV
    results: dict[str, float | np.ndarray] = {
        "energy": row["energy"] * HARTREE_TO_EV,
        "dipole": row["dipole"] * BOHR_TO_ANGSTROM,
        "charges": row["mulliken_charges"],
    }
    if "spin_populations" in row:
        results["magmoms"] = row["spin_populations"]
    if "forces" in row:
        results["forces"] = row["forces"] * FORCE_TO_EV_PER_ANGSTROM
    energies = {"homo": homo, "lumo": lumo, "gap": lumo - homo}
    if "dispersion" in row:
        energies["dispersion"] = row["dispersion"] * HARTREE_TO_EV
    properties = {n: row[f] * factor for n, (f, factor) in PROPERTIES.items() if f in row}
    return AseRow(
        row["numbers"].astype(np.int64),
        row["positions"].astype(np.float64) * BOHR_TO_ANGSTROM,
        results,
        energies=energies,
        properties=properties,
        multiplicity=row.get("multiplicity", 1),
        **{name: row[name] for name in ("charge", "smiles", "line", "conformer", "id")},
    )


def free_atoms_by_number(source: Dataset) -> list[float]:
    """Energies of the free atoms in eV at the index of their atomic number, 0 for other elements.

    Empty if the run has no such energies.
    """
    known = source.free_atom_energies
    last = max(map(SYMBOLS.index, known), default=-1)
    return [known.get(symbol, 0.0) * HARTREE_TO_EV for symbol in SYMBOLS[: last + 1]]

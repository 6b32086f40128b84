"""Conformers of one molecule together, as the HDF5 layouts of SPICE and TorchMD-Net have them.

Shape legend: M conformers of a group, A atoms of the molecule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from pyscf_ipu.elements.spellings import SYMBOLS
from pyscf_ipu.molecule.smiles import heavy_first
from qm1b.conformers.embedding import GIVEN
from qm1b.errors import UserError
from qm1b.rows import identity
from qm1b.rows.batch import Batch
from qm1b.rows.dataset import Dataset

if TYPE_CHECKING:
    from rdkit import Chem


@dataclass(frozen=True)
class Conformers:
    """Consecutive rows of one molecule, with the same atoms in the same order."""

    rows: Batch

    def __len__(self) -> int:
        """Number of conformers, M."""
        return len(self.rows)

    @property
    def name(self) -> str:
        """A name for an HDF5 group, in the order of the input: the number of the first line.

        Behind it stands a multiplicity above 1.
        """
        spin = int(self.rows["multiplicity"][0]) if "multiplicity" in self.rows else 1
        return f"{int(self.rows['line'][0]):010d}" + f"_{spin}" * (spin > 1)

    @property
    def charge(self) -> int:
        """Total charge in e."""
        return int(self.rows["charge"][0])

    @property
    def numbers(self) -> UInt8[np.ndarray, " A"]:
        """Atomic numbers."""
        return self.rows["numbers"][: self.rows["atom_offset"][1]]

    @property
    def ids(self) -> list[str]:
        """[M] The names in the input, of which SDF entries and frames have one each; or none."""
        ids = [str(each) for each in self.rows["id"]]
        return ids if any(ids) else []

    def per_atom(self, field: str) -> np.ndarray:
        """[M, A] or [M, A, 3] A field of the atoms, in its own unit."""
        values = self.rows[field]
        return values.reshape(len(self), -1, *values.shape[1:])

    @cached_property
    def graph(self) -> Chem.Mol | None:
        """The molecule with all hydrogens, its atoms in the order of the rows.

        None if that order is unknown: RDKit did not make the geometry from the SMILES.
        """
        from rdkit import Chem

        smiles = str(self.rows["smiles"][0])
        parsed = None if self.rows["embedding"][0] == GIVEN else Chem.MolFromSmiles(smiles)
        if parsed is None:
            return None
        graph = Chem.AddHs(parsed)
        order = heavy_first(np.array([atom.GetAtomicNum() for atom in graph.GetAtoms()], np.int64))
        graph = Chem.RenumberAtoms(graph, order.tolist())
        known = [atom.GetAtomicNum() for atom in graph.GetAtoms()] == self.numbers.tolist()
        return graph if known else None

    @property
    def smiles(self) -> str:
        """With all hydrogens and the number of each atom (from 1), if the order is known."""
        from rdkit import Chem

        if self.graph is None:
            return str(self.rows["smiles"][0])
        mapped = Chem.Mol(self.graph)
        for number, atom in enumerate(mapped.GetAtoms(), 1):
            atom.SetAtomMapNum(number)
        return Chem.MolToSmiles(mapped)

    @property
    def formal_charges(self) -> Int64[np.ndarray, " A"]:
        """In e; if the order of the atoms is unknown, the total charge is on the first atom."""
        if self.graph is not None:
            return np.array([atom.GetFormalCharge() for atom in self.graph.GetAtoms()], np.int64)
        charges = np.zeros(len(self.numbers), np.int64)
        charges[0] = self.charge
        return charges

    def formation_energies(self, free: Mapping[str, float]) -> Float64[np.ndarray, " M"]:
        """Total energies minus those of the free atoms, in Hartree: the rows' own column.

        Args:
            free: energies of the free atoms by symbol, in Hartree.

        Raises:
            UserError: an element is missing there.
        """
        for symbol in {SYMBOLS[number] for number in self.numbers} - free.keys():
            raise UserError(
                f"the manifest has no free-atom energy of {symbol}, which is on line "
                f"{int(self.rows['line'][0])}; run qm1b generate again for a new manifest"
            )
        return self.rows["atomisation_energy"]


def molecules(batches: Iterator[Batch]) -> Iterator[Conformers]:
    """The rows in groups, in their order; frames of one molecule that lie apart are two groups."""
    for batch in batches:
        who = identity.numbers(batch).tolist()
        atoms = [batch["numbers"][a:b].tobytes() for a, b in pairwise(batch["atom_offset"])]
        for _, rows in groupby(range(len(batch)), key=lambda row: (who[row], atoms[row])):
            yield Conformers(batch.take(np.array(list(rows))))


def require(source: Dataset, layout: str) -> None:
    """Refuse a run without what the layout must have: forces, and energies of the free atoms.

    Raises:
        UserError: what is missing, and how to get it.
    """
    other = "or export as parquet, aselmdb or schnetpack, which can do without"
    if not source.metadata.get("settings", {}).get("forces"):
        raise UserError(
            f"the layout {layout} must have forces, and the run {source.path} has none; run "
            f"qm1b generate --forces to a new folder, {other}"
        )
    if not source.free_atom_energies:
        raise UserError(
            f"the layout {layout} must have formation energies, and the manifest of {source.path} "
            "has no energies of free atoms (free_atom_energies_hartree), because an older version "
            f"wrote it; run qm1b generate again, {other}"
        )

"""The atomisation energy of rows: their total energy minus that of their free atoms.

It is negative for a bound molecule.  The energies of the free atoms are in the run's manifest; a
row's value must be what they give.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float64, Integer

from pyscf_ipu.elements.spellings import ATOMIC_NUMBERS
from qm1b.rows.batch import Batch, offsets_of
from qm1b.rows.schema import FREE_ATOMS, Row

CONTRADICTION = f"{FREE_ATOMS} give other atomisation energies than the rows have"
"""What to say of a manifest and a shard of which `contradicts` is true."""

TOLERANCE_HARTREE = 1e-6
"""By which a row may differ: machines that share a run may round the free atoms differently."""


def atomisation_energies(
    energy: Float64[np.ndarray, " R"],
    numbers: Integer[np.ndarray, " atoms"],
    atom_offset: Integer[np.ndarray, " ends"],
    free_atoms: Mapping[str, float],
) -> Float64[np.ndarray, " R"]:
    """Energies minus the sums of their free atoms' energies, in Hartree.

    Args:
        energy: [R] Total energies in Hartree.
        numbers: [atoms] Atomic numbers of all rows.
        atom_offset: [R + 1] Where the atoms of each row begin.
        free_atoms: energies in Hartree by symbol.

    Returns:
        [R] NaN where the energy is, or where an element's free atom is not known.
    """
    table = np.full(256, np.nan)  # atomic numbers are uint8
    for symbol, value in free_atoms.items():
        table[ATOMIC_NUMBERS[symbol]] = value
    row = np.repeat(np.arange(len(energy)), np.diff(atom_offset))
    # Unlike differences of a running sum, this adds each row's atoms by themselves.
    return energy - np.bincount(row, weights=table[numbers], minlength=len(energy))


def of_batch(batch: Batch, free_atoms: Mapping[str, float]) -> Float64[np.ndarray, " R"]:
    """The `atomisation_energies` of rows in Hartree."""
    return atomisation_energies(
        batch["energy"], batch["numbers"], batch["atom_offset"], free_atoms=free_atoms
    )


def with_atomisation(rows: Sequence[Row], free_atoms: Mapping[str, float]) -> list[Row]:
    """The rows, each with its atomisation energy."""
    numbers = [row.conformer.numbers for row in rows]
    values = atomisation_energies(
        np.array([row.energy for row in rows], dtype=np.float64),
        np.concatenate([np.zeros(0, np.uint8), *numbers]),
        offsets_of([len(each) for each in numbers]),
        free_atoms=free_atoms,
    )
    return [
        replace(row, atomisation_energy=value)
        for row, value in zip(rows, values.tolist(), strict=True)
    ]


def wrong(batch: Batch, free_atoms: Mapping[str, float]) -> Bool[np.ndarray, " R"]:
    """[R] Rows whose atomisation energy is not what the free atoms give; none of them may be NaN
    where the other is not."""
    stored, expected = batch["atomisation_energy"], of_batch(batch, free_atoms)
    near = np.abs(stored - expected) <= TOLERANCE_HARTREE
    return ~(near | (np.isnan(stored) & np.isnan(expected)))


def contradicts(batch: Batch, free_atoms: Mapping[str, float]) -> bool:
    """Whether rows that have an atomisation energy cannot have it from these free atoms."""
    return bool((wrong(batch, free_atoms) & ~np.isnan(batch["atomisation_energy"])).any())

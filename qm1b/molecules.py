"""Which rows are of one molecule.

A line of SMILES is a molecule of its own, but several SDF entries or XYZ frames may be conformers
of one. It is told by its SMILES, or where there is none by its seed, which then stands for the
bonds (`qm1b.conformers.molecule_seed`).
"""

from __future__ import annotations

import numpy as np

from .batch import Batch


def name_of(smiles: str, seed: int) -> str:
    """What all conformers of a molecule share, whatever their charge."""
    return smiles or f"seed {seed}"


def names(batch: Batch) -> np.ndarray:
    """[R] `name_of` each row; a file of another origin may lack seeds, but then has SMILES."""
    found = batch["smiles"].astype(object)
    if "seed" in batch:
        for i in np.flatnonzero(found == ""):
            found[i] = name_of("", int(batch["seed"][i]))
    return found


def distinct(batch: Batch) -> set[int]:
    """A number for each molecule of a batch, the same in all batches that this process reads.

    Hashes, as the names of millions of molecules would fill the memory. Of a million, two get the
    same one with a probability of 3e-8.
    """
    return set(map(hash, names(batch).tolist()))


def numbers(batch: Batch) -> np.ndarray:
    """[R] The same number for rows of one molecule and charge, from 0 in the batch."""
    _, number = np.unique(names(batch).astype(str), return_inverse=True)
    _, found = np.unique(number * 512 + batch["charge"].astype(int), return_inverse=True)
    return found

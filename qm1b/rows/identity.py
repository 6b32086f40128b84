"""Which rows are of one molecule, and the key that draws rows at random.

Each line of SMILES is a molecule of its own, but several SDF entries or XYZ frames may be
conformers of one molecule. Its SMILES identifies it or, without one, its seed, which is then
derived from the bonds (`qm1b.conformers.embedding.molecule_seed`).
"""

import hashlib

import numpy as np
from jaxtyping import Float, Integer

from qm1b.rows.batch import Batch
from qm1b.rows.schema import Conformer


def name_of(smiles: str, seed: int) -> str:
    """The name that all conformers of a molecule share, whatever their charge."""
    return smiles or f"seed {seed}"


def names(batch: Batch) -> np.ndarray:
    """[R] `name_of` each row; a file of another origin may lack seeds, but then it has SMILES."""
    names = batch["smiles"].astype(object)
    if "seed" in batch:
        for i in np.flatnonzero(names == ""):
            names[i] = name_of("", int(batch["seed"][i]))
    return names


def distinct(batch: Batch) -> set[int]:
    """A number for each molecule of a batch, the same in all batches that this process reads.

    The numbers are hashes, because the names of millions of molecules would fill the memory. Two of
    a million molecules get the same number with a probability of 3e-8.
    """
    return set(map(hash, names(batch).tolist()))


def numbers(batch: Batch) -> np.ndarray:
    """[R] The same number for rows of one molecule, charge and spin, from 0 in the batch."""
    _, numbers = np.unique(names(batch).astype(str), return_inverse=True)
    for name in ("charge", "multiplicity"):
        if name in batch:
            values = 512 * numbers + batch[name].astype(int)
            _, numbers = np.unique(values, return_inverse=True)
    return numbers


def bonds_of(numbers: Integer[np.ndarray, " A"], angstrom: Float[np.ndarray, "A 3"]) -> str:
    """A name for a molecule without SMILES: its atoms, and the pairs near enough for a bond.

    Conformers and frames of a trajectory then count as one molecule, isomers do not. Nearness is
    that of RDKit's covalent radii; bond orders and charges are not part of the name. Positions
    must be finite.
    """
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdDetermineBonds

    graph = Chem.RWMol()
    for number in numbers.tolist():
        atom = Chem.Atom(number)
        atom.SetNoImplicit(True)
        graph.AddAtom(atom)
    conformer = Chem.Conformer(len(numbers))
    for i, (x, y, z) in enumerate(angstrom.tolist()):
        conformer.SetAtomPosition(i, (x, y, z))
    graph.AddConformer(conformer)
    with rdBase.BlockLogs():
        rdDetermineBonds.DetermineConnectivity(graph)
    for atom in graph.GetAtoms():
        atom.SetNumRadicalElectrons(0)
        atom.SetFormalCharge(0)
    return f"bonds {Chem.MolToSmiles(graph)}"


def draw_key(*parts: str | int) -> int:
    """A number from 0 to 2**64 - 1, uniform over rows, from a seed and the identity of a row.

    The n least keys draw n rows, and `is_drawn` draws a share. Neither depends on the order of the
    rows.
    """
    text = " ".join(map(str, parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def is_drawn(share: float, purpose: str, seed: int, conformer: Conformer) -> bool:
    """Whether a row belongs to the share (0 to 1) of a run's rows that are drawn for a purpose."""
    return draw_key(purpose, seed, conformer.line, conformer.conformer) < share * 2**64

"""Geometries from SMILES: RDKit's ETKDGv3.  The one embedder for all packages.

RDKit is optional and imported where it is needed.  It computes in Angstrom.
Shape legend: A atoms, K conformers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from pyscf_ipu.base.errors import InvalidMolecule, MissingPackage, TooLarge, UsageError
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.molecule.checks import check_electrons, check_elements, whole_multiplicity
from pyscf_ipu.molecule.files.framing import MAX_ATOMS

if TYPE_CHECKING:
    from rdkit.Chem import Mol
    from rdkit.Chem.rdDistGeom import EmbedParameters

MAX_SECONDS = 10
"""For each of the two tries to embed a SMILES; an ordinary one takes a few hundredths."""

Embed = Callable[["Mol", int, "EmbedParameters", float], None]
"""Adds up to that many conformers to a graph; it may use that part of the time that is left."""


def graph_of(smiles: str) -> Mol:
    """RDKit's molecule of a SMILES, without hydrogens.

    Raises:
        MissingPackage: RDKit is not installed.
        InvalidMolecule: the SMILES cannot be read.
    """
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise MissingPackage(
            "a SMILES needs RDKit, which is not installed: `pip install rdkit`, or give numbers "
            "and positions to Molecule(...) yourself."
        ) from error
    if not isinstance(smiles, str):
        raise TypeError(f"a SMILES is text such as 'CCO', not a {type(smiles).__name__}.")
    with rdBase.BlockLogs():
        graph = Chem.MolFromSmiles(smiles) if smiles.strip() else None
    if graph is None:
        raise InvalidMolecule(
            f"SMILES {smiles!r} cannot be read: a valid SMILES with normal valences is needed; "
            "check brackets, ring numbers and valences."
        )
    return graph


def charge_of_smiles(smiles: str, numbers: Int[np.ndarray, " A"]) -> int:
    """The charge in e of a SMILES beside a geometry; raises as `graph_of` does.

    Raises:
        InvalidMolecule: also if it has other atoms than the geometry.
    """
    graph = graph_of(smiles)
    from rdkit import Chem

    atoms = sorted(atom.GetAtomicNum() for atom in Chem.AddHs(graph).GetAtoms())
    if atoms != sorted(numbers.tolist()):
        raise InvalidMolecule(
            f"SMILES {smiles!r} has other atoms than the geometry: correct or remove it"
        )
    return Chem.GetFormalCharge(graph)


def embedded(
    smiles: str, seed: int, multiplicity: int | None = None
) -> tuple[Int[np.ndarray, " A"], Float[np.ndarray, "A 3"], int, int]:
    """Atomic numbers, positions in Bohr, charge and unpaired electrons of a SMILES.

    See `Molecule.from_smiles`.
    """
    graph = graph_of(smiles)
    from rdkit import Chem, rdBase

    unpaired = sum(atom.GetNumRadicalElectrons() for atom in graph.GetAtoms())
    fragments = len(Chem.GetMolFrags(graph))
    if fragments > 1:
        raise InvalidMolecule(
            f"SMILES {smiles!r} has {fragments} fragments, which RDKit does not place: give a "
            "geometry with Molecule.from_xyz, or compute one fragment at a time"
        )
    graph = Chem.AddHs(graph)
    if graph.GetNumAtoms() > MAX_ATOMS:  # RDKit would not look at its time limit, or crash
        raise TooLarge(f"a SMILES of {graph.GetNumAtoms()} atoms: {MAX_ATOMS} at most")
    charge = Chem.GetFormalCharge(graph)
    numbers = np.array([atom.GetAtomicNum() for atom in graph.GetAtoms()], dtype=np.int64)
    # Before the embedding, which may be slow or impossible for what is not allowed anyway.
    check_elements(numbers, f"molecule {smiles}")
    spin = unpaired + 1 if multiplicity is None else whole_multiplicity(multiplicity)
    check_electrons(int(numbers.sum()) - charge, charge, f"molecule {smiles}", multiplicity=spin)
    if not isinstance(seed, int) or not 0 <= seed < 2**31:
        raise UsageError(f"seed {seed!r} is not an integer from 0 to 2**31 - 1")
    with rdBase.BlockLogs():
        etkdg(graph, 1, seed)
    if not graph.GetNumConformers():
        raise InvalidMolecule(
            f"SMILES {smiles!r} could not be embedded in space by RDKit's ETKDGv3 within "
            f"{2 * MAX_SECONDS} seconds; try another seed=, or give a geometry with "
            "Molecule.from_xyz."
        )
    order = heavy_first(numbers)
    positions = graph.GetConformer().GetPositions()[order] / BOHR_TO_ANGSTROM
    return numbers[order], positions, charge, unpaired


def etkdg(graph: Mol, count: int, seed: int, embed: Embed | None = None) -> int:
    """Give a graph up to `count` ETKDGv3 conformers in place of those that it has.

    What fails is tried once more from random coordinates, as ring systems and cages often need.

    Args:
        graph: RDKit molecule, hydrogens added.
        count: conformers asked for; there may be fewer, or none.
        seed: RDKit random seed, 0 <= seed < 2**31; the same seed gives the same conformers.
        embed: how RDKit is called, to limit its time; default: MAX_SECONDS for each try.

    Returns:
        How many conformers the first try found; the others are from random coordinates.
    """
    from rdkit.Chem import rdDistGeom

    embed = embed or _within_limit
    parameters = rdDistGeom.ETKDGv3()
    parameters.randomSeed = seed
    embed(graph, count, parameters, 0.5)
    embedded = graph.GetNumConformers()  # after a timeout, the ids that RDKit returns are wrong
    if embedded < count:
        parameters.useRandomCoords = True
        parameters.clearConfs = False
        parameters.randomSeed = (seed + 1) % 2**31
        embed(graph, count - embedded, parameters, 1.0)
    return embedded


def heavy_first(numbers: Int[np.ndarray, " A"]) -> Int[np.ndarray, " A"]:
    """The order of atoms in this project: heavy atoms, then hydrogens, each as they stood."""
    return np.argsort(numbers == 1, kind="stable")


def _within_limit(graph: Mol, count: int, parameters: EmbedParameters, share: float) -> None:
    from rdkit.Chem import rdDistGeom

    del share
    parameters.timeout = MAX_SECONDS
    rdDistGeom.EmbedMultipleConfs(graph, count, parameters)

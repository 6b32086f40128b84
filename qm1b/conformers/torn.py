"""Whether a geometry has the bonds of its molecule.

A distance is judged by its ratio to the sum of the two covalent radii: RDKit's, which are those of
Cordero et al. (doi:10.1039/b801115j). A atoms.
"""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float, UInt8
from rdkit import Chem
from scipy.sparse.csgraph import connected_components

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM

STRETCHED = 1.45
"""Above this ratio a bond is missing. Four conformers of each bundled molecule reach 1.08 with
MMFF94 and 1.33 without; experiments 1.31 (N-N of N2O3), 1.28 (F-O of FOOF) and 1.41 (H3+). It is
2.2 Angstrom for C-C, 1.55 for C-H, 1.4 for O-H and 3.05 for S-S."""

CLOSE = 1.1
"""Below this ratio two atoms are bonded: C-C at 1.67 Angstrom. Atoms that share one neighbour have
1.36 and more, others in one molecule 1.6, with close contacts at 1.12 (S-S of trithiapentalene)
and 1.15 (Si-N of silatranes). Atoms with two common neighbours are across a small ring or a
bridge, and may be as near (Si-Si of cyclodisiloxanes, B-B of diborane): they are not judged."""

APART = 1.75
"""Between two molecules, C, N and O are no nearer: 2.4 Angstrom in the strongest hydrogen bonds."""

ORGANIC = (6, 7, 8)
NEVER_ALONE = (1, 5, 6, 7, 8, 14, 15, 16)
"""Elements without an atom or ion that is stable by itself and has a closed shell."""


def is_torn(
    graph: Chem.Mol | None, numbers: UInt8[np.ndarray, " A"], positions: Float[np.ndarray, "A 3"]
) -> bool:
    """Whether a geometry lacks a bond of the molecule, or has another one.

    Args:
        graph: the molecule, with its atoms in the order of the geometry; None if the bonds are not
            known. Then no atom may be alone that cannot be, and parts nearer than any two molecules
            are those of one; ions, complexes and dimers are not torn.
        numbers: atomic numbers.
        positions: Bohr.
    """
    ratio = _ratios(numbers, positions)
    if graph is None:
        return _is_in_parts(numbers, ratio)
    linked = Chem.GetAdjacencyMatrix(graph)
    bonded = Chem.GetAdjacencyMatrix(graph, useBO=True) > 0  # hydrogen bonds have order 0
    separate = (linked == 0) & (linked @ linked < 2)
    return bool((ratio[bonded] > STRETCHED).any() or (ratio[separate] < CLOSE).any())


def in_order_of(
    graph: Chem.Mol, numbers: UInt8[np.ndarray, " A"], positions: Float[np.ndarray, "A 3"]
) -> Chem.Mol | None:
    """A molecule with its atoms in the order of a geometry; None if the bonds differ.

    The geometry has as many bonds as the molecule, between the atoms that are nearest.

    Args:
        graph: the molecule with all hydrogens, and the elements of the geometry.
        numbers: atomic numbers.
        positions: Bohr.
    """
    first, second = np.triu_indices(len(numbers), 1)
    nearest = np.argsort(_ratios(numbers, positions)[first, second], kind="stable")
    nearest = nearest[: graph.GetNumBonds()]
    there = _skeleton(numbers.tolist(), zip(first[nearest], second[nearest], strict=True))
    elements = [atom.GetAtomicNum() for atom in graph.GetAtoms()]
    bonds = ((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in graph.GetBonds())
    places = there.GetSubstructMatch(_skeleton(elements, bonds))
    return Chem.RenumberAtoms(graph, np.argsort(places).tolist()) if places else None


def _is_in_parts(numbers: UInt8[np.ndarray, " A"], ratio: Float[np.ndarray, "A A"]) -> bool:
    near = ratio < STRETCHED
    alone = ~near.any(axis=1) & np.isin(numbers, NEVER_ALONE)
    _, piece = connected_components(near, directed=False)
    organic = np.isin(numbers, ORGANIC)
    between = (piece[:, None] != piece) & organic[:, None] & organic
    return bool((alone.any() and len(numbers) > 1) or (ratio[between] < APART).any())


def _ratios(
    numbers: UInt8[np.ndarray, " A"], positions: Float[np.ndarray, "A 3"]
) -> Float[np.ndarray, "A A"]:
    """Distances in units of the sums of covalent radii; infinite from an atom to itself."""
    table = Chem.GetPeriodicTable()
    radii = np.array([table.GetRcovalent(z) for z in numbers.tolist()]) / BOHR_TO_ANGSTROM
    distances = np.linalg.norm(positions[:, None] - positions, axis=-1)
    np.fill_diagonal(distances, np.inf)
    return distances / (radii[:, None] + radii)


def _skeleton(elements: Iterable[int], bonds: Iterable[tuple[int, int]]) -> Chem.Mol:
    """Atoms without charges, joined by single bonds."""
    graph = Chem.RWMol()
    for element in elements:
        graph.AddAtom(Chem.Atom(element))
    for first, second in bonds:
        graph.AddBond(int(first), int(second), Chem.BondType.SINGLE)
    return graph

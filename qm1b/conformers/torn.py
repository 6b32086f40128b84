"""Whether a geometry has the bonds of its molecule.

A distance is judged by its ratio to the sum of the two covalent radii: RDKit's, which are those of
Cordero et al. (doi:10.1039/b801115j). A atoms.
"""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float, Integer
from rdkit import Chem
from scipy.sparse.csgraph import connected_components

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM

STRETCHED = 1.45
"""Above this ratio a bond is missing. Four conformers of each bundled molecule reach 1.08 with
MMFF94 and 1.33 without; experiments 1.31 (N-N of N2O3), 1.28 (F-O of FOOF) and 1.41 (H3+). It is
2.2 Angstrom for C-C, 1.55 for C-H, 1.4 for O-H and 3.05 for S-S."""

CLOSE = 1.1
"""Below this ratio two atoms are bonded: C-C at 1.67 Angstrom. Others of the bundled molecules have
1.36 and more, close contacts 1.12 (S-S of trithiapentalene). Atoms with two common neighbours may
be as near without a bond (Si-Si of cyclodisiloxanes, B-B of diborane): they are not judged."""

APART = 1.75
"""Between two molecules, C, N and O are no nearer: 2.4 Angstrom in the strongest hydrogen bonds."""

ORGANIC, NEVER_ALONE = (6, 7, 8), (1, 5, 6, 7, 8, 14, 15, 16)
"""Elements that `APART` is for; and those without stable atoms or ions of a closed shell."""

Numbers = Integer[np.ndarray, " A"]
Positions = Float[np.ndarray, "A 3"]


def is_torn(graph: Chem.Mol, numbers: Numbers, positions: Positions) -> bool:
    """Whether a geometry (Bohr) lacks a bond of its molecule, or has another one.

    The atoms of the graph are in the order of the geometry.
    """
    ratio = ratios(numbers, positions)
    linked = Chem.GetAdjacencyMatrix(graph)
    bonded = Chem.GetAdjacencyMatrix(graph, useBO=True) > 0  # hydrogen bonds have order 0
    separate = (linked == 0) & (linked @ linked < 2)
    return bool((ratio[bonded] > STRETCHED).any() or (ratio[separate] < CLOSE).any())


def is_in_parts(numbers: Numbers, positions: Positions) -> bool:
    """Whether a geometry (Bohr) of unknown bonds is that of a molecule in parts.

    Either an atom is alone that cannot be, or parts are nearer than molecules of a cluster.
    """
    ratio = ratios(numbers, positions)
    near = ratio < STRETCHED
    alone = ~near.any(axis=1) & np.isin(numbers, NEVER_ALONE)
    _, piece = connected_components(near, directed=False)
    organic = np.isin(numbers, ORGANIC)
    between = (piece[:, None] != piece) & organic[:, None] & organic
    return bool((alone.any() and len(numbers) > 1) or (ratio[between] < APART).any())


def in_order_of(graph: Chem.Mol, numbers: Numbers, positions: Positions) -> Chem.Mol | None:
    """A molecule with its atoms in the order of a geometry (Bohr); None if the bonds differ.

    The geometry has as many bonds as the molecule, between the atoms that are nearest.
    """
    first, second = np.triu_indices(len(numbers), 1)
    nearest = np.argsort(ratios(numbers, positions)[first, second], kind="stable")
    nearest = nearest[: graph.GetNumBonds()]
    geometry = _skeleton(numbers, zip(first[nearest], second[nearest], strict=True))
    bonds = ((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in graph.GetBonds())
    places = geometry.GetSubstructMatch(_skeleton(elements(graph), bonds))
    return Chem.RenumberAtoms(graph, np.argsort(places).tolist()) if places else None


def elements(graph: Chem.Mol) -> Numbers:
    """The atomic numbers of a molecule."""
    return np.array([atom.GetAtomicNum() for atom in graph.GetAtoms()], dtype=np.int64)


def ratios(numbers: Numbers, positions: Positions) -> Float[np.ndarray, "A A"]:
    """Distances (Bohr) over sums of covalent radii; infinite from an atom to itself."""
    table = Chem.GetPeriodicTable()
    radii = np.array([table.GetRcovalent(int(z)) for z in numbers]) / BOHR_TO_ANGSTROM
    distances = np.linalg.norm(positions[:, None] - positions, axis=-1)
    np.fill_diagonal(distances, np.inf)
    return distances / (radii[:, None] + radii)


def _skeleton(numbers: Numbers, bonds: Iterable[tuple[int, int]]) -> Chem.Mol:
    """Atoms without charges, joined by single bonds."""
    graph = Chem.RWMol()
    for number in numbers:
        graph.AddAtom(Chem.Atom(int(number)))
    for first, second in bonds:
        graph.AddBond(int(first), int(second), Chem.BondType.SINGLE)
    return graph

"""Which atom of the input each atom of a row is.

Rows have heavy atoms first, as QM1B, and those of a SMILES in the order of the canonical SMILES: a
molecule's row must not depend on how somebody wrote it. So the way back is kept beside the atoms.
Shape legend: A atoms of a row.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from rdkit import Chem

ADDED = -1
"""Instead of a place: the atom is not in the input, which means a hydrogen that was implied."""

Neighbours = tuple[int, ...]
"""The heavy atoms that a hydrogen is bound to, by their places among those of the canonical SMILES,
in ascending order."""


@dataclass(frozen=True)
class AtomOrder:
    """Places, from 0, of a canonical SMILES's atoms in the SMILES that was given."""

    heavy: tuple[int, ...] = ()
    """Of heavy atoms, in the order of the canonical SMILES."""
    hydrogens: Mapping[Neighbours, tuple[int, ...]] = field(default_factory=dict)
    """Of hydrogens that were written as atoms."""

    @classmethod
    def of(cls, given: Chem.Mol, canonical: list[int]) -> "AtomOrder":
        """The places of the atoms of a SMILES.

        Args:
            given: its graph, with every atom that was written.
            canonical: for each heavy atom of the canonical SMILES, in order, its number among the
                heavy atoms of `given`.
        """
        places = [atom.GetIdx() for atom in given.GetAtoms() if atom.GetAtomicNum() != 1]
        heavy = tuple(places[number] for number in canonical)
        if len(places) == given.GetNumAtoms():
            return cls(heavy)
        rank = {place: i for i, place in enumerate(heavy)}
        hydrogens = defaultdict[Neighbours, tuple[int, ...]](tuple)
        for atom in given.GetAtoms():
            if atom.GetAtomicNum() == 1:
                hydrogens[_neighbours(atom, rank)] += (atom.GetIdx(),)
        return cls(heavy, dict(hydrogens))

    def of_rows(self, graph: Chem.Mol) -> tuple[int, ...]:
        """[A] The place of every atom of the canonical SMILES's graph, in the order of rows.

        Hydrogens on the same atom cannot be told apart: they take their places in order, and those
        beyond the ones that were written are ADDED.
        """
        atoms = [*graph.GetAtoms()]
        heavy = [atom.GetIdx() for atom in atoms if atom.GetAtomicNum() != 1]
        rank = {index: i for i, index in enumerate(heavy)}
        left = {neighbours: iter(places) for neighbours, places in self.hydrogens.items()}
        light = [_neighbours(atom, rank) for atom in atoms if atom.GetAtomicNum() == 1]
        return self.heavy + tuple(next(left.get(each, iter(())), ADDED) for each in light)


def canonical_heavy(graph: Chem.Mol) -> list[int]:
    """The heavy atoms of a graph in the order of its SMILES, which was written just before.

    Returns:
        Their numbers among the heavy atoms of the graph, from 0.
    """
    atomic = [atom.GetAtomicNum() for atom in graph.GetAtoms()]
    rank: dict[int, int] = {}
    for index, number in enumerate(atomic):
        if number != 1:
            rank[index] = len(rank)
    written = graph.GetProp("_smilesAtomOutputOrder").strip("[],").split(",")
    return [rank[index] for index in map(int, written) if index in rank]


def _neighbours(atom: Chem.Atom, rank: Mapping[int, int]) -> Neighbours:
    places = (rank.get(neighbour.GetIdx()) for neighbour in atom.GetNeighbors())
    return tuple(sorted(place for place in places if place is not None))

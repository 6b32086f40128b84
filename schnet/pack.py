"""A pack: several molecules in one set of arrays of fixed shape, and the pairs among their atoms.

Shape legend: A atom slots, M molecule slots, E pair slots of a pack, n atoms of a molecule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from .samples import Samples


@dataclass(frozen=True)
class PackShape:
    """How many slots a pack has; one compiled program serves all packs of a shape."""

    atoms: int
    molecules: int
    pairs: int


@dataclass(frozen=True)
class Graphs:
    """How pairs are found."""

    cutoff_bohr: float
    neighbours: int
    """An atom hears at most so many others, the nearest."""

    def most_pairs(self, n: int) -> int:
        """The largest number of pairs that a molecule of n atoms may have."""
        return min(n * (n - 1) // 2, n * self.neighbours)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Pack:
    """Arrays of one pack, or of several with leading axes; NumPy's until they go to a device. An
    empty slot is all zeros, so a pack of zeros is a pack without molecules."""

    numbers: Int[Any, "*lead A"]
    """Atomic numbers, int32; 0 in empty slots."""
    positions_bohr: Float[Any, "*lead A 3"]
    molecule: Int[Any, "*lead A"]
    """Which molecule slot an atom belongs to."""
    pair_i: Int[Any, "*lead E"]
    pair_j: Int[Any, "*lead E"]
    to_i: Bool[Any, "*lead E"]
    """Whether atom i hears atom j; both ways unless an atom has more than `neighbours` around."""
    to_j: Bool[Any, "*lead E"]
    centre_bohr: Float[Any, "*lead M 3"]
    """Centres of mass."""
    target: Float[Any, "*lead M"]
    """In units of the standard deviation, references subtracted; float32."""
    there: Bool[Any, "*lead M"]
    """Whether a molecule slot is taken."""

    @property
    def n_molecules(self) -> int:
        """Molecule slots, M."""
        return self.there.shape[-1]


def empty(shape: PackShape) -> Pack:
    """A pack without molecules."""
    a, m, e = shape.atoms, shape.molecules, shape.pairs
    return Pack(
        numbers=np.zeros(a, np.int32),
        positions_bohr=np.zeros((a, 3), np.float32),
        molecule=np.zeros(a, np.int32),
        pair_i=np.zeros(e, np.int32),
        pair_j=np.zeros(e, np.int32),
        to_i=np.zeros(e, bool),
        to_j=np.zeros(e, bool),
        centre_bohr=np.zeros((m, 3), np.float32),
        target=np.zeros(m, np.float32),
        there=np.zeros(m, bool),
    )


def fill(
    shape: PackShape,
    graphs: Graphs,
    samples: Samples,
    chosen: Sequence[int],
    targets: Float[np.ndarray, " R"],
) -> Pack:
    """A pack of the chosen molecules, in that order.

    Args:
        shape: slots; the molecules must fit.
        graphs: how pairs are found.
        samples: molecules, positions in Bohr.
        chosen: indices into `samples`.
        targets: of all samples, as the network is to give them.
    """
    pack = empty(shape)
    picked = samples.take(np.asarray(chosen, np.int64))
    m, n_atoms = len(picked), len(picked.numbers)
    pack.numbers[:n_atoms] = picked.numbers
    pack.positions_bohr[:n_atoms] = picked.positions_bohr
    pack.molecule[:n_atoms] = np.repeat(np.arange(m), picked.sizes)
    pack.centre_bohr[:m] = centres(picked)
    pack.target[:m] = targets[np.asarray(chosen, np.int64)]
    pack.there[:m] = True
    i, j, to_i, to_j = pairs(picked, graphs)
    pack.pair_i[: len(i)], pack.pair_j[: len(i)] = i, j
    pack.to_i[: len(i)], pack.to_j[: len(i)] = to_i, to_j
    return pack


def pairs(
    samples: Samples, graphs: Graphs
) -> tuple[
    Int[np.ndarray, " pairs"],
    Int[np.ndarray, " pairs"],
    Bool[np.ndarray, " pairs"],
    Bool[np.ndarray, " pairs"],
]:
    """Pairs i > j of one molecule nearer than the cutoff, as indices over all atoms of `samples`,
    and whether i hears j and j hears i."""
    found = [all_pairs(n) for n in samples.sizes.tolist()]
    first = np.repeat(samples.atom_offset[:-1], [len(i) for i, _ in found]).astype(np.int32)
    i = np.concatenate([i for i, _ in found]) + first
    j = np.concatenate([j for _, j in found]) + first
    apart = samples.positions_bohr[i] - samples.positions_bohr[j]
    squares = np.einsum("ij,ij->i", apart, apart)
    near = squares < graphs.cutoff_bohr**2
    i, j, squares = i[near], j[near], squares[near]
    to_i, to_j = np.ones(len(i), bool), np.ones(len(i), bool)
    for molecule in np.flatnonzero(samples.sizes - 1 > graphs.neighbours).tolist():
        a, b = samples.atom_offset[molecule : molecule + 2].tolist()
        here = (i >= a) & (i < b)
        to_i[here], to_j[here] = nearest(i[here] - a, j[here] - a, squares[here], b - a, graphs)
    kept = to_i | to_j
    return i[kept], j[kept], to_i[kept], to_j[kept]


def nearest(
    i: Int[np.ndarray, " pairs"],
    j: Int[np.ndarray, " pairs"],
    squares: Float[np.ndarray, " pairs"],
    n: int,
    graphs: Graphs,
) -> tuple[Bool[np.ndarray, " pairs"], Bool[np.ndarray, " pairs"]]:
    """Whether j is among the nearest atoms of i, and i among those of j, in a molecule of n."""
    matrix = np.full((n, n), np.inf)
    matrix[i, j] = matrix[j, i] = squares
    # Ties go to the lower index: the choice must not depend on the sorting algorithm.
    order = np.argsort(matrix, axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    return rank[i, j] < graphs.neighbours, rank[j, i] < graphs.neighbours


def centres(samples: Samples) -> Float[np.ndarray, "R 3"]:
    """Centres of mass in Bohr."""
    mass = masses()[samples.numbers].astype(np.float64)
    starts = samples.atom_offset[:-1]
    moments = np.add.reduceat(mass[:, None] * samples.positions_bohr, starts, axis=0)
    return (moments / np.add.reduceat(mass, starts)[:, None]).astype(np.float32)


@lru_cache(maxsize=512)
def all_pairs(n: int) -> tuple[Int[np.ndarray, " pairs"], Int[np.ndarray, " pairs"]]:
    """Indices i > j of n atoms."""
    i, j = np.tril_indices(n, -1)
    return i.astype(np.int32), j.astype(np.int32)


@lru_cache(maxsize=1)
def masses() -> Float[np.ndarray, " elements"]:
    """Atomic masses by atomic number, from PySCF's table; 1 for number 0."""
    from pyscf.data.elements import MASSES

    return np.array([1.0, *MASSES[1:]])


def stack(packs: Sequence[Pack], lead: tuple[int, ...]) -> Pack:
    """Packs of one shape as one, with leading axes."""
    return Pack(
        **{
            f.name: np.stack([getattr(one, f.name) for one in packs]).reshape(
                *lead, *getattr(packs[0], f.name).shape
            )
            for f in fields(Pack)
        }
    )

"""A pack: several molecules in one set of arrays of fixed shape, and the pairs among their atoms.

Shape legend: A atom slots, M molecule slots, E pair slots of a pack, n atoms of a molecule.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import jax
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from schnet.samples.samples import Samples

AnyArray = Array | np.ndarray
Indices = Int[np.ndarray, " pairs"]
Mask = Bool[np.ndarray, " pairs"]


class PackShape(NamedTuple):
    """Slots of a pack; one compiled program serves all packs of a shape."""

    atoms: int
    molecules: int
    pairs: int


@dataclass(frozen=True)
class Graphs:
    """Which atoms of a molecule are neighbours."""

    cutoff_bohr: float
    neighbours: int
    """Maximum number of (nearest) neighbours per atom."""

    def most_pairs(self, n: int) -> int:
        """The largest possible number of pairs in a molecule of n atoms."""
        return min(n * (n - 1) // 2, n * self.neighbours)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Pack:
    """Arrays of one pack, or of several with leading axes, in NumPy until they go to a device.

    An empty slot is all zeros, so a pack of zeros is a pack without molecules.
    """

    numbers: Int[AnyArray, "*lead A"]
    """Atomic numbers, int32; 0 in empty slots."""
    positions_bohr: Float[AnyArray, "*lead A 3"]
    molecule: Int[AnyArray, "*lead A"]
    """Molecule slot of each atom."""
    pair_i: Int[AnyArray, "*lead E"]
    pair_j: Int[AnyArray, "*lead E"]
    to_i: Bool[AnyArray, "*lead E"]
    """Whether atom j is a neighbour of atom i; mutual unless an atom has more than `neighbours`."""
    to_j: Bool[AnyArray, "*lead E"]
    centre_bohr: Float[AnyArray, "*lead M 3"]
    """Centres of mass."""
    target: Float[AnyArray, "*lead M"]
    """In units of the standard deviation, references subtracted; float32."""
    forces: Float[AnyArray, "*lead A 3"]
    """In the same units per Bohr; zeros if the target has none."""
    there: Bool[AnyArray, "*lead M"]
    """Whether a molecule slot is taken."""

    @property
    def n_molecules(self) -> int:
        """Molecule slots, M."""
        return self.there.shape[-1]


def empty(shape: PackShape) -> Pack:
    """A pack without molecules."""
    a, m, e = shape
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
        forces=np.zeros((a, 3), np.float32),
        there=np.zeros(m, bool),
    )


def fill(
    shape: PackShape,
    graphs: Graphs,
    samples: Samples,
    chosen: Sequence[int],
    targets: Float[np.ndarray, " R"],
    forces_scale: float | None = None,
) -> Pack:
    """A pack of the chosen molecules, in that order.

    Args:
        shape: slots; the molecules must fit.
        graphs: which atoms are neighbours.
        samples: molecules, positions in Bohr.
        chosen: indices into `samples`.
        targets: outputs that the network learns, of all samples.
        forces_scale: unit of the forces that it learns, in hartree/bohr (`AtomReferences.scale`);
            None if it learns none.
    """
    rows = np.asarray(chosen, np.int64)
    picked = samples.take(rows)
    i, j, to_i, to_j = pairs(picked, graphs)
    columns = {
        "numbers": picked.numbers,
        "positions_bohr": picked.positions_bohr,
        "molecule": np.repeat(np.arange(len(picked)), picked.sizes),
        "pair_i": i,
        "pair_j": j,
        "to_i": to_i,
        "to_j": to_j,
        "centre_bohr": centres(picked),
        "target": targets[rows],
        "there": np.ones(len(picked), bool),
    }
    if forces_scale is not None and picked.forces is not None:
        columns["forces"] = picked.forces / np.float32(forces_scale)
    pack = empty(shape)
    for name, values in columns.items():
        getattr(pack, name)[: len(values)] = values
    return pack


def pairs(samples: Samples, graphs: Graphs) -> tuple[Indices, Indices, Mask, Mask]:
    """Pairs of atoms of one molecule nearer than the cutoff.

    Returns:
        i and j of each pair, i > j, as indices over all atoms of `samples`; whether j is a
        neighbour of i, and i one of j.
    """
    pairs_of = [all_pairs(n) for n in samples.sizes.tolist()]
    first = np.repeat(samples.atom_offset[:-1], [len(i) for i, _ in pairs_of]).astype(np.int32)
    i = np.concatenate([i for i, _ in pairs_of]) + first
    j = np.concatenate([j for _, j in pairs_of]) + first
    apart = samples.positions_bohr[i] - samples.positions_bohr[j]
    squares = np.einsum("ij,ij->i", apart, apart)
    near = squares < graphs.cutoff_bohr**2
    i, j, squares = i[near], j[near], squares[near]
    to_i, to_j = np.ones(len(i), bool), np.ones(len(i), bool)
    for molecule in np.flatnonzero(samples.sizes - 1 > graphs.neighbours).tolist():
        a, b = samples.atom_offset[molecule : molecule + 2].tolist()
        here = (i >= a) & (i < b)
        to_i[here], to_j[here] = nearest(
            i[here] - a, j[here] - a, squares[here], n=b - a, graphs=graphs
        )
    kept = to_i | to_j
    return i[kept], j[kept], to_i[kept], to_j[kept]


def nearest(
    i: Indices, j: Indices, squares: Float[np.ndarray, " pairs"], n: int, graphs: Graphs
) -> tuple[Mask, Mask]:
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
def all_pairs(n: int) -> tuple[Indices, Indices]:
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

    def stacked(*parts: np.ndarray) -> np.ndarray:
        return np.stack(parts).reshape(*lead, *parts[0].shape)

    return jax.tree.map(stacked, *packs)

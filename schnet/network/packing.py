"""Which molecules share a pack: drawn at random, the last ones picked to fill the pack.

A pack is full when it runs out of atom slots, of pair slots or of molecule slots, whichever comes
first. First-fit-decreasing, the usual histogram packing (M. M. Krell et al., arXiv:2107.02027),
puts large molecules together, and those run out of pair slots long before atom slots. So a pack is
filled with random molecules until there is room for a few more, and those few are picked by size
from the histogram of the remaining ones: the combination that fills most slots. A pack is then also
a random sample, as a stochastic gradient should have.
"""

from collections import deque
from collections.abc import Mapping
from itertools import combinations_with_replacement

import numpy as np
from jaxtyping import Bool, Int
from numpy.random import Generator

from schnet.network.pack import Graphs, PackShape

ROUND = 8
"""Numbers of slots are multiples of this, which suits vector registers."""

SPARE_PAIRS = 1.02
"""Factor on the mean of pair slots: packs of larger molecules then also fill their atom slots."""

CHOSEN = 3
"""Number of molecules of a pack that are picked by size."""

MOST_SIZES = 32
"""Number of sizes among which they are picked; of more, only every second or third is tried."""


def shape_for(histogram: Mapping[int, int], graphs: Graphs, molecules: int) -> PackShape:
    """Choose slots for packs of about `molecules` molecules.

    Args:
        histogram: number of molecules by number of atoms.
        graphs: which atoms are neighbours.
        molecules: mean number of molecules per pack.

    Returns:
        Atom and pair slots in the same proportion as in the molecules, enough for the largest one.
    """
    sizes = np.array(sorted(histogram), dtype=np.int64)
    counts = np.array([histogram[n] for n in sizes.tolist()], dtype=np.int64)
    pairs = np.array([graphs.most_pairs(n) for n in sizes.tolist()], dtype=np.int64)
    total = int(counts.sum())
    molecules = min(molecules, total)
    atoms = max(_up(molecules * float(sizes @ counts) / total), _up(float(sizes.max())))
    mean_pairs = SPARE_PAIRS * molecules * float(pairs @ counts) / total
    most = min(total, 2 * molecules)  # small molecules make a pack of more than the mean
    return PackShape(atoms, most, max(_up(mean_pairs), _up(float(pairs.max())), ROUND))


class Histogram:
    """Molecules that are in no pack yet, by size.

    Shape legend: s sizes, c combinations of up to `CHOSEN` of them.
    """

    def __init__(self, sizes: Int[np.ndarray, " R"], graphs: Graphs) -> None:
        self.left = {int(n): deque(np.flatnonzero(sizes == n).tolist()) for n in np.unique(sizes)}
        self.pairs = {n: graphs.most_pairs(n) for n in self.left}
        some = list(self.left)[:: 1 + len(self.left) // MOST_SIZES]
        self.combinations = [
            combination
            for length in range(1, CHOSEN + 1)
            for combination in combinations_with_replacement(some, length)
        ]
        self._needed = np.array([[c.count(n) for n in self.left] for c in self.combinations])
        self._atoms = np.array([sum(c) for c in self.combinations])
        self._pairs = np.array([sum(self.pairs[n] for n in c) for c in self.combinations])
        self._length = np.array([len(c) for c in self.combinations])

    def best(self, room: PackShape) -> tuple[int, ...]:
        """The combination of sizes that fills most of the free slots, or () if none fits."""
        counts = np.array([len(waiting) for waiting in self.left.values()])
        fits: Bool[np.ndarray, " c"] = (
            (self._atoms <= room.atoms)
            & (self._pairs <= room.pairs)
            & (self._length <= room.molecules)
            & np.all(self._needed <= counts, axis=1)
        )
        # Most atoms; among equals most pairs, which leaves small molecules for smaller gaps.
        value = np.where(fits, self._atoms * (self._pairs.max() + 1) + self._pairs, -1)
        best = int(np.argmax(value))
        if fits[best]:
            return self.combinations[best]
        waiting = [n for n, queue in self.left.items() if queue and room.molecules > 0]
        alone = [n for n in waiting if n <= room.atoms and self.pairs[n] <= room.pairs]
        return (max(alone),) if alone else ()


class _Filling:
    """A pack that is being filled."""

    def __init__(self, shape: PackShape) -> None:
        self.room = shape
        self.molecules: list[int] = []

    def add(self, molecule: int, n: int, pairs: int) -> None:
        self.molecules.append(molecule)
        room = self.room
        self.room = PackShape(room.atoms - n, room.molecules - 1, room.pairs - pairs)


def deal(
    sizes: Int[np.ndarray, " R"], shape: PackShape, graphs: Graphs, random: Generator | None
) -> list[list[int]]:
    """Distribute molecules over packs.

    Args:
        sizes: atoms of each molecule; each must fit into an empty pack.
        shape: slots of a pack.
        graphs: which atoms are neighbours.
        random: shuffles the molecules; None keeps their order.

    Returns:
        Indices of the molecules of each pack; every index occurs once.

    Raises:
        ValueError: a molecule is larger than a pack.
    """
    order = np.arange(len(sizes)) if random is None else random.permutation(len(sizes))
    sizes = sizes[order]
    waiting = Histogram(sizes, graphs)
    for n, pairs in waiting.pairs.items():
        if n > shape.atoms or pairs > shape.pairs:
            raise ValueError(f"a molecule of {n} atoms does not fit into a pack of {shape}")
    reserve = CHOSEN * float(sizes.mean()) if len(sizes) else 0.0
    packs: list[list[int]] = []
    while any(waiting.left.values()):
        pack = _Filling(shape)
        _draw(pack, waiting, reserve)
        while combination := waiting.best(pack.room):
            for n in combination:
                pack.add(waiting.left[n].pop(), n, waiting.pairs[n])
        packs.append([int(order[i]) for i in pack.molecules])
    return packs


def _draw(pack: _Filling, waiting: Histogram, reserve: float) -> None:
    """Fill a pack with molecules in their order, until `reserve` atom slots are left."""
    while pack.room.atoms > reserve:
        heads = [(queue[0], n) for n, queue in waiting.left.items() if queue]
        if not heads:
            return
        molecule, n = min(heads)
        pairs = waiting.pairs[n]
        if min(pack.room.atoms - n, pack.room.pairs - pairs, pack.room.molecules - 1) < 0:
            return
        waiting.left[n].popleft()
        pack.add(molecule, n, pairs)


def _up(x: float) -> int:
    return int(-(-x // ROUND)) * ROUND

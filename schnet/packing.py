"""Which molecules share a pack: drawn at random, the last ones chosen so that nothing is left over.

A pack is full when it runs out of atom slots, of pair slots or of molecule slots, whichever comes
first. First-fit-decreasing, the usual histogram packing (M. M. Krell et al., arXiv:2107.02027),
puts large molecules together, and those run out of pair slots long before atom slots. So a pack is
filled with molecules as they come until there is room for a few more, and those few are picked by
size from the histogram of what is left: the combination that fills most slots. Packs are then also
what a stochastic gradient wants, a random sample.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import combinations_with_replacement

import numpy as np
from jaxtyping import Bool, Int

from .pack import Graphs, PackShape

ROUND = 8
"""Slots come in multiples of this, for the sake of vector registers."""

SPARE_PAIRS = 1.02
"""Pair slots beyond the mean, so that a pack of somewhat larger molecules also fills its atoms."""

CHOSEN = 3
"""Molecules of a pack that are picked by size."""

MOST_SIZES = 32
"""Sizes among which they are picked; of more sizes only every second or third is looked at."""


def shape_for(histogram: Mapping[int, int], graphs: Graphs, molecules: int) -> PackShape:
    """Slots for about `molecules` molecules a pack, of sizes as in the histogram.

    Args:
        histogram: number of molecules by number of atoms.
        graphs: how pairs are found.
        molecules: mean number of molecules of a pack.

    Returns:
        Atom and pair slots in the proportion of the molecules' own, and room for the largest one.
    """
    sizes = np.array(sorted(histogram), dtype=np.int64)
    counts = np.array([histogram[n] for n in sizes.tolist()], dtype=np.int64)
    pairs = np.array([graphs.most_pairs(n) for n in sizes.tolist()], dtype=np.int64)
    total = int(counts.sum())
    molecules = min(molecules, total)
    atoms = max(_up(molecules * float(sizes @ counts) / total), _up(float(sizes.max())))
    mean_pairs = SPARE_PAIRS * molecules * float(pairs @ counts) / total
    most = min(total, 2 * molecules)  # of small molecules there are more in a pack
    return PackShape(atoms, most, max(_up(mean_pairs), _up(float(pairs.max())), ROUND))


class Histogram:
    """Molecules that wait for a pack, by size.

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
        """The combination of sizes that fills most of a room, or () if none fits."""
        counts = np.array([len(waiting) for waiting in self.left.values()])
        fits: Bool[np.ndarray, " c"] = (
            (self._atoms <= room.atoms)
            & (self._pairs <= room.pairs)
            & (self._length <= room.molecules)
            & np.all(self._needed <= counts, axis=1)
        )
        # Most atoms; among equals most pairs, which leaves small molecules for narrower rooms.
        value = np.where(fits, self._atoms * (self._pairs.max() + 1) + self._pairs, -1)
        best = int(np.argmax(value))
        if fits[best]:
            return self.combinations[best]
        alone = [n for n, queue in self.left.items() if queue and self._alone(n, room)]
        return (max(alone),) if alone else ()

    def _alone(self, n: int, room: PackShape) -> bool:
        return n <= room.atoms and self.pairs[n] <= room.pairs and room.molecules > 0


class _Pack:
    """A pack while it is filled."""

    def __init__(self, shape: PackShape) -> None:
        self.room = shape
        self.molecules: list[int] = []

    def add(self, molecule: int, n: int, pairs: int) -> None:
        self.molecules.append(molecule)
        room = self.room
        self.room = PackShape(room.atoms - n, room.molecules - 1, room.pairs - pairs)


def deal(
    sizes: Int[np.ndarray, " R"],
    shape: PackShape,
    graphs: Graphs,
    random: np.random.Generator | None,
) -> list[list[int]]:
    """Which molecules go into which pack.

    Args:
        sizes: atoms of each molecule; each must fit into an empty pack.
        shape: slots of a pack.
        graphs: how pairs are found.
        random: shuffles the molecules; None takes them as they come.

    Returns:
        Indices of the molecules of each pack; together each index once.

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
        pack = _Pack(shape)
        _draw(pack, waiting, reserve)
        while combination := waiting.best(pack.room):
            for n in combination:
                pack.add(waiting.left[n].pop(), n, waiting.pairs[n])
        packs.append([int(order[i]) for i in pack.molecules])
    return packs


def _draw(pack: _Pack, waiting: Histogram, reserve: float) -> None:
    """Fill a pack with molecules as they come, until `reserve` atom slots are left."""
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

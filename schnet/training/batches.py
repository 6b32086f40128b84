"""From windows of shuffled rows to the arrays of a step, and the place from which to resume.

Shape legend: I, D, S as in `step`; A, M, E as in `pack`.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from schnet.network.pack import Graphs, Pack, PackShape, empty, fill, stack
from schnet.network.packing import deal
from schnet.samples.references import AtomReferences
from schnet.samples.samples import Samples
from schnet.training.streaming import Stream


class Place(NamedTuple):
    """The next call of the step in a training."""

    epoch: int = 0
    window: int = 0
    call: int = 0
    """Number of the call within the window."""


class Call(NamedTuple):
    """Arrays for one call of the step, and the place after it."""

    packs: Pack
    """[I, D, S, ...]"""
    then: Place


@dataclass(frozen=True, eq=False)
class Batches:
    """The calls of a training's epochs."""

    stream: Stream
    shape: PackShape
    graphs: Graphs
    references: AtomReferences
    lead: tuple[int, int, int]
    """I, D, S"""

    def expected_updates(self, histogram: Counter[int]) -> int:
        """Approximate number of updates in an epoch, for planning the learning rate."""
        atoms = sum(n * count for n, count in histogram.items())
        pairs = sum(self.graphs.most_pairs(n) * count for n, count in histogram.items())
        packs = max(atoms / self.shape.atoms, pairs / self.shape.pairs, 1.0)
        _, devices, accumulation = self.lead
        return -(-int(np.ceil(packs)) // (devices * accumulation))

    def calls(self, start: Place) -> Iterator[Call]:
        """The rest of an epoch, from a place on. Packs without molecules, which change nothing,
        complete the last call of a window."""
        epoch = start.epoch
        for number, samples in enumerate(self.stream.windows(epoch, start.window), start.window):
            skip = start.call if number == start.window else 0
            yield from self._window(samples, epoch, number, skip)

    def _window(self, samples: Samples, epoch: int, window: int, skip: int) -> Iterator[Call]:
        random = np.random.default_rng((self.stream.seed, epoch, window, 1))
        dealt = deal(samples.sizes, self.shape, self.graphs, random)
        order = random.permutation(len(dealt)).tolist()  # the packs dealt last are less full
        targets = self.references.subtract(samples)
        nothing, per_call = empty(self.shape), int(np.prod(self.lead))
        for call, first in enumerate(range(0, len(order), per_call)):
            if call < skip:
                continue
            chosen = order[first : first + per_call]
            packs = [fill(self.shape, self.graphs, samples, dealt[i], targets) for i in chosen]
            packs += [nothing] * (per_call - len(packs))
            yield Call(stack(packs, self.lead), Place(epoch, window, call + 1))

"""From windows of shuffled rows to the arrays of a step, with a place to go on from.

Shape legend: I, D, S as in `step`; A, M, E as in `pack`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .pack import Graphs, Pack, PackShape, empty, fill, stack
from .packing import deal
from .references import AtomReferences
from .samples import Samples
from .streaming import Stream


class Place(NamedTuple):
    """Where a training is: the next call of the step."""

    epoch: int = 0
    window: int = 0
    call: int = 0
    """Of the step, within the window."""


class Call(NamedTuple):
    """Arrays for one call of the step, and where the training is after it."""

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

    @property
    def per_call(self) -> int:
        """Packs that a call takes."""
        iterations, devices, accumulation = self.lead
        return iterations * devices * accumulation

    def expected_updates(self, histogram: Counter[int]) -> int:
        """Updates of an epoch, about: what the learning rate is laid out over."""
        atoms = sum(n * count for n, count in histogram.items())
        pairs = sum(self.graphs.most_pairs(n) * count for n, count in histogram.items())
        packs = max(atoms / self.shape.atoms, pairs / self.shape.pairs, 1.0)
        _, devices, accumulation = self.lead
        return -(-int(np.ceil(packs)) // (devices * accumulation))

    def calls(self, start: Place) -> Iterator[Call]:
        """What is left of an epoch from a place on. The last call of a window is filled up with
        packs without molecules, which change nothing."""
        epoch = start.epoch
        for number, samples in enumerate(self.stream.windows(epoch, start.window), start.window):
            skip = start.call if number == start.window else 0
            yield from self._window(samples, epoch, number, skip)

    def _window(self, samples: Samples, epoch: int, window: int, skip: int) -> Iterator[Call]:
        random = np.random.default_rng((self.stream.seed, epoch, window, 1))
        dealt = deal(samples.sizes, self.shape, self.graphs, random)
        order = random.permutation(len(dealt)).tolist()  # the last ones dealt are less full
        targets = self.references.subtract(samples)
        nothing = empty(self.shape)
        for call, first in enumerate(range(0, len(order), self.per_call)):
            if call < skip:
                continue
            chosen = order[first : first + self.per_call]
            packs = [fill(self.shape, self.graphs, samples, dealt[i], targets) for i in chosen]
            packs += [nothing] * (self.per_call - len(packs))
            yield Call(stack(packs, self.lead), Place(epoch, window, call + 1))

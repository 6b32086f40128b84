"""Shuffled rows of an epoch, one window at a time: only a window has to fit into memory.

The parts of the data are read in a random order, as many as fill a window, and the rows of a window
are shuffled. Seed and epoch alone determine order and windows, so an epoch can resume at any
window. If all rows fit into one window they are read once and kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from schnet.samples.samples import Samples
from schnet.training.subset import Subset

_ORDER, _ROWS = 4, 5
"""Last words of the seeds for the order of parts and for the rows of a window. NumPy pads a short
seed with zeros, so without them the seed of the first window would be that of the order."""


@dataclass(eq=False)
class RowStream:
    """Windows of a subset's rows.

    A window holds at most `window_rows` rows, counted before the split takes its share, or a single
    part that is larger.
    """

    subset: Subset
    window_rows: int = 200_000
    seed: int = 0
    rows: int | None = None
    """Number of rows, if it is known (`Totals.n`); it may be less than the sizes of the parts."""
    _kept: Samples | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.window_rows < 1:
            raise ValueError(f"window_rows is {self.window_rows}; it must be at least 1")

    @property
    def fits(self) -> bool:
        """Whether all rows are one window, read once."""
        return (self.subset.bound if self.rows is None else self.rows) <= self.window_rows

    def plan(self, epoch: int) -> list[list[int]]:
        """The parts of each window of an epoch."""
        sizes = self.subset.sizes
        if self.fits:
            return [list(range(len(sizes)))]
        windows: list[list[int]] = []
        room = 0
        for number in self._random(epoch, 0, _ORDER).permutation(len(sizes)).tolist():
            if not windows or sizes[number] > room:
                windows.append([])
                room = self.window_rows
            windows[-1].append(number)
            room -= sizes[number]
        return windows

    def windows(self, epoch: int, start: int = 0) -> Iterator[Samples]:
        """The rows of an epoch, from window `start` on; a window may be empty. Raises as
        `Source.part`."""
        for number, parts in enumerate(self.plan(epoch)[start:], start):
            samples = self._read(parts)
            yield samples.take(self._random(epoch, number, _ROWS).permutation(len(samples)))

    def _read(self, parts: list[int]) -> Samples:
        if self._kept is not None:
            return self._kept
        samples = Samples.concatenate([self.subset.part(number) for number in parts])
        if self.fits:
            self._kept = samples
        return samples

    def _random(self, *place: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, *place))

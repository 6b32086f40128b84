"""Shuffled rows of an epoch, a window at a time: what has to be in memory at once.

The parts of the data are read in a random order, as many as fill a window, and the rows of a window
are shuffled. Order and windows follow from seed and epoch alone, so an epoch may be taken up at any
window. If all rows fit into one window they are read once and kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from .samples import Samples
from .subset import Subset

T = TypeVar("T")

_END: Any = object()

_ORDER, _ROWS = 4, 5
"""Last words of the seeds: of the order of parts, of the rows of a window. NumPy fills a short seed
up with zeros, so without them the first window's would be that of the order."""


@dataclass(eq=False)
class Stream:
    """Windows of a subset's rows.

    A window holds `window_rows` rows at most, counted before the split takes its share, or a single
    part that is larger.
    """

    subset: Subset
    window_rows: int = 200_000
    seed: int = 0
    rows: int | None = None
    """How many rows there are, if that is known (`Totals.n`): fewer than the parts' sizes say."""
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
        """The rows of an epoch, from window `start` on; a window may be empty.

        Raises:
            UserError: the data cannot be read.
        """
        for number, parts in enumerate(self.plan(epoch)[start:], start):
            samples = self._read(parts)
            yield samples.take(self._random(epoch, number, _ROWS).permutation(len(samples)))

    def _read(self, parts: list[int]) -> Samples:
        if self._kept is not None:
            return self._kept
        found = Samples.concatenate([self.subset.part(number) for number in parts])
        if self.fits:
            self._kept = found
        return found

    def _random(self, *place: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, *place))


def prefetch(items: Iterable[T], depth: int = 2) -> Iterator[T]:
    """The same items, made up to `depth` ahead of their use by one thread in the background.

    What making an item raises is raised where the item is asked for. Closing the iterator, or
    leaving it to the garbage collector, waits for the item that is being made and ends the thread.
    """
    if depth < 1:
        raise ValueError(f"depth is {depth}; it must be at least 1")
    source = iter(items)
    waiting: deque[Future[T]] = deque()
    pool = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
    try:
        waiting.extend(pool.submit(next, source, _END) for _ in range(depth))
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(pool.submit(next, source, _END))
            yield item
    finally:
        pool.shutdown(cancel_futures=True)
        if isinstance(source, Generator):
            source.close()

"""Conformers waiting by shape: molecules of one shape share a compiled program and a batch."""

from collections import deque
from collections.abc import Callable, Hashable, Iterator

from qm1b.rows.schema import Conformer


class Buckets:
    """One queue of conformers per shape; gives them out in batches of the shape's fixed size."""

    def __init__(self, batch_size: Callable[[Hashable], int]) -> None:
        self._batch_size = batch_size
        self._queues: dict[Hashable, deque[Conformer]] = {}
        self.waiting = 0
        """Conformers in all buckets."""

    def add(self, shape: Hashable, conformer: Conformer) -> None:
        """Put a conformer at the end of its bucket."""
        self._queues.setdefault(shape, deque()).append(conformer)
        self.waiting += 1

    def full(self) -> Iterator[Hashable]:
        """Shapes with at least one whole batch, the fullest bucket (in batches) first."""
        batches = {s: len(q) // self._batch_size(s) for s, q in self._queues.items()}
        yield from sorted((s for s in batches if batches[s]), key=lambda s: -batches[s])

    def fullest(self) -> Iterator[Hashable]:
        """All shapes that have anything, the fullest bucket (as part of a batch) first."""
        filled = {s: len(q) / self._batch_size(s) for s, q in self._queues.items() if q}
        yield from sorted(filled, key=lambda s: -filled[s])

    def oldest(self) -> tuple[Hashable, int] | None:
        """The shape whose first conformer is earliest in the input, and its line."""
        first = ((q[0].line, i, s) for i, (s, q) in enumerate(self._queues.items()) if q)
        line, _, shape = min(first, default=(0, 0, None), key=lambda item: item[:2])
        return (shape, line) if line else None

    def take(self, shape: Hashable) -> tuple[Conformer, ...]:
        """The next batch of a shape; less than a whole one if there is no more."""
        queue = self._queues[shape]
        n = min(len(queue), self._batch_size(shape))
        self.waiting -= n
        return tuple(queue.popleft() for _ in range(n))

    def clear(self) -> None:
        """Forget everything that waits."""
        self._queues.clear()
        self.waiting = 0

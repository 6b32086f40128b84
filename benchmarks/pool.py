"""Single-threaded worker processes, each pinned to a core of its own."""

import multiprocessing as mp
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, Self

from qm1b.process.worker import environment

SINGLE = environment()
"""Environment of a single-threaded process, as the generator starts its own."""


def cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0))


class Pool:
    """As many workers as cores (or fewer); `each` yields results as they come.

    `setup(*args)` runs in every worker before its first task.
    """

    def __init__(
        self, workers: int | None = None, setup: Callable[..., object] | None = None, *args: Any
    ) -> None:
        chosen = cores()[:workers]
        # Threads are counted when NumPy and XLA are imported: the children must be born with this.
        os.environ.update(SINGLE)
        context = mp.get_context("spawn")
        queue = context.SimpleQueue()
        for core in chosen:
            queue.put(core)
        self.executor = ProcessPoolExecutor(
            len(chosen), mp_context=context, initializer=_pin, initargs=(queue, setup, args)
        )

    def each(self, function: Callable, tasks: Sequence[tuple]) -> Iterator[tuple[int, Any]]:
        """(index of the task, result) in order of completion; put the longest tasks first."""
        futures = {self.executor.submit(function, *task): i for i, task in enumerate(tasks)}
        for future in as_completed(futures):
            yield futures[future], future.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.executor.shutdown(cancel_futures=True)


def _pin(queue: Any, setup: Callable[..., object] | None, args: tuple) -> None:
    os.sched_setaffinity(0, {queue.get()})
    if setup is not None:
        setup(*args)

"""Ctrl-C as a request, not as an exception in the middle of a write."""

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Counts Ctrl-C (or SIGTERM); the end of the time is like the first of them.

    Args:
        deadline: when the time is over, by `time.monotonic`.
    """

    def __init__(self, deadline: float = math.inf) -> None:
        self._end = deadline
        self._signals = 0
        self._noticed = False

    @property
    def seconds_left(self) -> float:
        """Until the time is over."""
        return self._end - time.monotonic()

    @property
    def count(self) -> int:
        """Requests to end: the first lets running work be finished."""
        return max(self._signals, int(self.seconds_left <= 0))

    @property
    def by_hand(self) -> bool:
        """Whether a signal has come."""
        return self._signals > 0

    @property
    def cause(self) -> str:
        """Why the work ends, and what may be done about it."""
        if self.by_hand:
            return "Interrupted (press Ctrl-C again to stop at once)"
        return "The time of --stop-after is over"

    def is_new(self) -> bool:
        """Whether the first one has come; true only once."""
        new, self._noticed = bool(self.count) and not self._noticed, bool(self.count)
        return new

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1


@contextmanager
def interrupts(interrupt: Interrupt | None = None) -> Iterator[Interrupt]:
    """Count interrupts inside the block instead of dying from them.

    Args:
        interrupt: continue this count, after a library has installed handlers of its own.

    Yields:
        The count.
    """
    interrupt = interrupt or Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, interrupt) for number in numbers]
    try:
        yield interrupt
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)

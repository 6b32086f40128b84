"""Ctrl-C as a request, not as an exception in the middle of a write."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Counts Ctrl-C (or SIGTERM)."""

    def __init__(self) -> None:
        self.count = 0
        self._noticed = False

    def is_new(self) -> bool:
        """Whether the first one has come; true only once."""
        new, self._noticed = bool(self.count) and not self._noticed, bool(self.count)
        return new

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.count += 1


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

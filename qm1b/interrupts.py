"""Ctrl-C as a question, not as an exception in the middle of a write."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """How often Ctrl-C (or SIGTERM) came."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.count += 1


@contextmanager
def interrupts(interrupt: Interrupt | None = None) -> Iterator[Interrupt]:
    """Count interrupts instead of dying of them, inside the block; in `interrupt` if it is given,
    where a library has put its own handlers in between."""
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

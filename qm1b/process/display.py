"""Progress of some work: a live bar on a terminal, plain lines in a log file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.text import Text

from pyscf_ipu.base.terminal import say, visible

PLAIN_SECONDS = 10.0
SLOW = 0.1
"""Conformers per second, below which the time of one says more."""


@runtime_checkable
class Shown(Protocol):
    """The state of some work."""

    @property
    def rows(self) -> int:
        """Rows that are done."""
        ...

    @property
    def expected(self) -> int:
        """Rows at the end."""
        ...

    @property
    def pace(self) -> str:
        """How far, how fast, how long."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Further lines."""
        ...


def time_left(seconds: float | None) -> str:
    """The time left as h:mm:ss; -:--:-- while nobody knows."""
    if seconds is None:
        return "-:--:--"
    left = int(seconds)
    return f"{left // 3600}:{left // 60 % 60:02d}:{left % 60:02d}"


def speed(conformers_per_second: float) -> str:
    """A rate in words; where a conformer takes long, its time."""
    if 0 < conformers_per_second < SLOW:
        return f"{1 / conformers_per_second:.0f} s a conformer"
    digits = 1 if conformers_per_second >= 1 else 2
    return f"{conformers_per_second:.{digits}f} conformers/s"


class Display:
    """Where some work reports its progress. This one shows nothing, as suits a library."""

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, shown: Shown) -> None:
        """Called several times a second."""

    def end(self, shown: Shown) -> None:
        """Called once, with what came out."""
        self.update(shown)

    def say(self, text: str) -> None:
        """Report an event on a line of its own."""

    def begin(self, text: str) -> None:
        """Say that something long has begun, where nothing else would show it."""


class Plain(Display):
    """A line every ten seconds, for logs.

    Args:
        every: seconds between two lines.
        stderr: lines go there, not to stdout.
    """

    def __init__(self, every: float = PLAIN_SECONDS, stderr: bool = False) -> None:
        self._every = every
        self._stderr = stderr
        self._last = time.monotonic()

    def update(self, shown: Shown) -> None:
        """Print a line if it is time for one."""
        if time.monotonic() - self._last >= self._every:
            self.end(shown)

    def end(self, shown: Shown) -> None:
        """Print a line."""
        self._last = time.monotonic()
        self.say("; ".join([shown.pace, *shown.notes]))

    def say(self, text: str) -> None:
        """Print at once: logs are read while they are written."""
        say(visible(text, keep=""), to_stderr=self._stderr)

    begin = say


class Bar(Display):
    """A live progress bar, with the notes below it."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            SpinnerColumn(), BarColumn(bar_width=16), TextColumn("{task.description}", markup=False)
        )
        self._task = self._bar.add_task("starting", total=None)
        self._below = Text()
        self._live = Live(Group(self._bar, self._below), console=console, refresh_per_second=4)

    def __enter__(self) -> Bar:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def update(self, shown: Shown) -> None:
        """Move the bar."""
        total, pace = shown.expected, shown.pace
        self._bar.update(self._task, completed=shown.rows, total=total, description=pace)
        self._below.plain = "\n".join(f"  {visible(line, keep='')}" for line in shown.notes)

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        line = visible(text, keep="")
        self._live.console.print(line, highlight=False, markup=False, soft_wrap=True)

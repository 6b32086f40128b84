"""What a run shows while it goes on: a live bar on a terminal, plain lines in a log file."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.text import Text

from .dispatch import ProgramEvent
from .schema import CONVERGED, Drop, Row

WINDOW_SECONDS = 60.0
PLAIN_SECONDS = 10.0
COMPILING_SHOWN = 4


@dataclass
class Stats:
    """Counts of a run, from which everything shown is derived."""

    n_lines: int
    """Lines that will be read."""
    conformers: int
    """Conformers asked for, per molecule."""
    lines_read: int = 0
    molecules: int = 0
    """Lines kept: they passed the filters and, as far as is known, have conformers."""
    missing: int = 0
    """Conformers of theirs that RDKit did not find."""
    rows: int = 0
    rows_before: int = 0
    """Of these, rows that lay in the folder when the run began."""
    statuses: Counter[str] = field(default_factory=Counter)
    drops: Counter[str] = field(default_factory=Counter)
    compiles: list[ProgramEvent] = field(default_factory=list)
    """Programs that are ready."""
    compiling: list[tuple[str, float]] = field(default_factory=list)
    """Programs that are being made, and for how many seconds already."""
    starved_seconds: float = 0.0
    """Time that compute processes stood idle because conformers were still being made, summed over
    the processes."""
    start: float = field(default_factory=time.monotonic)
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    def count_row(self, row: Row) -> None:
        """One conformer is done."""
        self.rows += 1
        self.statuses[row.result.status.split(":")[0]] += 1
        self._recent.append((time.monotonic(), self.rows))
        while self._recent[0][0] < self._recent[-1][0] - WINDOW_SECONDS:
            self._recent.popleft()

    def count_drop(self, drop: Drop) -> None:
        """One line, or a part of it, will not become rows."""
        self.drops[drop.reason] += 1

    @property
    def not_converged(self) -> int:
        """Rows with any status but converged."""
        return self.rows - self.statuses[CONVERGED]

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.start

    @property
    def rate(self) -> float:
        """Conformers per second over the last minute."""
        if len(self._recent) < 2:
            return 0.0
        (t0, n0), (_, n1) = self._recent[0], self._recent[-1]
        return (n1 - n0) / max(time.monotonic() - t0, 1e-3)

    @property
    def expected(self) -> int:
        """Estimate of the rows at the end: unread lines are taken to be like those read."""
        kept = self.molecules / self.lines_read if self.lines_read else 1.0
        molecules = self.molecules + kept * max(0, self.n_lines - self.lines_read)
        return max(self.rows, round(molecules * self.conformers) - self.missing)

    @property
    def eta(self) -> str:
        """Time left as h:mm:ss, or -:--:-- while there is no rate."""
        if not self.rate:
            return "-:--:--"
        left = int((self.expected - self.rows) / self.rate)
        return f"{left // 3600}:{left // 60 % 60:02d}:{left % 60:02d}"

    @property
    def pace(self) -> str:
        """How far, how fast, how long."""
        rate = f"{self.rate:.1f}" if self.rate >= 1 else f"{self.rate:.2f}"
        return f"{self.rows}/{self.expected} conformers, {rate} conformers/s, ETA {self.eta}"

    @property
    def outcome(self) -> str:
        """Input lines kept and dropped, and conformers without a converged result."""
        return (
            f"{self.molecules} molecules kept, {self.lines_read - self.molecules} dropped, "
            f"{self.not_converged} not converged"
        )

    @property
    def activity(self) -> list[str]:
        """What keeps rows from coming, a line each; nothing while they come."""
        lines = [f"compiling {label}: {seconds:.0f} s" for label, seconds in self.compiling]
        if len(lines) > COMPILING_SHOWN:
            more = len(lines) - COMPILING_SHOWN + 1
            lines[COMPILING_SHOWN - 1 :] = [f"compiling {more} more programs"]
        if not lines and self.rows == self.rows_before and not self.compiles:
            lines = ["starting the worker processes"]
        return lines


@runtime_checkable
class Display(Protocol):
    """What `generate` tells about a run."""

    def __enter__(self) -> Display: ...

    def __exit__(self, *_: object) -> None: ...

    def update(self, stats: Stats) -> None:
        """Called several times a second."""

    def say(self, text: str) -> None:
        """An event worth a line of its own."""

    def begin(self, text: str) -> None:
        """Something long has begun; worth a line where nothing else would show it."""


class Quiet:
    """Shows nothing; for tests and for use as a library."""

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, stats: Stats) -> None:
        """Show nothing."""

    def say(self, text: str) -> None:
        """Show nothing."""

    def begin(self, text: str) -> None:
        """Show nothing."""


class Plain(Quiet):
    """A line every ten seconds, for logs."""

    def __init__(self, every: float = PLAIN_SECONDS) -> None:
        self._every = every
        self._last = time.monotonic()

    def update(self, stats: Stats) -> None:
        """A line, if it is time for one."""
        if time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            self.say("; ".join([stats.pace, stats.outcome, *stats.activity]))

    def say(self, text: str) -> None:
        """Print at once: logs are read while they are written."""
        print(text, flush=True)

    def begin(self, text: str) -> None:
        """Print at once."""
        self.say(text)


class Bar(Quiet):
    """A live progress bar, and below it what has come out so far and what is being compiled."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            SpinnerColumn(), BarColumn(bar_width=16), TextColumn("{task.description}")
        )
        self._task = self._bar.add_task("starting", total=None)
        self._below = Text()
        self._live = Live(Group(self._bar, self._below), console=console, refresh_per_second=4)

    def __enter__(self) -> Bar:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def update(self, stats: Stats) -> None:
        """Move the bar."""
        self._bar.update(
            self._task, completed=stats.rows, total=stats.expected, description=stats.pace
        )
        self._below.plain = "\n".join(f"  {line}" for line in [stats.outcome, *stats.activity])

    def say(self, text: str) -> None:
        """A line above the bar."""
        self._live.console.print(text, highlight=False, markup=False, soft_wrap=True)


def display_for(console: Console) -> Display:
    """A bar on a terminal, plain lines elsewhere."""
    return Bar(console) if console.is_terminal else Plain()

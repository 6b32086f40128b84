"""How far a run has come, and what of that it shows (`qm1b.process.display`)."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field

from pyscf_ipu.base.terminal import counted
from qm1b.engine.programs import PROGRAM_SECONDS, ProgramEvent
from qm1b.folder.manifest.tally import Counts, Tally
from qm1b.process.display import speed, time_left
from qm1b.rows.schema import Drop, Row
from qm1b.rows.unit import Unit
from qm1b.run.progress.work import PricedWork

WINDOW_SECONDS, WINDOW_ROWS = 60.0, 16
"""A rate is that of the last minute, and of as many rows at least."""
MOST_IDLE = 0.9
"""Part of that time that may count as spent on programs: a rate of rows needs some time."""
COMPILING_SHOWN = 4


@dataclass(kw_only=True)
class Stats(Counts):
    """Counts of a run and of what was in its folder. Everything shown is derived from them.

    A line is kept as soon as it passes the filters, until RDKit finds no conformer.  The time left
    comes from the price of the rows to come, because molecules differ in size.
    """

    n_lines: int
    """Lines that will be read."""
    conformers: int
    """Conformers asked for, per molecule."""
    work: PricedWork = field(default_factory=PricedWork)
    missing: int = 0
    """Conformers of kept lines that RDKit did not find."""
    rows_before: int = 0
    """Rows that were in the folder when the run began."""
    compiles: list[ProgramEvent] = field(default_factory=list)
    """Programs that are ready."""
    compiling: list[tuple[str, float]] = field(default_factory=list)
    """Programs that are being made, and the seconds since they were begun."""
    lost_rows: int = 0
    """Conformers that were computed, of units that were not finished; known in the end."""
    pending_programs: int = 0
    """Programs that conformers wait for and nobody has begun."""
    workers: int = 1
    """Compute processes, which make programs at the same time."""
    starved_seconds: float = 0.0
    """Time that compute processes waited for conformers, summed over the processes."""
    troubles: Counter[str] = field(default_factory=Counter)
    """Rows of this run beside which something failed (`Row.troubles`)."""
    start: float = field(default_factory=lambda: time.monotonic())
    _recent: deque[tuple[float, int, float]] = field(default_factory=deque, init=False)
    _made: list[tuple[float, float]] = field(default_factory=list, init=False)

    @classmethod
    def after(cls, tally: Tally, n_lines: int, conformers: int, work: PricedWork) -> Stats:
        """The counts of a run that resumes where an earlier one has ended."""
        missing = tally.kept_lines * conformers - tally.rows
        return cls(
            n_lines=n_lines,
            conformers=conformers,
            work=work,
            missing=missing,
            rows_before=tally.rows,
            **tally.so_far(),
        )

    def __post_init__(self) -> None:
        self._recent.append((self.start, self.rows, self._done))

    def computing(self) -> None:
        """Workers have started: before that there is no rate."""
        if len(self._recent) == 1 and not self._made:
            self._recent[0] = (time.monotonic(), *self._recent[0][1:])

    def settle(self, tally: Tally) -> None:
        """Count what the folder holds: what was begun and not finished is lost."""
        self.lost_rows = max(0, self.rows - tally.rows)  # of lines tried again, some are there
        for name, value in tally.so_far().items():
            setattr(self, name, value)

    def add_unit(self, unit: Unit, lines: int) -> None:
        """A unit is done elsewhere."""
        before = self.kept_lines
        super().add_unit(unit, lines)
        self.troubles.update(name for row in unit.rows for name in row.troubles)
        self.missing += (self.kept_lines - before) * self.conformers - len(unit.rows)
        self.work.elsewhere(unit)
        self._tick()

    def count_row(self, row: Row) -> None:
        """One conformer is done."""
        self.rows += 1
        self.statuses[row.status.split(":")[0]] += 1
        self.troubles.update(row.troubles)
        self.work.computed(row)
        self._tick()

    def uncount_row(self, row: Row) -> None:
        """One conformer is to be done once more."""
        self.rows -= 1
        self.statuses[row.status.split(":")[0]] -= 1
        self.troubles -= Counter(row.troubles)
        self.work.again(row)

    @property
    def _done(self) -> float:
        """Priced seconds of rows; without a preview, their number."""
        return self.work.done if self.work.preview else float(self.rows)

    def _tick(self) -> None:
        """Remember the rows of the last minute, and WINDOW_ROWS at least."""
        self._recent.append((time.monotonic(), self.rows, self._done))
        begin = self._recent[-1][0] - WINDOW_SECONDS
        while len(self._recent) > WINDOW_ROWS and self._recent[1][0] < begin:
            self._recent.popleft()

    def count_refused(self, row: Row, drops: tuple[Drop, list[Drop]] | None) -> None:
        """One conformer will not become a row; the first of its line brings the line's drop."""
        self.work.refused(row)
        if drops is not None:
            drop, void = drops
            self.count_drop(drop)
            self.drops -= Counter(one.reason for one in void)
            self.kept_lines -= 1

    def count_drop(self, drop: Drop) -> None:
        """One line, or a part of it, will not become rows."""
        self.drops[drop.reason] += 1

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.start

    def program_ready(self, event: ProgramEvent) -> None:
        """A program can be used."""
        self.compiles.append(event)
        self._made.append((time.monotonic(), event.seconds or 0.0))

    @property
    def last_row(self) -> float:
        """When the last row came, by `time.monotonic`; the start if there is none."""
        return self._recent[-1][0]

    def idle_seconds(self, since: float) -> float:
        """The time since then in which workers made programs, spread over the workers."""
        now = time.monotonic()
        spans = [(end - seconds, end) for end, seconds in self._made]
        spans += [(now - seconds, now) for _, seconds in self.compiling]
        return sum(max(0.0, end - max(begin, since)) for begin, end in spans) / self.workers

    @property
    def rate(self) -> float:
        """Conformers per second of late, compiling included."""
        since, rows, _ = self._recent[0]
        return max(0, self.rows - rows) / max(time.monotonic() - since, 1e-3)

    @property
    def priced_rate(self) -> float:
        """Priced seconds per second of late, compiling left out."""
        since, _, done = self._recent[0]
        seconds = time.monotonic() - since
        seconds -= min(self.idle_seconds(since), MOST_IDLE * seconds)
        return (self._done - done) / max(seconds, 1e-3)

    def seconds_for(self, n_lines: int) -> float:
        """Time that what was begun and some further lines take; as priced, without a rate."""
        preview = self.work.preview
        seconds = preview.seconds_of(n_lines, self.work.position) if preview else 0.0
        return (max(0.0, self.work.pending) + seconds) / (self.priced_rate or self.workers)

    @property
    def seconds_left(self) -> float | None:
        """Estimate: the work to come at the rate of late, and the missing programs.

        None while there is no rate.
        """
        rate = self.priced_rate
        if not rate:
            return None
        made = [event.seconds or 0.0 for event in self.compiles]
        typical = sum(made) / len(made) if made else PROGRAM_SECONDS
        programs = (self.pending_programs + self.work.programs_ahead) * typical
        programs += sum(max(0.0, typical - seconds) for _, seconds in self.compiling)
        left = self.work.left(max(0, self.n_lines - self.lines), self.expected - self.rows)
        return left / rate + programs / self.workers

    @property
    def expected(self) -> int:
        """Estimate of the rows at the end: unread lines are taken to be like those read."""
        share = self.kept_lines / self.lines if self.lines else 1.0
        molecules = self.kept_lines + share * max(0, self.n_lines - self.lines)
        return max(self.rows, round(molecules * self.conformers) - self.missing)

    @property
    def eta(self) -> str:
        """Time left as h:mm:ss, or -:--:-- while there is no rate."""
        return time_left(self.seconds_left)

    @property
    def pace(self) -> str:
        """How far, how fast, how long."""
        return f"{self.rows}/{self.expected} conformers, {speed(self.rate)}, ETA {self.eta}"

    @property
    def outcome(self) -> str:
        """Input lines kept, those in dropped.csv, and conformers without a converged result."""
        return (
            f"{counted(self.kept_lines, 'molecule')} kept, {self.drops.total()} dropped, "
            f"{self.not_converged} not converged"
        )

    @property
    def notes(self) -> list[str]:
        """What has come out so far, and what keeps rows from coming."""
        return [self.outcome, *self.activity]

    @property
    def activity(self) -> list[str]:
        """What keeps rows from coming, one line each; nothing while they come."""
        lines = [f"compiling {label}: {seconds:.0f} s" for label, seconds in self.compiling]
        if len(lines) > COMPILING_SHOWN:
            more = len(lines) - COMPILING_SHOWN + 1
            lines[COMPILING_SHOWN - 1 :] = [f"compiling {more} more programs"]
        begins = self.rows == self.rows_before and not self.compiles
        if not lines and begins and self.expected:
            lines = ["starting the worker processes"]
        return lines

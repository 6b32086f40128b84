"""What a run of `qm1b generate` takes from the machine, twice a second.  Linux only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from qm1b.progress import Plain, Stats

SAMPLE_SECONDS = 0.5
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Sample:
    """The state of the run at one moment."""

    seconds: float
    rows: int
    cpu_seconds: float
    """Of all workers since their start."""
    mib: float
    files: int
    processes: int
    programs: int
    """Loaded or compiled so far, by all workers."""


class Watch(Plain):
    """Plain progress, and a sample twice a second."""

    def __init__(self) -> None:
        super().__init__(every=30.0)
        self.samples: list[Sample] = []

    def update(self, stats: Stats) -> None:
        """Take a sample if it is time for one."""
        super().update(stats)
        if not self.samples or stats.seconds - self.samples[-1].seconds >= SAMPLE_SECONDS:
            self.samples.append(sample(stats))


def sample(stats: Stats) -> Sample:
    """Of this process and its children, now."""
    kib, files, ticks, n = 0, 0, 0, 0
    for pid in family():
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            files += len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:  # it has just ended
            continue
        kib += next(int(line.split()[1]) for line in rollup.splitlines() if line[:4] == "Pss:")
        ticks += int(fields[11]) + int(fields[12]) if pid != os.getpid() else 0
        n += 1
    programs = len(stats.compiles)
    return Sample(stats.seconds, stats.rows, ticks / TICKS, kib / 1024, files, n, programs)


def family() -> Iterator[int]:
    """This process and its children; workers have none."""
    yield os.getpid()
    for task in Path("/proc/self/task").iterdir():
        yield from map(int, (task / "children").read_text().split())

"""What a run of `qm1b generate` takes: each batch of the engine, and the machine twice a second.

Linux only.  `FACTORY` names an engine for `qm1b.run.generate.Run`, whose workers append a line of
JSON for every batch to the file that the environment variable `LOG` names.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from qm1b.engine.factory import pyscf_ipu_solver
from qm1b.process.display import Plain
from qm1b.run.progress.progress import Stats

LOG = "SOAK_BATCHES"
FACTORY = "benchmarks.generator.watching:timed"
SAMPLE_SECONDS = 0.5
TICKS = os.sysconf("SC_CLK_TCK")


class Batch(NamedTuple):
    """One call of the engine."""

    ended: float
    """Seconds of the machine's monotonic clock."""
    cpu_seconds: float
    program: str
    rows: int
    cycles: int
    """SCF cycles of all its rows: on a CPU they run one after another."""


class Timed:
    """A solver that takes the time of `run`, and is the solver itself in everything else."""

    def __init__(self, solver: Any, precision: str) -> None:
        self._solver, self._precision = solver, precision

    def __getattr__(self, name: str) -> Any:
        return getattr(self._solver, name)

    def run(self, shape: Any, molecules: Sequence[Any], **aids: Any) -> Any:
        """As the solver's own."""
        before = time.process_time()
        found = self._solver.run(shape, molecules, **aids)
        used = time.process_time() - before
        cycles = int(sum(one.cycles for one in found))
        program = f"{shape.label}, {self._precision}"
        batch = Batch(time.monotonic(), used, program, len(molecules), cycles)
        with open(os.environ[LOG], "a") as stream:  # one short write: lines do not mix
            stream.write(json.dumps(batch._asdict()) + "\n")
        return found


def timed(**level: Any) -> Timed:
    """The factory."""
    return Timed(pyscf_ipu_solver(**level), level["precision"])


def read(path: Path) -> list[Batch]:
    """All batches, in the order in which they ended."""
    return sorted(Batch(**json.loads(line)) for line in path.read_text().splitlines())


class Sample(NamedTuple):
    """The state of the run at one moment."""

    seconds: float
    rows: int
    cpu_seconds: float
    """Of all workers since their start."""
    mib: float
    files: int
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
    """Of this process and those below it, now."""
    kib, files, ticks = 0, 0, 0
    for pid in family():
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            files += len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:  # it has just ended
            continue
        kib += next(int(line.split()[1]) for line in rollup.splitlines() if line[:4] == "Pss:")
        ticks += int(fields[11]) + int(fields[12]) if pid != os.getpid() else 0
    return Sample(stats.seconds, stats.rows, ticks / TICKS, kib / 1024, files, len(stats.compiles))


def family() -> Iterator[int]:
    """This process and all below it: a server has forked the workers."""
    found = [os.getpid()]
    for process in found:
        yield process
        with suppress(OSError):  # it has just ended
            for task in Path(f"/proc/{process}/task").iterdir():
                found += map(int, (task / "children").read_text().split())

"""The generator's engine, which notes what each batch takes.

A factory for `qm1b.generate.Run`: workers append a line of JSON for every batch to the file that
the environment variable `LOG` names.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from qm1b.engine import pyscf_ipu_solver

LOG = "SOAK_BATCHES"
FACTORY = "timed_engine:timed"


@dataclass(frozen=True)
class Batch:
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
        cycles = int(sum(found.cycles[: len(molecules)]))
        program = f"{shape.label}, {self._precision}"
        batch = Batch(time.monotonic(), used, program, len(molecules), cycles)
        with open(os.environ[LOG], "a") as stream:  # one short write: lines do not mix
            stream.write(json.dumps(asdict(batch)) + "\n")
        return found


def timed(**level: Any) -> Timed:
    """The factory."""
    return Timed(pyscf_ipu_solver(**level), level["precision"])


def read(path: Path) -> list[Batch]:
    """All batches, in the order in which they ended."""
    batches = [Batch(**json.loads(line)) for line in path.read_text().splitlines()]
    return sorted(batches, key=lambda batch: batch.ended)

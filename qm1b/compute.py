"""The engine in worker processes, one a core: batches in, results and compile events out.

Each worker is single-threaded: for molecules this small, one program a core beats one program on
all cores, and nothing is shared that could make a result depend on the rest. Workers are not pinned
to cores: on a machine with other work one would wait while a core stands idle.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from . import engine
from .auditing import audited
from .ladder import climb, ladder_for, run_of
from .presets import Level
from .schema import Conformer, Result
from .workers import Connection

ERROR_CHARACTERS = 300


@dataclass(frozen=True)
class Job:
    """A batch for one worker."""

    shape: Hashable
    conformers: tuple[Conformer, ...]
    is_retry: bool = False
    """The conformer's batch has failed before, and this is its chance by itself."""
    deaths: int = 0
    """Processes that ended while they had this conformer and no other."""
    alone: bool = False
    """Not while another process computes."""
    is_probe: bool = False
    """Its rows are nobody's; see `qm1b.deaths`."""

    def one_by_one(self) -> list[Job]:
        """Its conformers by themselves, after the batch has failed."""
        return [replace(self, conformers=(c,), is_retry=True) for c in self.conformers]


@dataclass(frozen=True)
class Ready:
    """The worker has its engine."""


@dataclass(frozen=True)
class Compiling:
    """The worker has begun to compile a shape."""

    shape: Hashable


@dataclass(frozen=True)
class Compiled:
    """A program is ready; `cached` if it came from the disk cache."""

    shape: Hashable
    seconds: float
    cached: bool


@dataclass(frozen=True)
class Done:
    """The results of the worker's job, in the order of its conformers."""

    results: tuple[Result, ...]


@dataclass(frozen=True)
class Failed:
    """The worker's job raised; the worker lives on."""

    error: str


def environment() -> dict[str, str]:
    """What makes numpy, its BLAS and XLA single-threaded; must be set before they are imported.

    XLA's remarks about the CPU features of programs from the disk cache are kept out of the log.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    return {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "NPROC": "1",
        "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "3"),
        "XLA_FLAGS": f"{flags} --xla_cpu_multi_thread_eigen=false".strip(),
    }


@dataclass(frozen=True)
class Service:
    """What a worker does with every conformer."""

    level: Level
    retry: bool = True
    """Try again what does not converge (`qm1b.ladder`)."""
    audit: float = 0.0
    """Part that PySCF computes again (`qm1b.auditing`)."""
    seed: int = 0
    """Of the run; decides which part."""


def serve(conn: Connection, factory: str, service: Service) -> None:
    """A worker: `Job` in; `Compiling`, `Compiled` and `Done` or `Failed` out."""
    level = service.level
    solver_at = engine.at_precisions(factory, level)
    solver = solver_at(None)
    ladder = ladder_for(level.precision, service.retry)
    conn.send(Ready())
    compiled: set[Hashable] = set()
    while True:
        job: Job = conn.recv()
        try:
            if job.shape not in compiled:
                conn.send(Compiling(job.shape))
                event = solver.compile(job.shape)
                compiled.add(job.shape)
                if event is not None:
                    conn.send(Compiled(job.shape, float(event.seconds), bool(event.cached)))
            results = climb(run_of(job.shape, solver_at), _molecules(job), ladder)
            results = audited(job.conformers, results, level, service.audit, service.seed)
            conn.send(Done(results))
        except (BrokenPipeError, ConnectionError):
            raise  # the pipe is gone, and so is the parent
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            conn.send(Failed(text[:ERROR_CHARACTERS]))


def _molecules(job: Job) -> list[Any]:
    """The conformers of a batch as the engine wants them."""
    from pyscf_ipu.molecule import Molecule

    return [Molecule(c.numbers, c.positions, c.charge, smiles=c.smiles) for c in job.conformers]

"""The engine in worker processes, one a core: batches in, results and compile events out.

Each worker is single-threaded: for molecules this small, one program a core beats one program on
all cores, and nothing is shared that could make a result depend on the rest. Workers are not pinned
to cores: on a machine with other work one would wait while a core stands idle.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from . import engine
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
    """The conformer's batch has failed before, and this is its second and last chance."""


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


def serve(conn: Connection, factory: str, level: Level) -> None:
    """A worker: `Job` in; `Compiling`, `Compiled` and `Done` or `Failed` out."""
    solver = engine.build(factory, level)
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
            results = _run(solver, job)
            conn.send(Done(results))
        except (BrokenPipeError, ConnectionError):
            raise  # the pipe is gone, and so is the parent
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            conn.send(Failed(text[:ERROR_CHARACTERS]))


def _run(solver: Any, job: Job) -> tuple[Result, ...]:
    """One batch through the engine, as plain numbers."""
    from pyscf_ipu.molecule import Molecule

    molecules = [
        Molecule(c.numbers, c.positions, c.charge, smiles=c.smiles) for c in job.conformers
    ]
    found = solver.run(job.shape, molecules)
    return tuple(
        Result(
            status=str(found.status[i]),
            n_ao=int(solver.n_ao(molecule.numbers)),
            energy=float(found.energy[i]),
            homo=float(found.homo[i]),
            lumo=float(found.lumo[i]),
            energy_std=float(found.energy_std[i]),
            dipole=_vector(found.dipole[i]),
            converged=bool(found.converged[i]),
            cycles=int(found.cycles[i]),
            commutator_norm=float(found.commutator_norm[i]),
            mo_energy=tuple(float(e) for e in found.mo_energy[i]),
        )
        for i, molecule in enumerate(molecules)
    )


def _vector(xyz: Any) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in xyz)
    return x, y, z

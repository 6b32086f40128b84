"""The engine in worker processes, one per core: batches in, results and compile events out.

Each worker is single-threaded. For molecules this small, one program per core beats one program on
all cores, and nothing is shared that could make a result depend on the others. Workers are not
pinned to cores: on a machine with other work, one would wait while a core is idle.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from qm1b.engine import factory as engine_factory
from qm1b.engine.ladder import climb, ladder_for, run_of
from qm1b.engine.messages import Compiled, Compiling, Done, Failed, Job
from qm1b.process.worker import Connection, Ready
from qm1b.reference.inline_audit import audited
from qm1b.settings import RunSettings

if TYPE_CHECKING:
    from pyscf_ipu.molecule.molecule import Molecule

ERROR_CHARACTERS = 300


def serve(conn: Connection, factory: str, settings: RunSettings) -> None:
    """A worker: `Job` in; `Compiling`, `Compiled` and `Done` or `Failed` out."""
    level = settings.level
    engine_at = engine_factory.at_precisions(factory, level)
    engine = engine_at(None)
    ladder = ladder_for(level.precision, settings.retry)
    conn.send(Ready())
    compiled: set[Hashable] = set()
    while True:
        job: Job = conn.recv()
        try:
            if job.shape not in compiled:
                conn.send(Compiling(job.shape))
                event = engine.compile(job.shape)
                compiled.add(job.shape)
                if event is not None:
                    conn.send(Compiled(job.shape, float(event.seconds), bool(event.cached)))
            results = climb(run_of(job.shape, engine_at), _molecules(job), ladder)
            results = audited(job.conformers, results, level, settings.audit, settings.seed)
            conn.send(Done(results))
        except (BrokenPipeError, ConnectionError):
            raise  # the pipe is gone, and so is the parent
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            conn.send(Failed(text[:ERROR_CHARACTERS]))


def _molecules(job: Job) -> list[Molecule]:
    """The conformers of a batch as the engine wants them."""
    from pyscf_ipu.molecule.molecule import Molecule

    return [Molecule(c.numbers, c.positions, c.charge, smiles=c.smiles) for c in job.conformers]

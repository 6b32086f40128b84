"""The engine in worker processes, one per core: batches in, results and compile events out.

Each worker is single-threaded. For molecules this small, one program per core beats one program on
all cores, and nothing is shared that could make a result depend on the others. Workers are not
pinned to cores: on a machine with other work, one would wait while a core is idle.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from pyscf_ipu.base.errors import TooLarge
from qm1b.engine import factory as engine_factory
from qm1b.engine.factory import Engine
from qm1b.engine.ladder import climb, ladder_for, run_of
from qm1b.engine.programs import ProgramEvent
from qm1b.errors import is_of_no_molecule
from qm1b.process.jobs import Done, Failed, Job, serve_jobs
from qm1b.process.worker import Connection
from qm1b.reference.inline_audit import audited
from qm1b.rows.identity import is_drawn
from qm1b.rows.schema import TOO_LARGE, Conformer, Row
from qm1b.settings import RunSettings

ERROR_CHARACTERS = 300


def serve(conn: Connection, factory: str, settings: RunSettings) -> None:
    """A worker: `Job` in; `ProgramEvent`, and `Done` or `Failed` out."""
    engine_at = engine_factory.at_precisions(factory, settings)
    engine = engine_at(None)
    ladder = ladder_for(settings)
    compiled: set[tuple[Hashable, ProgramKind]] = set()

    def computed(job: Job[Conformer]) -> list[Row]:
        rows: dict[int, Row] = {}
        for kind, members in _parts(job.items, settings).items():
            at = partial(engine_at, open_shell=True) if kind.open_shell else engine_at
            if (job.shape, kind) not in compiled:
                conn.send(ProgramEvent(job.shape, open_shell=kind.open_shell))
                ready = _ready(at(None), job.shape, kind.stability, forces=settings.forces)
                compiled.add((job.shape, kind))
                if ready is not None:
                    conn.send(replace(ready, open_shell=kind.open_shell))
            conformers = [job.items[i] for i in members]
            run = run_of(
                job.shape,
                at,
                kind.stability,
                forces=settings.forces,
                coarse=settings.coarse,
                properties=settings.properties,
            )
            rows |= dict(zip(members, climb(run, conformers, ladder), strict=True))
        return [rows[i] for i in range(len(job.items))]

    def answer(job: Job[Conformer]) -> Done[tuple[Row, ...]] | Failed:
        try:
            rows = computed(job)
        except TooLarge as error:  # seen when the program was made
            return Done(tuple(_refused(job, f"{TOO_LARGE}: {error}", engine)))
        except Exception as error:
            if is_of_no_molecule(error):
                raise
            text = " ".join(f"{type(error).__name__}: {error}".split())
            return Failed(text[:ERROR_CHARACTERS])
        share, seed = settings.audit, settings.seed
        return Done(audited(rows, settings.level, share=share, seed=seed))

    serve_jobs(conn, answer)


def _refused(job: Job[Conformer], status: str, engine: Engine) -> Iterator[Row]:
    """The conformers of a shape that no machine of this run holds; none of them becomes a row."""
    for conformer in job.items:
        yield Row(conformer=conformer, status=status, n_ao=engine.n_ao(conformer.numbers))


def _ready(engine: Engine, shape: Hashable, stability: bool, forces: bool) -> ProgramEvent | None:
    """Make all programs of a shape ready; None if they were."""
    events = [engine.compile(shape, stability=stability)]
    events += [engine.compile_gradient(shape)] if forces else []
    made = [event for event in events if event is not None]
    seconds = sum(float(event.seconds) for event in made)
    return ProgramEvent(shape, seconds, all(event.cached for event in made)) if made else None


class ProgramKind(NamedTuple):
    """What decides, beside the shape, which program computes a conformer."""

    stability: bool
    """Whether instabilities are followed."""
    open_shell: bool


def _parts(conformers: Sequence[Conformer], settings: RunSettings) -> dict[ProgramKind, list[int]]:
    """The conformers of a batch by kind.

    The run's seed and the row alone decide which rows belong to the share of `--stability`.
    """
    parts: dict[ProgramKind, list[int]] = {}
    share, seed = settings.stability_share, settings.seed
    for i, one in enumerate(conformers):
        drawn = is_drawn(share, "stability", seed, conformer=one)
        parts.setdefault(ProgramKind(one.follow or drawn, one.open_shell), []).append(i)
    return parts

"""Which compute worker gets which batch.

A program is compiled on as few workers as possible: a worker prefers shapes that it has, then
shapes that no worker has. It takes another's shape only once that program is in the disk cache.
Batches that together need more memory than the machine has do not run at the same time. What has
ended its process is tried again with the machine to itself, since the usual reason is memory.
"""

import functools
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from pyscf_ipu.base.host.memory_limit import available_bytes, free_bytes
from qm1b.engine import worker as engine_worker
from qm1b.engine.buckets import Buckets
from qm1b.engine.factory import Engine, ao_counter
from qm1b.engine.ladder import memory_of
from qm1b.engine.programs import ProgramEvent
from qm1b.process.jobs import Done, Failed, Job, Lost
from qm1b.process.pool import Policy, Pool
from qm1b.process.worker import Worker
from qm1b.rows.schema import TOO_LARGE, Conformer, Row
from qm1b.settings import RunSettings

POLICY = Policy(
    kind="compute",
    probe="a hydrogen molecule",
    tries=2,
    seconds=3600.0,  # a batch that takes longer, compiling included, has hung
    is_final=False,
    nothing="no answer",
)

MEMORY_SHARE = 0.8
"""Part of the machine's memory that running batches may need together."""

MAX_FAILURES = 8
"""Failures of a shape without any success, after which its conformers are given up."""

Flush = Callable[[], Iterable[Hashable]]
"""Names the shapes whose incomplete batch may go, if there is no complete one."""


class ComputePool(Pool[Conformer]):
    """The compute workers, and the batches that they have."""

    def __init__(
        self, n: int, factory: str, settings: RunSettings, engine: Engine, log: Path
    ) -> None:
        """Start the workers.

        Args:
            n: their number.
            factory: makes their engine (`qm1b.engine.factory`).
            settings: those of the run.
            engine: one like theirs, for this process to ask.
            log: takes their stdout and stderr.
        """
        self._n_ao = ao_counter(engine)
        self.memory_bytes = functools.cache(memory_of(engine, factory, settings))
        """Memory that a batch of a shape needs, with everything that is tried for it."""
        self._memory_limit = MEMORY_SHARE * available_bytes()
        self._have: list[set[Hashable]] = [set() for _ in range(n)]
        self._on_disk: set[Hashable] = set()
        self._failures: Counter[Hashable] = Counter()
        self._worked: set[Hashable] = set()
        self._compiling: dict[int, tuple[str, float]] = {}
        serve, args, name = engine_worker.serve, (factory, settings), "qm1b-compute"
        workers = [Worker(serve, args, log, name=name) for _ in range(n)]
        super().__init__(workers, functools.partial(probe, engine), POLICY)

    @property
    def idle(self) -> int:
        """Workers that have their engine and no batch."""
        return sum(worker.job is None and not worker.fresh for worker in self.workers)

    @property
    def running(self) -> int:
        """Conformers that are on a worker or wait for a second try."""
        return sum(len(job.items) for job in [*self.jobs, *self._retries])

    @property
    def compiling(self) -> list[tuple[str, float]]:
        """Shapes whose programs are being made, and the seconds since they were begun."""
        now = time.monotonic()
        return [(label, now - since) for label, since in self._compiling.values()]

    def unmade(self, shapes: Iterable[Hashable]) -> list[Hashable]:
        """The shapes whose programs nobody has or makes."""
        return [s for s in shapes if not any(s in have for have in self._have)]

    def dispatch(self, buckets: Buckets, flush: Flush) -> Iterator[Row]:
        """Give every idle worker a batch; yields rows for conformers of given-up shapes.

        Args:
            buckets: the conformers that wait.
            flush: names the shapes whose incomplete batch may go, if there is no complete one.
        """
        for index, worker in enumerate(self.workers):
            batch = functools.partial(self._batch, index, buckets, flush)
            while worker.job is None and (job := self._next(batch)) is not None:
                if self._given_up(job.shape) and not job.is_probe:
                    yield from self._errors(job, "the program of this shape kept failing")
                else:
                    self._have[index].add(job.shape)
                    self._send(index, job)

    def collect(self) -> Iterator[Row | ProgramEvent]:
        """What has arrived from the workers. Workers that died or hang are replaced.

        Raises:
            UserError: workers die before they have an engine, or whatever they compute.
        """
        for index, job, news in self._events():
            self._compiling.pop(index, None)
            match news:
                case ProgramEvent():
                    event = replace(news, worker=index)
                    if event.seconds is None:
                        self._compiling[index] = event.label, time.monotonic()
                    else:
                        self._on_disk.add(event.shape)
                    yield event
                case Done(rows):
                    if not any(row.status.startswith(TOO_LARGE) for row in rows):
                        self._on_disk.add(job.shape)
                    self._worked.add(job.shape)
                    yield from () if job.is_probe else rows
                case Failed(error) | Lost(_, error):
                    yield from self._failed(job, error, again=isinstance(news, Failed))

    def _failed(self, job: Job[Conformer], error: str, again: bool) -> Iterator[Row]:
        """The engine raised or is given up: the conformers may be tried once, one by one."""
        self._failures[job.shape] += 1
        if again and not job.is_retry:
            self._retries.extend(job.one_by_one())
        else:
            yield from self._errors(job, error)

    def _start(self, index: int) -> None:
        self._have[index].clear()
        self._compiling.pop(index, None)
        super()._start(index)

    def _send(self, index: int, job: Job[Conformer]) -> None:
        self._compiling.pop(index, None)  # a probe that failed says nothing more
        super()._send(index, job)

    def _batch(self, index: int, buckets: Buckets, flush: Flush) -> Job[Conformer] | None:
        """A batch for a worker; None if nothing is ready, or nothing fits."""
        # To make a program takes longer than to fill a batch: begin before the batch is full.
        for shapes in (buckets.full(), flush(), self.unmade(buckets.fullest())):
            fit = [s for s in shapes if self._has_memory(s)]
            mine = [s for s in fit if s in self._have[index]]
            free = [s for s in fit if s in self._on_disk]
            for shape in [*mine, *self.unmade(fit), *free]:
                return Job(buckets.take(shape), shape)
        return None

    def _fits(self, job: Job[Conformer]) -> bool:
        return self._has_memory(job.shape)

    def _has_memory(self, shape: Hashable) -> bool:
        """Whether a batch fits into memory beside those that run; one by itself always may.

        It must fit into what other programs leave free just now, too.
        """
        used = sum(self.memory_bytes(job.shape) for job in self.jobs)
        if not used:
            return True
        more = self.memory_bytes(shape)
        return used + more <= self._memory_limit and more <= free_bytes()

    def _given_up(self, shape: Hashable) -> bool:
        return self._failures[shape] >= MAX_FAILURES and shape not in self._worked

    def _errors(self, job: Job[Conformer], error: str) -> Iterator[Row]:
        for c in job.items:
            yield Row(conformer=c, status=f"error: {error}", n_ao=self._n_ao(c.numbers))


def probe(engine: Engine) -> Job[Conformer]:
    """A hydrogen molecule as a batch, which any sound machine computes."""
    from pyscf_ipu.molecule.molecule import Molecule

    numbers = np.array([1, 1], np.uint8)
    positions = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.4]])
    conformer = Conformer(
        line=0, smiles="[H][H]", conformer=0, seed=0, charge=0, numbers=numbers, positions=positions
    )
    return Job((conformer,), engine.shape(Molecule(numbers, positions)), is_probe=True)

"""Which worker gets which batch, and what happens when a batch or a worker is lost (`deaths`).

A program is compiled on as few workers as possible: a worker prefers shapes that it has, then
shapes that no worker has. It takes another's shape only once that program is in the disk cache.
Batches that together need more memory than the machine has do not run at the same time.
"""

import functools
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path

from pyscf_ipu.base.host.memory_limit import available_bytes
from qm1b.engine import worker as engine_worker
from qm1b.engine.buckets import Buckets
from qm1b.engine.deaths import Deaths, probe
from qm1b.engine.factory import Engine, ao_counter
from qm1b.engine.ladder import memory_of
from qm1b.engine.messages import Compiled, Compiling, Done, Failed, Job, ProgramEvent
from qm1b.errors import UserError
from qm1b.process.suspicion import how_it_died
from qm1b.process.worker import Ready, Worker, environment, last_words
from qm1b.rows.schema import Result, Row
from qm1b.settings import RunSettings

JOB_SECONDS = 3600.0
"""A batch that takes longer, compiling included, has hung."""

MEMORY_SHARE = 0.8
"""Part of the machine's memory that running batches may need together."""

MAX_FAILURES = 8
"""Failures of a shape without any success, after which its conformers are given up."""


class ComputePool:
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
        self._log = log
        self._n_ao = ao_counter(engine)
        self.memory_bytes = functools.cache(memory_of(engine, factory, settings))
        """Memory that a batch of a shape needs, with everything that is tried for it."""
        self._memory_limit = MEMORY_SHARE * available_bytes()
        self.workers = [
            Worker(
                engine_worker.serve,
                (factory, settings),
                log,
                env=environment(),
                name="qm1b-compute",
            )
            for _ in range(n)
        ]
        self._have: list[set[Hashable]] = [set() for _ in self.workers]
        self._on_disk: set[Hashable] = set()
        self._retries: deque[Job] = deque()
        self._failures: Counter[Hashable] = Counter()
        self._worked: set[Hashable] = set()
        self._unready_deaths = 0
        self._deaths = Deaths(functools.partial(probe, engine), log)
        self._compiling: dict[int, tuple[str, float]] = {}
        for worker in self.workers:
            worker.start()

    @property
    def idle(self) -> int:
        """Workers that have their engine and no batch."""
        return sum(worker.job is None and not worker.fresh for worker in self.workers)

    @property
    def running(self) -> int:
        """Conformers that are on a worker or wait for a second try."""
        jobs = [*(worker.job for worker in self.workers if worker.job), *self._retries]
        return sum(len(job.conformers) for job in jobs)

    @property
    def compiling(self) -> list[tuple[str, float]]:
        """Shapes whose programs are being made, and the seconds since they were begun."""
        now = time.monotonic()
        return [(label, now - since) for label, since in self._compiling.values()]

    def unmade(self, shapes: Iterable[Hashable]) -> list[Hashable]:
        """Those whose programs nobody has or makes."""
        return [s for s in shapes if not any(s in have for have in self._have)]

    def dispatch(self, buckets: Buckets, flush: Callable[[], Iterable[Hashable]]) -> Iterator[Row]:
        """Give every idle worker a batch; yields rows for conformers of given-up shapes.

        Args:
            buckets: the conformers that wait.
            flush: names the shapes whose incomplete batch may go, if there is no complete one.
        """
        for index, worker in enumerate(self.workers):
            while worker.job is None:
                job = self._next(index, buckets, flush)
                if job is None:
                    break
                if self._given_up(job.shape) and not job.is_probe:
                    yield from self._errors(job, "the program of this shape kept failing")
                    continue
                self._have[index].add(job.shape)
                worker.send(job, JOB_SECONDS)

    def collect(self) -> Iterator[Row | ProgramEvent]:
        """What has arrived from the workers. Workers that died or hang are replaced.

        Raises:
            UserError: workers die before they have an engine, or whatever they compute.
        """
        for index, worker in enumerate(self.workers):
            try:
                for message in worker.messages():
                    yield from self._handle(index, message)
            except EOFError:
                self._died(index)
            else:
                if worker.job is not None and worker.overdue:
                    self._died(index, hung=True)

    def abandon_retries(self) -> None:
        """Forget batches that wait for a second try, and conformers under suspicion."""
        self._retries.clear()
        self._deaths.forget()

    def stop(self) -> None:
        """Kill the workers."""
        for worker in self.workers:
            worker.stop()

    def _next(
        self, index: int, buckets: Buckets, flush: Callable[[], Iterable[Hashable]]
    ) -> Job | None:
        if self._retries:
            retry = self._retries[0]
            alone = not any(worker.job for worker in self.workers)
            may = (alone or not retry.alone) and self._fits(retry.shape)
            return self._retries.popleft() if may else None
        # To make a program takes longer than to fill a batch: begin before the batch is full.
        for shapes in (buckets.full(), flush(), self.unmade(buckets.fullest())):
            shape = self._choose(index, [s for s in shapes if self._fits(s)])
            if shape is not None:
                return Job(shape, buckets.take(shape))
        return None

    def _choose(self, index: int, shapes: list[Hashable]) -> Hashable | None:
        mine = [s for s in shapes if s in self._have[index]]
        free = [s for s in shapes if s in self._on_disk]
        return next(iter([*mine, *self.unmade(shapes), *free]), None)

    def _fits(self, shape: Hashable) -> bool:
        """Whether a batch fits into memory beside those that run; one alone always may."""
        jobs = [worker.job for worker in self.workers if worker.job]
        if any(job.alone for job in jobs):
            return False
        used = sum(self.memory_bytes(job.shape) for job in jobs)
        return not used or used + self.memory_bytes(shape) <= self._memory_limit

    def _handle(self, index: int, message: object) -> Iterator[Row | ProgramEvent]:
        worker = self.workers[index]
        job: Job = worker.job
        self._compiling.pop(index, None)
        match message:
            case Ready():
                worker.fresh = False
                self._unready_deaths = 0
            case Compiling(shape):
                event = ProgramEvent(index, shape)
                self._compiling[index] = event.label, time.monotonic()
                yield event
            case Compiled(shape, seconds, cached):
                self._on_disk.add(shape)
                yield ProgramEvent(index, shape, seconds, cached=cached)
            case Done(results):
                self._on_disk.add(job.shape)
                self._worked.add(job.shape)
                worker.job = None
                if job.is_probe:
                    yield from self._confirmed()
                else:
                    yield from map(Row, job.conformers, results)
            case Failed(error):
                worker.job = None
                if job.is_probe:
                    self._retries.appendleft(self._deaths.probe_failed(job, error))
                else:
                    yield from self._failed(job, error)

    def _died(self, index: int, hung: bool = False) -> None:
        worker = self.workers[index]
        job: Job | None = worker.job
        code = worker.stop()
        self._have[index].clear()
        self._compiling.pop(index, None)
        if worker.fresh:
            self._unready_deaths += 1
            if self._unready_deaths > 2 * len(self.workers):
                raise UserError(
                    f"the compute processes cannot start (exit code {code}): "
                    f"{last_words(self._log)}; the whole message is in {self._log}"
                )
            if job is not None:  # not the batch's fault
                self._retries.append(job)
        elif job is not None:
            what = f"no answer in {JOB_SECONDS:.0f} s" if hung else how_it_died("compute", code)
            self._retries.extend(self._deaths.again(job, what, hung))
        worker.start()

    def _confirmed(self) -> Iterator[Row]:
        """Rows of conformers that ended their process on a machine that is known to be sound."""
        suspects, probes = self._deaths.probed()
        self._retries.extendleft(probes)
        for suspect in suspects:
            self._failures[suspect.job.shape] += 1
            yield from self._errors(suspect.job, suspect.error)

    def _failed(self, job: Job, error: str) -> Iterator[Row]:
        """The engine raised: try the conformers one by one; those that raise again are errors."""
        self._failures[job.shape] += 1
        if job.is_retry:
            yield from self._errors(job, error)
        else:
            self._retries.extend(job.one_by_one())

    def _given_up(self, shape: Hashable) -> bool:
        return self._failures[shape] >= MAX_FAILURES and shape not in self._worked

    def _errors(self, job: Job, error: str) -> Iterator[Row]:
        for c in job.conformers:
            yield Row(c, Result(status=f"error: {error}", n_ao=self._n_ao(c.numbers)))

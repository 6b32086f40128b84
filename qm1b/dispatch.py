"""Which worker gets which batch, and what happens when a batch or a worker is lost.

A program is compiled on as few workers as possible: a worker prefers shapes that it has, then
shapes that nobody has; it takes over another's shape only once that program lies in the disk cache.
Batches that together need more memory than the machine has do not run at the same time.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import compute
from .buckets import Buckets
from .compute import Compiled, Compiling, Done, Failed, Job, Ready, Service
from .errors import UserError
from .schema import Conformer, Result, Row
from .workers import Worker

JOB_SECONDS = 3600.0
"""A batch that takes longer has hung; compiling included."""

MEMORY_SHARE = 0.8
"""Part of the machine's memory that running batches may need together."""

MAX_FAILURES = 8
"""Failures of a shape, with no success ever, after which its conformers are not tried any more."""


@dataclass(frozen=True)
class ProgramEvent:
    """What happened on worker `worker`: a program is being made (seconds None) or ready."""

    worker: int
    label: str
    seconds: float | None = None
    cached: bool = False


class ComputePool:
    """The compute workers, and the batches that they have.

    n_ao gives the AOs of atomic numbers, memory_bytes what a batch of a shape needs.
    """

    def __init__(
        self,
        n: int,
        factory: str,
        service: Service,
        log: Path,
        n_ao: Callable[[Any], int],
        memory_bytes: Callable[[Hashable], int],
        machine_bytes: int,
    ) -> None:
        self._log = log
        self._n_ao = n_ao
        self._memory_bytes = memory_bytes
        self._memory_limit = MEMORY_SHARE * machine_bytes
        self.workers = [
            Worker(
                serve=compute.serve,
                args=(factory, service),
                log=log,
                env=compute.environment(),
            )
            for _ in range(n)
        ]
        self._have: list[set[Hashable]] = [set() for _ in self.workers]
        self._on_disk: set[Hashable] = set()
        self._retries: deque[Job] = deque()
        self._failures: Counter[Hashable] = Counter()
        self._worked: set[Hashable] = set()
        self._unready_deaths = 0
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
        jobs = [worker.job for worker in self.workers if worker.job] + list(self._retries)
        return sum(len(job.conformers) for job in jobs)

    @property
    def compiling(self) -> list[tuple[str, float]]:
        """Shapes whose programs are being made, and for how many seconds already."""
        now = time.monotonic()
        return [(label, now - since) for label, since in self._compiling.values()]

    def dispatch(self, buckets: Buckets, flush: Callable[[], Iterable[Hashable]]) -> Iterator[Row]:
        """Give every idle worker a batch; yields rows for conformers of given-up shapes.

        `flush` names the shapes whose incomplete batch may go now, if there is no complete one.
        """
        for index, worker in enumerate(self.workers):
            while worker.job is None:
                job = self._next(index, buckets, flush)
                if job is None:
                    break
                if self._given_up(job.shape):
                    yield from self._errors(job, "the program of this shape kept failing")
                    continue
                self._have[index].add(job.shape)
                worker.send(job, JOB_SECONDS)

    def collect(self) -> Iterator[Row | ProgramEvent]:
        """What has arrived from the workers; replaces those that died or hang.

        Raises:
            UserError: workers die before they have an engine.
        """
        for index, worker in enumerate(self.workers):
            try:
                for message in worker.messages():
                    yield from self._handle(index, message)
            except EOFError:
                yield from self._died(index, "the compute process died")
            else:
                if worker.job is not None and worker.overdue:
                    yield from self._died(index, f"no answer in {JOB_SECONDS:.0f} s")

    def abandon_retries(self) -> None:
        """Forget batches that wait for a second try."""
        self._retries.clear()

    def stop(self) -> None:
        """Kill the workers."""
        for worker in self.workers:
            worker.stop()

    def _next(
        self, index: int, buckets: Buckets, flush: Callable[[], Iterable[Hashable]]
    ) -> Job | None:
        if self._retries:
            return self._retries.popleft() if self._fits(self._retries[0].shape) else None
        for shapes in (buckets.full(), flush()):
            shape = self._choose(index, [s for s in shapes if self._fits(s)])
            if shape is not None:
                return Job(shape, buckets.take(shape))
        return None

    def _choose(self, index: int, shapes: list[Hashable]) -> Hashable | None:
        mine = [s for s in shapes if s in self._have[index]]
        nobodys = [s for s in shapes if not any(s in have for have in self._have)]
        free = [s for s in shapes if s in self._on_disk]
        return next(iter(mine + nobodys + free), None)

    def _fits(self, shape: Hashable) -> bool:
        """Whether a batch fits into memory beside those that run; one alone always may."""
        used = sum(self._memory_bytes(worker.job.shape) for worker in self.workers if worker.job)
        return not used or used + self._memory_bytes(shape) <= self._memory_limit

    def _handle(self, index: int, message: Any) -> Iterator[Row | ProgramEvent]:
        worker = self.workers[index]
        job: Job = worker.job
        match message:
            case Ready():
                worker.fresh = False
                self._unready_deaths = 0
            case Compiling(shape):
                self._compiling[index] = _label(shape), time.monotonic()
                yield ProgramEvent(index, _label(shape))
            case Compiled(shape, seconds, cached):
                self._compiling.pop(index, None)
                self._on_disk.add(shape)
                yield ProgramEvent(index, _label(shape), seconds, cached)
            case Done(results):
                self._compiling.pop(index, None)
                self._on_disk.add(job.shape)
                self._worked.add(job.shape)
                worker.job = None
                yield from map(Row, job.conformers, results)
            case Failed(error):
                self._compiling.pop(index, None)
                worker.job = None
                yield from self._failed(job, error)

    def _died(self, index: int, what: str) -> Iterator[Row]:
        worker = self.workers[index]
        job: Job | None = worker.job
        code = worker.stop()
        self._have[index].clear()
        self._compiling.pop(index, None)
        if worker.fresh:
            self._unready_deaths += 1
            if self._unready_deaths > 2 * len(self.workers):
                raise UserError(
                    f"the compute processes cannot start (exit code {code}): {self._last_words()}; "
                    f"the whole message is in {self._log}."
                )
            if job is not None:  # not the batch's fault
                self._retries.append(job)
        elif job is not None:
            yield from self._failed(job, f"{what}, exit code {code}")
        worker.start()

    def _failed(self, job: Job, error: str) -> Iterator[Row]:
        """The batch's conformers are tried one by one, once; what fails again is recorded."""
        self._failures[job.shape] += 1
        if job.is_retry:
            yield from self._errors(job, error)
        else:
            one_by_one = (replace(job, conformers=(c,), is_retry=True) for c in job.conformers)
            self._retries.extend(one_by_one)

    def _given_up(self, shape: Hashable) -> bool:
        return self._failures[shape] >= MAX_FAILURES and shape not in self._worked

    def _errors(self, job: Job, error: str) -> Iterator[Row]:
        for conformer in job.conformers:
            yield Row(conformer, self._error(conformer, error))

    def _error(self, conformer: Conformer, error: str) -> Result:
        return Result(status=f"error: {error}", n_ao=self._n_ao(conformer.numbers))

    def _last_words(self) -> str:
        try:
            lines = self._log.read_text(errors="replace").split("\n")
        except OSError:
            lines = []
        return next((line.strip() for line in reversed(lines) if line.strip()), "no message")


def _label(shape: Hashable) -> str:
    return str(getattr(shape, "label", shape))

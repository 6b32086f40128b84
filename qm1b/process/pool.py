"""Worker processes with a job each: what is tried again, and when a molecule is given up.

A job whose process died is tried again item by item. An item that ends its process again, alone, is
suspected, and held back. What becomes of it is written for good, so first the same processes do a
probe, which any sound machine can. If they cannot do that either, the run ends, and nothing is
written that another try would mend.

A pool knows neither what it works on, nor which job comes next.
"""

import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple

from qm1b.errors import UserError
from qm1b.process.jobs import Done, Failed, Job, Lost, Work
from qm1b.process.worker import Ready, Worker, last_words

MAX_PROBES = 3
"""Processes in a row that may end with the probe: somebody may have killed one by hand."""

SHOWN = 5
"""Molecules that a message names."""


@dataclass(frozen=True)
class Policy:
    """How patient a pool is."""

    kind: str
    """What the processes do, as messages name it: compute or embedding."""
    probe: str
    """The probe, in words."""
    tries: int
    """Tries of an item by itself."""
    seconds: float
    """Limit for a job."""
    is_final: bool
    """An item that used its time is given up; else it is tried again, and not alone."""
    nothing: str
    """What the limit ended without: no answer, no result."""
    startup_seconds: float = float("inf")
    """A process that takes longer to be ready has hung."""
    most_unready: int = 0
    """Processes in a row that may end before they are ready, or twice the workers if more."""

    @property
    def no_time(self) -> str:
        """What is said of a job that has used its time."""
        return f"{self.nothing} in {self.seconds:.0f} s"


class Event(NamedTuple):
    """News from a worker."""

    worker: int
    job: Job
    news: object
    """`Done`, `Failed` or another message; `Lost` for an item that is given up."""


class Pool(Generic[Work]):
    """Workers, the jobs that they have, and those that are tried again."""

    def __init__(
        self, workers: Sequence[Worker], probe: Callable[[], Job[Work]], policy: Policy
    ) -> None:
        """Start the workers; `probe` makes a job that any sound machine does."""
        self.workers, self._probe, self._policy = workers, probe, policy
        self._retries: deque[Job[Work]] = deque()
        self._suspects: list[Lost[Work]] = []
        self._probed: list[Lost[Work]] = []
        """The suspects that the probe under way is for."""
        self._failed_probes = self._unready = 0
        for index in range(len(workers)):
            self._start(index)

    @property
    def jobs(self) -> list[Job[Work]]:
        """The jobs that workers have."""
        return [worker.job for worker in self.workers if worker.job is not None]

    def forget(self) -> None:
        """Forget everything that waits: the run is being stopped."""
        self._retries.clear()
        self._suspects, self._probed = [], []

    def stop(self) -> None:
        """Kill the workers."""
        for worker in self.workers:
            worker.stop()

    def _start(self, index: int) -> None:
        """Start a worker, or a new one in the place of one that has ended."""
        self.workers[index].start(self._policy.startup_seconds)

    def _fits(self, job: Job[Work]) -> bool:
        """Whether there is room for a job beside those that run."""
        return True

    def _next(self, fresh: Callable[[], Job[Work] | None]) -> Job[Work] | None:
        """The job whose turn it is: what is tried again comes first, some of it alone.

        Args:
            fresh: makes a job of what was not tried before.
        """
        jobs = self.jobs
        if any(job.alone for job in jobs):
            return None
        if not self._retries:
            return fresh()
        first = self._retries[0]
        may = not jobs if first.alone else self._fits(first)
        return self._retries.popleft() if may else None

    def _send(self, index: int, job: Job[Work]) -> None:
        self.workers[index].send(job, self._policy.seconds)

    def _events(self) -> Iterator[Event]:
        """What has arrived from the workers. Those that died or hang are replaced.

        Raises:
            UserError: workers cannot start, or die or stand still whatever they do.
        """
        for index, worker in enumerate(self.workers):
            try:
                for message in worker.messages():
                    yield from self._heard(index, message)
            except EOFError:
                yield from self._replaced(index)
            else:
                if worker.overdue:
                    yield from self._replaced(index, hung=True)

    def _heard(self, index: int, message: object) -> Iterator[Event]:
        worker = self.workers[index]
        job: Job[Work] = worker.job
        if isinstance(message, Ready):
            worker.ready()
            self._unready = 0
            return
        if isinstance(message, Done | Failed):
            worker.idle()
        if isinstance(message, Done) and message.starved:
            self._again(Lost(job, self._policy.no_time, hung=True, answer=message.answer))
        elif isinstance(message, Failed) and job.is_probe:
            self._again(Lost(job, message.error))
        else:
            yield Event(index, job, message)
            if isinstance(message, Done) and job.is_probe:
                confirmed, self._probed, self._failed_probes = self._probed, [], 0
                self._probe_suspects()
                yield from (Event(index, lost.job, lost) for lost in confirmed)

    def _replaced(self, index: int, hung: bool = False) -> Iterator[Event]:
        """A worker is dead or has hung: a new one takes its place; its job is tried again."""
        worker, policy = self.workers[index], self._policy
        job: Job[Work] | None = worker.job
        used_its_time = hung and policy.is_final and job is not None and not worker.starved
        code = worker.stop()
        if worker.fresh:
            self._unready += 1
            if self._unready > max(policy.most_unready, 2 * len(self.workers)):
                raise UserError(
                    f"the {policy.kind} processes cannot start (exit code {code}): "
                    f"{last_words(worker.log)}; the whole message is in {worker.log}"
                )
            self._retries.extend([] if job is None else [job])  # it is not the job's fault
        elif job is not None:
            lost = Lost(job, policy.no_time if hung else how_it_died(policy.kind, code), hung)
            if used_its_time and not job.is_probe:
                yield Event(index, job, lost)
            else:
                self._again(lost)
        self._start(index)

    def _again(self, lost: Lost[Work]) -> None:
        """Try a job once more or suspect its item, or send the probe once more."""
        policy, job = self._policy, replace(lost.job, is_retry=True, lost=lost.job.lost + 1)
        if job.is_probe:
            if self._probed:  # else the run is being stopped
                self._probe_failed(lost.error)
                self._retries.appendleft(lost.job)
        elif len(job.items) > 1:
            self._retries.extend(lost.job.one_by_one())
        elif job.lost < policy.tries:
            self._retries.append(replace(job, alone=policy.is_final or not lost.hung))
        else:
            self._suspects.append(replace(lost, job=job))
            self._probe_suspects()

    def _probe_suspects(self) -> None:
        """Send a probe if there are suspects, and none is under way."""
        if self._suspects and not self._probed:
            self._probed, self._suspects = self._suspects, []
            self._retries.appendleft(self._probe())

    def _probe_failed(self, error: str) -> None:
        """Raise UserError if the probe has failed MAX_PROBES times in a row."""
        self._failed_probes += 1
        if self._failed_probes < MAX_PROBES:
            return
        items = [item for lost in [*self._probed, *self._suspects] for item in lost.job.items]
        names = list(
            dict.fromkeys(f"line {i.line} ({i.smiles or 'without SMILES'})" for i in items)
        )
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        policy = self._policy
        raise UserError(
            f"{policy.kind} processes keep dying ({error}): with {', '.join(names[:SHOWN])}{more}, "
            f"and then with {policy.probe} too. So the cause is this machine: too little memory, a "
            f"resource limit or a broken installation; see {self.workers[0].log}. Fix the cause or "
            "use fewer --workers, then run the same command to resume; nothing was written for the "
            "batches in progress."
        )


def how_it_died(kind: str, code: int | None) -> str:
    """The end of a process in words; a negative exit code is the signal."""
    if code is None or code >= 0:
        return f"the {kind} process died, exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"the {kind} process died of {name}"

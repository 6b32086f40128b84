"""Conformers: RDKit's ETKDGv3 in worker processes, seeded by molecule, limited in time.

The seed of a molecule comes from the run's seed and its canonical SMILES alone, so its rows depend
neither on the number of workers nor on what else is in the file, nor on how often it was tried.
They depend on the machine's speed only if the time runs out, which is recorded (`embed_timeout`).
RDKit chooses the stereocentres that the SMILES leaves open: conformers of one line may then be
different stereoisomers.

A molecule whose process dies, or has been stopped for most of its time, is tried again alone. It is
given up after two tries alone, once the same processes have embedded methane.
"""

import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from qm1b.conformers.embed import Embedded, drop_of, embed, time_limit
from qm1b.errors import UserError
from qm1b.process.suspicion import Circumstances, Suspicion, how_it_died, named
from qm1b.process.worker import Connection, Ready, Serve, Worker, ends_run, last_words
from qm1b.screening.screen import Candidate
from qm1b.settings import RunSettings

CORES_PER_WORKER = 4
"""Compute processes per process of RDKit. With nine heavy atoms a core computes some ten conformers
per second; it embeds a hundred even if each belongs to another molecule."""

STARTUP_SECONDS = 120.0
"""A process that takes longer to import RDKit has hung."""

MAX_UNREADY = 8
"""Processes in a row that may end before they have imported RDKit, or twice the workers if more."""

MAX_TRIES = 3
"""Tries of a molecule: the first beside others, then two alone."""

PROBE = Candidate(0, "C", 0)
"""Methane, which any sound machine embeds."""


@dataclass(frozen=True)
class Lost:
    """A molecule that is suspected, and what becomes of it if the machine is sound."""

    outcome: Embedded
    error: str


def serve(conn: Connection, settings: RunSettings) -> None:
    """A worker: candidates in, `Embedded` out. The parent notices a hang or a crash."""
    embed(PROBE, replace(settings, conformers=1))  # imports RDKit
    conn.send(Ready())
    with ends_run(conn):
        while True:
            candidate: Candidate = conn.recv()
            try:
                result = embed(candidate, settings)
            except (RuntimeError, ValueError) as error:  # RDKit's
                reason = drop_of(candidate, "embed_failed", str(error)[:200])
                result = Embedded(candidate.line, (), reason)
            conn.send(result)


class EmbedPool:
    """RDKit workers. Results come back as they are ready, so one slow molecule holds up no other.

    One candidate at a time and worker, so it is known what is lost with a process.
    """

    def __init__(self, n: int, settings: RunSettings, log: Path, serve: Serve = serve) -> None:
        self.workers = [Worker(serve, (settings,), log, name="qm1b-embed") for _ in range(n)]
        self._settings = settings
        self._log = log
        self._limit = time_limit(settings) or float("inf")
        self._queue: deque[Candidate] = deque()
        self._retries: deque[Candidate] = deque()
        self._tries: Counter[int] = Counter()
        """Lost tries of the molecules that are tried again, by line."""
        self._suspicion: Suspicion[Lost] = Suspicion(Circumstances("embedding", "methane", log))
        self._done: deque[Embedded] = deque()
        self._unready = 0
        for worker in self.workers:
            self._start(worker)

    @property
    def has_room(self) -> bool:
        """Whether it is worth submitting more now."""
        return len(self._queue) < 4 * len(self.workers)

    @property
    def pending(self) -> int:
        """Candidates whose result has not been given back; a probe counts too."""
        running = sum(worker.job is not None for worker in self.workers)
        waiting = len(self._queue) + len(self._retries) + len(self._suspicion)
        return waiting + running + len(self._done)

    def submit(self, candidate: Candidate) -> None:
        """Queue a molecule; what has its geometry needs no worker."""
        if candidate.geometry is not None:
            self._done.append(embed(candidate, self._settings))
            return
        self._queue.append(candidate)
        self._feed()

    def results(self) -> Iterator[Embedded]:
        """What has finished since the last call.

        Raises:
            UserError: workers cannot start, or die or stand still whatever they embed.
        """
        for worker in self.workers:
            self._collect(worker)
        self._feed()
        while self._done:
            yield self._done.popleft()

    def forget(self) -> None:
        """Forget everything that waits: the run is being stopped."""
        self._queue.clear()
        self._retries.clear()
        self._suspicion.forget()

    def stop(self) -> None:
        """Kill the workers."""
        for worker in self.workers:
            worker.stop()

    def _start(self, worker: Worker) -> None:
        worker.start()
        worker.deadline = time.monotonic() + STARTUP_SECONDS

    def _feed(self) -> None:
        for worker in self.workers:
            if not worker.fresh and worker.job is None:
                candidate = self._next()
                if candidate is None:
                    return
                worker.send(candidate, self._limit)

    def _next(self) -> Candidate | None:
        """The molecule whose turn it is; beside one that is tried again there is no other."""
        running = [worker.job for worker in self.workers if worker.job is not None]
        if self._retries:
            return None if running else self._retries.popleft()
        alone = any(job is PROBE or job.line in self._tries for job in running)
        return self._queue.popleft() if self._queue and not alone else None

    def _collect(self, worker: Worker) -> None:
        try:
            for message in worker.messages():
                if isinstance(message, Ready):
                    worker.fresh, worker.deadline = False, float("inf")
                    self._unready = 0
                else:
                    candidate, worker.job = worker.job, None
                    worker.deadline = float("inf")
                    self._finished(candidate, message)
        except EOFError:
            self._replace(worker)
        else:
            if worker.overdue:
                self._replace(worker, hung=True)

    def _finished(self, candidate: Candidate, result: Embedded) -> None:
        if result.starved:
            self._again(candidate, Lost(result, self._no_time))
        elif candidate is PROBE:
            confirmed, must_probe = self._suspicion.confirmed()
            self._done.extend(lost.outcome for lost in confirmed)
            self._retries.extendleft([PROBE] * must_probe)
        else:
            self._tries.pop(candidate.line, None)
            self._done.append(result)

    def _replace(self, worker: Worker, hung: bool = False) -> None:
        """A worker is dead or has hung: a new one takes its place; its molecule is tried again."""
        candidate: Candidate | None = worker.job
        starved = hung and worker.starved
        code = worker.stop()
        if worker.fresh:
            self._unready += 1
            if self._unready > max(MAX_UNREADY, 2 * len(self.workers)):
                raise UserError(
                    f"the embedding processes cannot start (exit code {code}): "
                    f"{last_words(self._log)}; the whole message is in {self._log}"
                )
        elif candidate is not None:
            error = self._no_time if hung else how_it_died("embedding", code)
            reason = "embed_timeout" if hung else "embed_crash"
            tries = f", in {MAX_TRIES} tries" if starved or not hung else ""
            drop = drop_of(candidate, reason, f"{error}{tries}")
            lost = Lost(Embedded(candidate.line, (), drop), error)
            if hung and not starved and candidate is not PROBE:  # it used its time: it is too slow
                self._tries.pop(candidate.line, None)
                self._done.append(lost.outcome)
            else:
                self._again(candidate, lost)
        self._start(worker)

    def _again(self, candidate: Candidate, lost: Lost) -> None:
        """Try a molecule once more, or suspect it, or send the probe once more."""
        line = candidate.line
        if candidate is PROBE:
            if self._suspicion:
                self._suspicion.probe_failed(lost.error)
                self._retries.appendleft(PROBE)
            return
        self._tries[line] += 1
        if self._tries[line] < MAX_TRIES:
            self._retries.append(candidate)
            return
        del self._tries[line]
        if self._suspicion.hold(named(line, candidate.smiles), lost):
            self._retries.appendleft(PROBE)

    @property
    def _no_time(self) -> str:
        return f"no result in {self._limit:.0f} s"

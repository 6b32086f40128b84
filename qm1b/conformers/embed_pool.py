"""Conformers: RDKit's ETKDGv3 in worker processes, seeded by molecule, limited in time.

The seed of a molecule comes from the run's seed and its canonical SMILES alone, so its rows depend
neither on the number of workers nor on what else is in the file. They depend on the machine's speed
only if the time runs out, which is recorded (`embed_timeout`). RDKit chooses the stereocentres that
the SMILES leaves open: conformers of one line may then be different stereoisomers.
"""

from collections import deque
from collections.abc import Iterator
from pathlib import Path

from qm1b.conformers.embed import Embedded, drop_of, embed, time_limit
from qm1b.process.worker import Connection, Serve, Worker
from qm1b.screening.screen import Candidate
from qm1b.settings import RunSettings

CORES_PER_WORKER = 4
"""Compute processes per process of RDKit. With nine heavy atoms a core computes some ten conformers
per second; it embeds a hundred even if each belongs to another molecule."""

STARTUP_SECONDS = 60.0
"""Added for the first molecule of a new process, which must import RDKit first."""


def serve(conn: Connection, settings: RunSettings) -> None:
    """A worker: candidates in, `Embedded` out. The parent notices a hang or a crash."""
    while True:
        candidate: Candidate = conn.recv()
        try:
            result = embed(candidate, settings)
        except Exception as error:  # RDKit raises RuntimeError and others
            reason = drop_of(candidate, "embed_failed", str(error)[:200])
            result = Embedded(candidate.line, (), reason)
        conn.send(result)


class EmbedPool:
    """RDKit workers. Results come back as they are ready, so one slow molecule holds up no other.

    One candidate at a time and worker: when a worker has to be killed, exactly that molecule is
    lost, and a new worker takes its place.
    """

    def __init__(self, n: int, settings: RunSettings, log: Path, serve: Serve = serve) -> None:
        self.workers = [Worker(serve, (settings,), log) for _ in range(n)]
        self._settings = settings
        self._limit = time_limit(settings) or float("inf")
        self._queue: deque[Candidate] = deque()
        self._done: deque[Embedded] = deque()
        for worker in self.workers:
            worker.start()

    @property
    def has_room(self) -> bool:
        """Whether it is worth submitting more now."""
        return len(self._queue) < 4 * len(self.workers)

    @property
    def pending(self) -> int:
        """Candidates whose result has not been given back."""
        running = sum(worker.job is not None for worker in self.workers)
        return len(self._queue) + running + len(self._done)

    def submit(self, candidate: Candidate) -> None:
        """Queue a molecule; what has its geometry needs no worker."""
        if candidate.geometry is not None:
            self._done.append(embed(candidate, self._settings))
            return
        self._queue.append(candidate)
        self._feed()

    def results(self) -> Iterator[Embedded]:
        """What has finished since the last call."""
        for worker in self.workers:
            self._collect(worker)
        self._feed()
        while self._done:
            yield self._done.popleft()

    def stop(self) -> None:
        """Kill the workers."""
        for worker in self.workers:
            worker.stop()

    def _feed(self) -> None:
        for worker in self.workers:
            if self._queue and worker.job is None:
                # The limit is for the molecule, not for the imports of a new process.
                slack = STARTUP_SECONDS if worker.fresh else 0.0
                worker.send(self._queue.popleft(), self._limit + slack)

    def _collect(self, worker: Worker) -> None:
        try:
            for result in worker.messages():
                self._done.append(result)
                worker.job = None
                worker.fresh = False
        except EOFError:
            self._lost(worker, "embed_crash")
        else:
            if worker.job is not None and worker.overdue:
                self._lost(worker, "embed_timeout")

    def _lost(self, worker: Worker, reason: str) -> None:
        candidate: Candidate | None = worker.job
        code = worker.stop()
        if candidate is not None:
            how = f"exit code {code}" if reason == "embed_crash" else f"after {self._limit:.0f} s"
            drop = drop_of(candidate, reason, f"RDKit worker ended, {how}")
            self._done.append(Embedded(candidate.line, (), drop))
        worker.start()

"""Conformers: RDKit's ETKDGv3 in worker processes, seeded by molecule, limited in time.

The seed of a molecule comes from the run's seed and its canonical SMILES alone, so its rows depend
neither on the number of workers nor on what else is in the file, nor on how often it was tried.
They depend on the machine's speed only if the time runs out, which is recorded (`embed_timeout`).
RDKit chooses the stereocentres that the SMILES leaves open: conformers of one line may then be
different stereoisomers (`Conformer.isomer_smiles`), unless the run wants one.

A molecule whose process dies, or has been stopped for most of its time, is tried again alone. It is
given up after two tries alone, once the same processes have embedded methane.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from qm1b.conformers.embed import drop_of, embed, embed_or_drop, time_limit
from qm1b.conformers.embedding import Embedded
from qm1b.process.jobs import Done, Job, Lost, serve_jobs
from qm1b.process.pool import Policy, Pool
from qm1b.process.worker import Connection, Worker
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


def serve(conn: Connection, settings: RunSettings) -> None:
    """A worker: candidates in, `Embedded` out. The parent notices a hang or a crash."""

    def answer(job: Job[Candidate]) -> Done[Embedded]:
        (candidate,) = job.items
        result = embed_or_drop(candidate, settings)
        return Done(result, starved=result.starved)

    embed(PROBE, replace(settings, conformers=1))  # imports RDKit
    serve_jobs(conn, answer)


class EmbedPool(Pool[Candidate]):
    """RDKit workers. Results come back as they are ready, so one slow molecule holds up no other.

    One candidate at a time and worker, so it is known what is lost with a process.
    """

    def __init__(self, n: int, settings: RunSettings, log: Path) -> None:
        self._queue: deque[Candidate] = deque()
        self._done: deque[Embedded] = deque()
        policy = Policy(
            kind="embedding",
            probe="methane",
            tries=MAX_TRIES,
            seconds=time_limit(settings) or float("inf"),
            is_final=True,
            nothing="no result",
            startup_seconds=STARTUP_SECONDS,
            most_unready=MAX_UNREADY,
        )
        workers = [Worker(serve, (settings,), log, name="qm1b-embed") for _ in range(n)]
        super().__init__(workers, lambda: Job((PROBE,), alone=True, is_probe=True), policy)

    @property
    def has_room(self) -> bool:
        """Whether it is worth submitting more now."""
        return len(self._queue) < 4 * len(self.workers)

    @property
    def pending(self) -> int:
        """Candidates whose result has not been given back; a probe counts too."""
        held = len(self._suspects) + len(self._probed)
        return len(self._queue) + len(self._retries) + held + len(self.jobs) + len(self._done)

    def submit(self, candidate: Candidate) -> None:
        """Queue a molecule."""
        self._queue.append(candidate)
        self._feed()

    def results(self) -> Iterator[Embedded]:
        """What has finished since the last call.

        Raises:
            UserError: workers cannot start, or die or stand still whatever they embed.
        """
        for _, job, news in self._events():
            if isinstance(news, Lost):
                self._done.append(_given_up(news))
            elif isinstance(news, Done) and not job.is_probe:
                self._done.append(news.answer)
        self._feed()
        while self._done:
            yield self._done.popleft()

    def forget(self) -> None:
        """Forget everything that waits: the run is being stopped."""
        super().forget()
        self._queue.clear()

    def _feed(self) -> None:
        for index, worker in enumerate(self.workers):
            if not worker.fresh and worker.job is None:
                job = self._next(lambda: Job((self._queue.popleft(),)) if self._queue else None)
                if job is None:
                    return
                self._send(index, job)


def _given_up(lost: Lost[Candidate]) -> Embedded:
    """What becomes of a molecule whose tries have ended without a result, or with a starved one."""
    if isinstance(lost.answer, Embedded):
        return lost.answer
    (candidate,) = lost.job.items
    reason = "embed_timeout" if lost.hung else "embed_crash"
    tries = f", in {MAX_TRIES} tries" if lost.job.lost == MAX_TRIES else ""
    return Embedded(candidate.line, (), drop_of(candidate, reason, f"{lost.error}{tries}"))

"""What the processes of a run do, and when, as a file for Perfetto or chrome://tracing.

The format is Chromium's Trace Event Format. Events are written as they end, so memory does not grow
with the run, and what a killed run leaves is still read: the closing bracket is optional there.
Times are those of the process that starts and hears its workers: a job begins when it is sent and
ends when its result is taken, so waiting in the pipe counts as the job's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyscf_ipu.base.terminal import Stream, say
from qm1b.process.jobs import Job
from qm1b.process.worker import Worker
from qm1b.storage.files import not_written

HOST, EMBED, COMPUTE = 1, 2, 3
"""Groups of lanes: this process, those of RDKit, those of the engine."""

GROUPS = {HOST: "qm1b (host)", EMBED: "RDKit", COMPUTE: "engine"}
SHORTEST = 1e-4
"""Seconds: what this process does in less time is left out, or the file would be full of it."""

BETWEEN_QUEUES = 0.05
"""Seconds between two looks at the queues."""

Lane = tuple[int, int]


@dataclass(eq=False)
class Trace:
    """An open trace; without a path it does nothing."""

    path: Path | None
    _file: Stream | None = None
    _zero: float = 0.0
    _jobs: dict[Lane, tuple[Job, float]] = field(default_factory=dict)
    """The job that each worker was last seen with, and when it was sent."""
    _named: set[Lane] = field(default_factory=set)
    _queues_at: float = 0.0
    _begun: bool = False

    def __enter__(self) -> Trace:
        self._zero = time.monotonic()
        if self.path is not None:
            try:
                self._file = Stream(open(self.path, "w"), self._failed)
            except OSError as error:
                raise not_written(self.path, error) from None
            self._file.write("[")
            for group, name in GROUPS.items():
                self._put({"ph": "M", "name": "process_name", "pid": group, "args": {"name": name}})
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            for lane, (job, begun) in self._jobs.items():
                self._job(lane, job, begun, ended=time.monotonic())
            self._file.write("\n]\n")
            self._file.close()
            self._file = None

    def _failed(self, error: OSError) -> None:
        what = f"the trace {self.path} cannot be written ({error.strerror})"
        say(f"qm1b: the work goes on, but {what}", to_stderr=True)

    @contextmanager
    def host(self, name: str, **facts: object) -> Iterator[None]:
        """Something that this process does."""
        begun = time.monotonic()
        yield
        if self._file is not None and (ended := time.monotonic()) - begun >= SHORTEST:
            self._span((HOST, 0), name, begun, ended=ended, facts=facts)

    def look(self, embed: Sequence[Worker], compute: Sequence[Worker]) -> None:
        """Note which jobs have ended and begun since the last look."""
        if self._file is None:
            return
        now = time.monotonic()
        for group, workers in ((EMBED, embed), (COMPUTE, compute)):
            for number, worker in enumerate(workers):
                lane = group, number
                job, begun = self._jobs.get(lane, (None, 0.0))
                if job is worker.job:
                    continue
                if job is not None:
                    ended = now if worker.job is None else max(begun, min(now, worker.since))
                    self._job(lane, job, begun, ended=ended)
                    del self._jobs[lane]
                if worker.job is not None:
                    self._jobs[lane] = worker.job, worker.since

    def program(self, worker: int, label: str, seconds: float | None, cached: bool) -> None:
        """A worker has made a program ready, just now."""
        if self._file is None or seconds is None:
            return
        lane, now = (COMPUTE, worker), time.monotonic()
        begun = max(now - seconds, self._jobs.get(lane, (None, now - seconds))[1])
        name = "load program" if cached else "compile"
        self._span(lane, name, begun, ended=now, facts={"shape": label})

    def queues(self, molecules: int, conformers: int) -> None:
        """How much waits: molecules for RDKit, conformers for the engine."""
        now = time.monotonic()
        if self._file is None or now - self._queues_at < BETWEEN_QUEUES:
            return
        self._queues_at = now
        waiting = {"molecules, in RDKit": molecules, "conformers, for a batch": conformers}
        for name, count in waiting.items():
            at = {"pid": HOST, "ts": self._time(now), "args": {"waiting": count}}
            self._put({"ph": "C", "name": f"queue: {name}", **at})

    def _job(self, lane: Lane, job: Job, begun: float, ended: float) -> None:
        if lane[0] == COMPUTE:
            shape = str(getattr(job.shape, "label", job.shape))
            facts = {"shape": shape, "conformers": len(job.items), "retry": job.is_retry}
            self._span(lane, "compute", begun, ended=ended, facts=facts)
        else:
            (molecule,) = job.items
            facts = {"smiles": molecule.smiles, "line": molecule.line}
            self._span(lane, "embed", begun, ended=ended, facts=facts)

    def _span(self, lane: Lane, name: str, begun: float, ended: float, facts: object) -> None:
        group, number = lane
        if lane not in self._named:
            self._named.add(lane)
            text = "main loop" if group == HOST else f"worker {number}"
            who = {"pid": group, "tid": number, "args": {"name": text}}
            self._put({"ph": "M", "name": "thread_name", **who})
        when = {"ts": self._time(begun), "dur": round(1e6 * (ended - begun), 1)}
        self._put({"ph": "X", "name": name, "pid": group, "tid": number, **when, "args": facts})

    def _time(self, at: float) -> float:
        return round(1e6 * (at - self._zero), 1)

    def _put(self, event: object) -> None:
        if self._file is not None:
            self._file.write(",\n" * self._begun + json.dumps(event))
            self._begun = True

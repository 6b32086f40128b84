"""Conformers: RDKit's ETKDGv3 in worker processes, seeded by molecule, limited in time.

The seed of a molecule comes from the run's seed and its canonical SMILES alone, so its rows depend
neither on the number of workers nor on what else is in the file. Stereocentres that the SMILES
leaves open are chosen by RDKit: conformers of one line may then be different stereoisomers.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .schema import Conformer, Drop
from .smiles import Candidate
from .workers import Connection, Serve, Worker

RDKIT_SHARE = 0.5
"""Part of the time limit after which RDKit is asked to stop by itself, before the process is
killed: what it has found until then is kept."""

SECONDS_PER_CONFORMER = 0.1
"""Added to the time limit; an ordinary molecule needs a tenth of it."""

STARTUP_SECONDS = 60.0
"""Added for the first molecule of a new process, which has RDKit to import."""


@dataclass(frozen=True)
class Embedded:
    """What became of one candidate: its conformers, and why there are fewer than asked for."""

    line: int
    conformers: tuple[Conformer, ...]
    drop: Drop | None = None


def molecule_seed(run_seed: int, smiles: str) -> int:
    """RDKit seed of a molecule: 1 <= seed < 2**31, from the run's seed and canonical SMILES."""
    digest = hashlib.sha256(f"{run_seed}\n{smiles}".encode()).digest()
    return 1 + int.from_bytes(digest[:8], "little") % (2**31 - 2)


def embed(candidate: Candidate, count: int, run_seed: int, timeout: float = 0.0) -> Embedded:
    """Up to `count` conformers of a molecule, in this process.

    Positions are rounded to float32, the precision they are stored in, before anything is computed
    from them; conformers with coinciding atoms are not kept.
    """
    from rdkit import Chem

    from pyscf_ipu.interop import embed as embed_graph
    from pyscf_ipu.molecule import Molecule

    seed = molecule_seed(run_seed, candidate.smiles)
    graph = Chem.AddHs(Chem.MolFromSmiles(candidate.smiles))
    share = max(1, round(RDKIT_SHARE * timeout)) if timeout else 0
    numbers, positions = embed_graph(graph, count, seed, share)
    positions = positions.astype(np.float32).astype(np.float64)
    kept: list[Conformer] = []
    detail = ""
    for xyz in positions:
        try:
            Molecule(numbers, xyz, candidate.charge, smiles=candidate.smiles).check()
        except ValueError as error:
            detail = f"; {error}"
            continue
        kept.append(
            Conformer(
                line=candidate.line,
                smiles=candidate.smiles,
                conformer=len(kept),
                seed=seed,
                charge=candidate.charge,
                numbers=numbers.astype(np.uint8),
                positions=xyz,
            )
        )
    drop = None
    if len(kept) < count:
        reason = "fewer_conformers" if kept else "embed_failed"
        drop = Drop(
            candidate.line, candidate.smiles, reason, f"{len(kept)} of {count} conformers{detail}"
        )
    return Embedded(candidate.line, tuple(kept), drop)


def serve(conn: Connection, count: int, run_seed: int, timeout: float) -> None:
    """A worker: candidates in, `Embedded` out. A hang or a crash is the parent's business."""
    while True:
        candidate: Candidate = conn.recv()
        try:
            result = embed(candidate, count, run_seed, timeout)
        except Exception as error:  # RDKit raises RuntimeError and others of its own
            drop = _drop(candidate, "embed_failed", str(error)[:200])
            result = Embedded(candidate.line, (), drop)
        conn.send(result)


class EmbedPool:
    """RDKit workers. Results come back as they are ready, so one slow molecule holds up no other.

    One candidate at a time and worker: when a worker has to be killed, exactly that molecule is
    lost, and a new worker takes its place.
    """

    def __init__(
        self, n: int, count: int, run_seed: int, timeout: float, log: Path, serve: Serve = serve
    ) -> None:
        self.workers = [Worker(serve, (count, run_seed, timeout), log) for _ in range(n)]
        self._limit = timeout + SECONDS_PER_CONFORMER * count
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
        """Queue a molecule."""
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
        candidate: Any = worker.job
        code = worker.stop()
        if candidate is not None:
            how = f"exit code {code}" if reason == "embed_crash" else f"after {self._limit:.0f} s"
            drop = _drop(candidate, reason, f"RDKit worker ended, {how}")
            self._done.append(Embedded(candidate.line, (), drop))
        worker.start()


def _drop(candidate: Candidate, reason: str, detail: str) -> Drop:
    return Drop(candidate.line, candidate.smiles, reason, detail)

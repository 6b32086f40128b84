"""Conformers: RDKit's ETKDGv3 in worker processes, seeded by molecule, limited in time.

The seed of a molecule comes from the run's seed and its canonical SMILES alone, so its rows depend
neither on the number of workers nor on what else is in the file; on the machine's speed only where
the time limit strikes, which is recorded (`embed_timeout`). Stereocentres that the SMILES
leaves open are chosen by RDKit: conformers of one line may then be different stereoisomers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Integer

from .embedding import GIVEN, NOT_RELAXED, Embeddings, NoParameters, embeddings, molecule_seed
from .geometry import rounded
from .presets import RunSettings
from .rattle import rattled
from .schema import Conformer, Drop
from .smiles import Candidate
from .workers import Connection, Serve, Worker

RDKIT_SHARE = 0.8
"""Part of the time limit after which RDKit is asked to stop by itself, before the process is
killed: the chunks that were found until then are kept."""

SECONDS_PER_CONFORMER = 0.1
"""Added to the time limit; an ordinary molecule needs a tenth of it."""

CORES_PER_WORKER = 4
"""Compute processes for one of RDKit: a core computes some ten conformers a second of nine heavy
atoms, and a core finds a hundred, if each is of another molecule."""

STARTUP_SECONDS = 60.0
"""Added for the first molecule of a new process, which has RDKit to import."""


@dataclass(frozen=True)
class Recipe:
    """How conformers are made; what of the run's settings RDKit's workers need."""

    count: int
    """Conformers asked for, per molecule or given geometry."""
    seed: int = 0
    """Of the run."""
    timeout: float = 0.0
    """Seconds for a molecule, to which some are added for each conformer; 0 for no limit."""
    relax: str = NOT_RELAXED
    rattle_angstrom: float = 0.0

    @property
    def limit(self) -> float:
        """Seconds after which a molecule's process is killed; 0 for never."""
        return self.timeout + SECONDS_PER_CONFORMER * self.count if self.timeout else 0.0

    @classmethod
    def of(cls, settings: RunSettings) -> Recipe:
        """The recipe that the settings of a run contain."""
        s = settings
        return cls(s.conformers, s.seed, s.embed_timeout, s.relax, s.rattle_angstrom)


@dataclass(frozen=True)
class Embedded:
    """What became of one candidate: its conformers, and why there are fewer than asked for."""

    line: int
    conformers: tuple[Conformer, ...]
    drop: Drop | None = None


def embed(candidate: Candidate, recipe: Recipe) -> Embedded:
    """Up to `recipe.count` conformers of a molecule, in this process.

    Positions are rounded to float32, the precision they are stored in, before anything is computed
    from them; conformers with coinciding atoms are not kept.
    """
    seed = molecule_seed(recipe.seed, candidate.identity)
    try:
        found = _geometries(candidate, recipe, seed)
    except NoParameters as error:
        return Embedded(candidate.line, (), _drop(candidate, "no_parameters", str(error)))
    kept: list[Conformer] = []
    problem = ""
    for copy, (xyz, embedding, relaxation) in enumerate(
        zip(found.positions, found.embedding, found.relaxation, strict=True), candidate.first
    ):
        number = candidate.first + len(kept)
        try:  # copies of one geometry: after a failed step another one is tried
            positions = _finished(found.numbers, xyz, candidate, recipe, seed, copy)
        except ValueError as error:
            problem = f"; {error}"
            continue
        kept.append(
            Conformer(
                line=candidate.line,
                smiles=candidate.smiles,
                conformer=number,
                seed=seed,
                charge=candidate.charge,
                numbers=found.numbers.astype(np.uint8),
                positions=positions,
                embedding=embedding,
                relaxation=relaxation,
            )
        )
    drop = None
    if len(kept) < recipe.count:
        without = "rattle_failed" if problem else "embed_failed"
        reason = "fewer_conformers" if kept else without
        reason = "embed_timeout" if found.timed_out else reason
        drop = _drop(candidate, reason, f"{len(kept)} of {recipe.count} conformers{problem}")
    return Embedded(candidate.line, tuple(kept), drop)


def _geometries(candidate: Candidate, recipe: Recipe, seed: int) -> Embeddings:
    """Geometries before any displacement: those of RDKit, or copies of the one that was given."""
    from rdkit import Chem

    given = candidate.geometry
    if given is not None:
        copies = np.repeat(given.positions[None], recipe.count, axis=0)
        labels = (GIVEN,) * recipe.count, (NOT_RELAXED,) * recipe.count
        return Embeddings(given.numbers.astype(np.int64), copies, *labels)
    graph = Chem.AddHs(Chem.MolFromSmiles(candidate.smiles))
    return embeddings(graph, recipe.count, seed, RDKIT_SHARE * recipe.limit, recipe.relax)


def _finished(
    numbers: Integer[np.ndarray, " A"],
    positions: Float[np.ndarray, "A 3"],
    candidate: Candidate,
    recipe: Recipe,
    seed: int,
    copy: int,
) -> Float[np.ndarray, "A 3"]:
    """Displaced, rounded and checked positions.

    Raises:
        ValueError: they cannot be computed.
    """
    from pyscf_ipu.molecule import Molecule

    if recipe.rattle_angstrom:
        moved = rattled(numbers, positions, recipe.rattle_angstrom, seed, copy)
        if moved is None:
            raise ValueError("displaced atoms came too close in every try")
        positions = moved
    positions = rounded(positions)
    Molecule(numbers, positions, candidate.charge, smiles=candidate.smiles).check()
    return positions


def serve(conn: Connection, recipe: Recipe) -> None:
    """A worker: candidates in, `Embedded` out. A hang or a crash is the parent's business."""
    while True:
        candidate: Candidate = conn.recv()
        try:
            result = embed(candidate, recipe)
        except Exception as error:  # RDKit raises RuntimeError and others of its own
            reason = _drop(candidate, "embed_failed", str(error)[:200])
            result = Embedded(candidate.line, (), reason)
        conn.send(result)


class EmbedPool:
    """RDKit workers. Results come back as they are ready, so one slow molecule holds up no other.

    One candidate at a time and worker: when a worker has to be killed, exactly that molecule is
    lost, and a new worker takes its place.
    """

    def __init__(self, n: int, recipe: Recipe, log: Path, serve: Serve = serve) -> None:
        self.workers = [Worker(serve, (recipe,), log) for _ in range(n)]
        self._recipe = recipe
        self._limit = recipe.limit or float("inf")
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
            self._done.append(embed(candidate, self._recipe))
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
        candidate: Any = worker.job
        code = worker.stop()
        if candidate is not None:
            how = f"exit code {code}" if reason == "embed_crash" else f"after {self._limit:.0f} s"
            drop = _drop(candidate, reason, f"RDKit worker ended, {how}")
            self._done.append(Embedded(candidate.line, (), drop))
        worker.start()


def _drop(candidate: Candidate, reason: str, detail: str) -> Drop:
    return Drop(candidate.line, candidate.smiles, reason, detail)

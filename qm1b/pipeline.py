"""The main path: molecules -> conformers -> batches -> rows -> finished work units.

One loop in the calling process moves everything along; RDKit and the engine run in worker
processes. The loop reads ahead only as far as the engine can follow, so memory does not grow with
the input.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import engine
from .buckets import Buckets
from .compute import Job, Service
from .conformers import CORES_PER_WORKER, Embedded, EmbedPool, Recipe
from .dispatch import ComputePool, ProgramEvent
from .interrupts import Interrupt
from .ladder import ladder_for
from .ledger import Ledger, Unit
from .presets import RunSettings
from .progress import Display, Stats
from .schema import Conformer, Drop, Row
from .smiles import Candidate
from .workers import wait

MAX_WAITING = 4096
"""Conformers in memory that wait for the engine, about; then no more lines are read."""

MAX_OPEN_UNITS = 4
"""An incomplete batch is sent off when this many newer work units have been begun."""

LINES_AT_A_TIME = 32
"""Lines read between two looks at the workers."""

Found = Candidate | Drop | None
"""What the screen says of a line; None for one that is another run's business."""


class Pools:
    """The worker processes: RDKit and the engine."""

    def __init__(
        self, n: int, factory: str, settings: RunSettings, solver: Any, n_ao: Any, log: Path
    ) -> None:
        from pyscf_ipu.memory import available_bytes

        service = Service(settings.level, settings.retry, settings.audit, settings.seed)
        memory_bytes = functools.cache(_memory_of(solver, factory, settings))
        machine, probe = available_bytes(), functools.partial(_probe, solver)
        self.compute = ComputePool(n, factory, service, log, n_ao, memory_bytes, machine, probe)
        self.embed = EmbedPool(-(-n // CORES_PER_WORKER), Recipe.of(settings), log)

    def stop(self) -> None:
        """Kill the workers."""
        self.embed.stop()
        self.compute.stop()


def _memory_of(solver: Any, factory: str, settings: RunSettings) -> Callable[[Hashable], int]:
    """What a batch of a shape needs at most, whichever rung of the ladder it climbs to."""
    solver_at = engine.at_precisions(factory, settings.level)
    rungs = ladder_for(settings.level.precision, settings.retry)
    others = {rung.precision for rung in rungs if rung.precision is not None}
    solvers = [solver, *map(solver_at, others)]
    return lambda shape: max(each.memory_bytes(shape) for each in solvers)


def _probe(solver: Any) -> Job:
    """A hydrogen molecule as a batch; see `qm1b.deaths`."""
    from pyscf_ipu.molecule import Molecule

    numbers = np.array([1, 1], np.uint8)
    positions = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.4]])
    conformer = Conformer(0, "[H][H]", 0, 0, 0, numbers, positions)
    return Job(solver.shape(Molecule(numbers, positions)), (conformer,), is_probe=True)


@dataclass(frozen=True)
class Reports:
    """Where a pipeline tells what it does."""

    stats: Stats
    display: Display
    write: Callable[[Unit], None]
    """Takes each finished unit."""


class Pipeline:
    """The state between screened lines and finished units."""

    def __init__(
        self, settings: RunSettings, solver: Any, lines: Iterator[Found], reports: Reports
    ) -> None:
        self.settings, self.solver, self.lines = settings, solver, lines
        self.stats, self.display, self.write = reports.stats, reports.display, reports.write
        self.all_read = False
        self.ledger = Ledger(settings.unit_lines)
        self.buckets = Buckets(functools.cache(solver.batch_size))
        self.shape_of: dict[tuple[bytes, int], Hashable] = {}
        """By atomic numbers and charge, which is all that an engine looks at."""

    def run(self, pools: Pools, interrupt: Interrupt) -> None:
        """Run to the end of the lines, or to the first Ctrl-C: running batches are finished then,
        and what is not a whole unit after that is left for another run."""
        embed, compute = pools.embed, pools.compute
        flush = functools.partial(self._flush, embed)
        told = False
        while not interrupt.count or (compute.running and interrupt.count == 1):
            more = False
            if interrupt.count:
                if not told:
                    self.display.say(
                        "Interrupted: finishing the running batches; once more to stop at once."
                    )
                    told = True
                compute.abandon_retries()
            else:
                more = self._read(embed, compute)
                for row in compute.dispatch(self.buckets, flush):
                    self._row(row)
                if self.all_read and not self.ledger.unfinished:
                    break
            starving, since = self._starving(embed, compute), time.monotonic()
            wait([*compute.workers, *embed.workers], timeout=0.0 if more else 0.2)
            self.stats.starved_seconds += starving * (time.monotonic() - since)
            self._collect(embed, compute, interrupt)
            self._close()
            self.display.update(self.stats)
        self._close()

    def _starving(self, embed: EmbedPool, compute: ComputePool) -> int:
        """Compute processes that would have a batch if conformers came faster: there is no whole
        batch to give, and not everything has been read and embedded."""
        nothing_comes = self.all_read and not embed.pending
        has_batch = next(self.buckets.full(), None) is not None
        return 0 if nothing_comes or has_batch else compute.idle

    def _collect(self, embed: EmbedPool, compute: ComputePool, interrupt: Interrupt) -> None:
        """What the workers have ready."""
        for result in embed.results():
            if not interrupt.count:
                self._embedded(result)
        for event in compute.collect():
            if isinstance(event, ProgramEvent):
                self._compile_event(event, compute)
            else:
                self._row(event)
        self.stats.compiling = compute.compiling

    def _close(self) -> None:
        for unit in self.ledger.closed(self.all_read):
            self.write(unit)

    def _read(self, embed: EmbedPool, compute: ComputePool) -> bool:
        """Take screened lines while there is room for their conformers; whether there is more."""
        for _ in range(LINES_AT_A_TIME):
            busy = self.buckets.waiting + compute.running
            if self.all_read or not embed.has_room or busy >= MAX_WAITING:
                return False
            try:
                found = next(self.lines)
            except StopIteration:
                self.all_read = True
                return False
            if found is None:
                continue
            self.stats.lines_read += 1
            if isinstance(found, Candidate):
                self.stats.molecules += 1
                self.ledger.opened(found.line)
                embed.submit(found)
            else:
                self.stats.count_drop(found)
                self.ledger.dropped(found)
        return True

    def _embedded(self, result: Embedded) -> None:
        """Conformers have arrived: into their bucket, or out with the reason."""
        conformers, drop = result.conformers, result.drop
        if conformers:
            shape = self._shape(result)
            if isinstance(shape, Drop):
                conformers, drop = (), shape
            else:
                for conformer in conformers:
                    self.buckets.add(shape, conformer)
        if drop is not None:
            self.stats.count_drop(drop)
        if conformers:
            self.stats.missing += self.settings.conformers - len(conformers)
        else:
            self.stats.molecules -= 1
        self.ledger.embedded(result.line, len(conformers), drop)

    def _shape(self, result: Embedded) -> Hashable | Drop:
        """The engine's shape for a molecule; a Drop if it cannot take it."""
        from pyscf_ipu.errors import TooLarge
        from pyscf_ipu.molecule import Molecule

        first = result.conformers[0]
        key = first.numbers.tobytes(), first.charge
        if key not in self.shape_of:
            molecule = Molecule(first.numbers, first.positions, first.charge, smiles=first.smiles)
            try:
                self.shape_of[key] = self.solver.shape(molecule)
            except ValueError as error:
                reason = "too_large" if isinstance(error, TooLarge) else "invalid"
                return Drop(result.line, first.smiles, reason, str(error))
        return self.shape_of[key]

    def _flush(self, embed: EmbedPool) -> Iterator[Hashable]:
        """Shapes whose incomplete batch should not wait any longer."""
        oldest = self.buckets.oldest()
        if oldest is None:
            return
        nothing_comes = self.all_read and not embed.pending
        if nothing_comes or self.buckets.waiting >= MAX_WAITING:
            yield from self.buckets.fullest()
        elif self.ledger.begun_since(oldest[1]) > MAX_OPEN_UNITS:
            yield oldest[0]

    def _row(self, row: Row) -> None:
        self.stats.count_row(row)
        self.ledger.computed(row)

    def _compile_event(self, event: ProgramEvent, compute: ComputePool) -> None:
        if event.seconds is None:
            self.display.begin(f"worker {event.worker} compiles {event.label} ...")
            return
        self.stats.compiles.append(event)
        how = "loaded from the disk cache" if event.cached else "compiled"
        size, mib = self.solver.batch_size(event.shape), compute.memory_bytes(event.shape) / 2**20
        self.display.say(
            f"worker {event.worker} {how} {event.label} in {event.seconds:.1f} s: "
            f"batch of {size}, about {mib:.0f} MiB"
        )

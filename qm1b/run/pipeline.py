"""The main path: molecules -> conformers -> batches -> rows -> finished work units.

One loop in the calling process moves everything along; RDKit and the engine run in worker
processes. The loop reads ahead only as far as the engine can follow, so memory does not grow with
the input.
"""

import functools
import math
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from qm1b.conformers.embed_pool import CORES_PER_WORKER, EmbedPool
from qm1b.conformers.embedding import Embedded
from qm1b.engine.buckets import Buckets
from qm1b.engine.compute_pool import ComputePool
from qm1b.engine.factory import Engine
from qm1b.engine.programs import ProgramEvent
from qm1b.folder.manifest.work_units import UNIT_SECONDS, WorkPlan
from qm1b.process.display import Display
from qm1b.process.interrupts import Interrupt
from qm1b.process.worker import wait
from qm1b.rows.schema import TOO_LARGE, Conformer, Drop, Row
from qm1b.run.ledger import Ledger
from qm1b.run.progress.progress import Stats
from qm1b.run.second_look import unchecked
from qm1b.run.trace import Trace
from qm1b.screening.screen import Candidate
from qm1b.settings import RunSettings

MAX_WAITING = 4096
"""About this many conformers may wait for the engine in memory; then no more lines are read."""

WAITING_EACH = 4
"""No more lines are read, either, while the work of a unit waits, and this many conformers for each
compute process: a killed run loses what is computed of open units."""

MAX_OPEN_UNITS = 4
"""An incomplete batch is sent when this many newer work units have been begun."""

LINES_AT_A_TIME = 32
"""Lines read between two looks at the workers."""

Verdict = Candidate | Drop | None
"""What the screen says of a line; None for a line that this run does not compute."""


class Pools:
    """The worker processes: RDKit and the engine."""

    def __init__(
        self, n: int, factory: str, settings: RunSettings, engine: Engine, log: Path
    ) -> None:
        self.compute = ComputePool(n, factory, settings, engine=engine, log=log)
        self.embed = EmbedPool(-(-n // CORES_PER_WORKER), settings, log)

    def stop(self) -> None:
        """Kill the workers."""
        self.embed.stop()
        self.compute.stop()


@dataclass(frozen=True)
class Reports:
    """Where a run tells what it does."""

    stats: Stats
    display: Display
    write: Callable[..., None]
    """Takes each finished unit and, if another machine computed it, the versions there."""


class Pipeline:
    """The state between screened lines and finished units."""

    def __init__(
        self,
        settings: RunSettings,
        engine: Engine,
        lines: Iterator[Verdict],
        plan: WorkPlan,
        reports: Reports,
        trace: Trace | None = None,
    ) -> None:
        self.settings, self.engine, self.lines, self.plan = settings, engine, lines, plan
        self.trace = trace or Trace(None)
        self.stats, self.display, self.write = reports.stats, reports.display, reports.write
        self.all_read = False
        self.is_late = False
        """Whether another unit would not be done in time, as far as is known now."""
        self.ledger = Ledger(plan)
        self.buckets = Buckets(functools.cache(engine.batch_size))
        self.shape_of: dict[tuple[bytes, int, int], Hashable] = {}
        """Shapes by atomic numbers, charge and multiplicity, on which alone they depend."""
        self.refused: dict[Hashable, str] = {}
        """Shapes whose program a worker found too large for the machine, and why."""

    def run(self, pools: Pools, interrupt: Interrupt) -> None:
        """Run to the end of the lines, or to the first Ctrl-C.

        After that, running batches are finished; units that are incomplete then are lost.
        """
        embed, compute = pools.embed, pools.compute
        self.stats.workers = len(compute.workers)
        flush = functools.partial(self._flush, embed, compute)
        while not interrupt.count or (compute.running and interrupt.count == 1):
            more = False
            if interrupt.count:
                if interrupt.is_new():
                    self.display.say(f"{interrupt.cause}: finishing the running batches")
                compute.forget()
                embed.forget()
            else:
                with self.trace.host("read and screen"):
                    more = self._read(embed, compute, interrupt)
                with self.trace.host("dispatch"):
                    for row in compute.dispatch(self.buckets, flush):
                        self._row(row)
                self._close()
                if (self.all_read or self.is_late) and not self.ledger.unfinished:
                    break
            self.trace.look(embed.workers, compute.workers)
            starving, since = self._starving(embed, compute), time.monotonic()
            wait([*compute.workers, *embed.workers], timeout=0.0 if more else 0.2)
            self.stats.starved_seconds += starving * (time.monotonic() - since)
            with self.trace.host("collect"):
                self._collect(embed, compute, interrupt)
            self.trace.look(embed.workers, compute.workers)
            self.trace.queues(embed.pending, self.buckets.waiting)
            self._close()
            self.display.update(self.stats)
        self._close()

    def _is_too_late(self, interrupt: Interrupt) -> bool:
        """Whether the last line read ends a unit, and another would not be done in time."""
        position = self.stats.work.position
        if interrupt.seconds_left == math.inf or not 0 < position < self.plan.n_lines:
            return False
        unit = self.plan.unit_of(position + 1)
        ends = unit != self.plan.unit_of(position)
        return ends and interrupt.seconds_left < self.stats.seconds_for(self.plan.lines_of(unit))

    def _starving(self, embed: EmbedPool, compute: ComputePool) -> int:
        """Compute processes that wait for conformers: no batch is full, but more will come."""
        nothing_comes = (self.all_read or self.is_late) and not embed.pending
        has_batch = next(self.buckets.full(), None) is not None
        return 0 if nothing_comes or has_batch else compute.idle

    def _collect(self, embed: EmbedPool, compute: ComputePool, interrupt: Interrupt) -> None:
        """Take what the workers have finished."""
        for result in embed.results():
            if not interrupt.count:
                self._embedded(result)
        for event in compute.collect():
            if isinstance(event, ProgramEvent):
                self._compile_event(event, compute)
            else:
                self._row(event)
        self.stats.compiling = compute.compiling
        self.stats.pending_programs = len(compute.unmade(self.buckets.fullest()))

    def _close(self) -> None:
        """Write the units that are finished; some rows may have to be looked at once more."""
        for unit in [*self.ledger.closed(self.all_read)]:
            again = unchecked(unit, self.settings)
            if not again:
                with self.trace.host("write", unit=unit.index, rows=len(unit.rows)):
                    self.write(unit)
                continue
            self.ledger.reopened(unit, again)
            for row in again:
                shape = self.shape_of[_composition(row.conformer)]
                self.stats.uncount_row(row)
                self.buckets.add(shape, replace(row.conformer, follow=True))

    def _read(self, embed: EmbedPool, compute: ComputePool, interrupt: Interrupt) -> bool:
        """Take screened lines while there is room for conformers; returns whether more come."""
        for _ in range(LINES_AT_A_TIME):
            self.is_late = self._is_too_late(interrupt)
            if self.is_late or self.all_read or not embed.has_room or self._is_full(compute):
                return False
            try:
                verdict = next(self.lines)
            except StopIteration:
                self.all_read = True
                return False
            self.stats.work.position += 1
            if verdict is None:
                continue
            self.stats.lines += 1
            if isinstance(verdict, Candidate):
                self.stats.kept_lines += 1
                rows = self.settings.conformers * len(verdict.multiplicities)
                self.stats.work.read(verdict, rows)
                self.ledger.opened(verdict.line)
                embed.submit(verdict)
            else:
                self.stats.count_drop(verdict)
                self.ledger.dropped(verdict)
        return True

    def _is_full(self, compute: ComputePool) -> bool:
        """Whether to read no more lines: memory is full, or all processes have enough to do."""
        if self.buckets.waiting + compute.running >= MAX_WAITING:
            return True
        enough = self.buckets.waiting >= WAITING_EACH * self.stats.workers
        return enough and self.stats.work.pending >= UNIT_SECONDS

    def _embedded(self, result: Embedded) -> None:
        """Put conformers that have arrived into their bucket, or drop them."""
        conformers, drop = result.conformers, result.drop
        firsts = {each.multiplicity: each for each in reversed(conformers)}
        shapes = {multiplicity: self._shape(first) for multiplicity, first in firsts.items()}
        refused = next((each for each in shapes.values() if isinstance(each, Drop)), None)
        if refused is not None:
            conformers, drop = (), refused
        for conformer in conformers:
            self.buckets.add(shapes[conformer.multiplicity], conformer)
        if drop is not None:
            self.stats.count_drop(drop)
        self.stats.work.embedded(result.line, conformers)
        if conformers:
            self.stats.missing += len(shapes) * self.settings.conformers - len(conformers)
        else:
            self.stats.kept_lines -= 1
        self.ledger.embedded(result.line, len(conformers), drop)

    def _shape(self, first: Conformer) -> Hashable | Drop:
        """The engine's shape for a conformer; a Drop if the engine cannot compute it."""
        from pyscf_ipu.base.errors import InvalidMolecule, TooLarge

        key = _composition(first)
        if key not in self.shape_of:
            try:
                shape = self.engine.shape(first.molecule(), coarse=self.settings.coarse)
                self.shape_of[key] = shape
            except InvalidMolecule as error:  # any other error is none of the molecule's
                reason = TOO_LARGE if isinstance(error, TooLarge) else "invalid"
                return Drop(first.line, first.smiles, reason, detail=str(error), id=first.id)
        shape = self.shape_of[key]
        if shape in self.refused:
            detail = self.refused[shape]
            return Drop(first.line, first.smiles, TOO_LARGE, detail=detail, id=first.id)
        return shape

    def _flush(self, embed: EmbedPool, compute: ComputePool) -> Iterator[Hashable]:
        """Shapes whose incomplete batch should not wait longer."""
        oldest = self.buckets.oldest()
        if oldest is None:
            return
        nothing_comes = (self.all_read or self.is_late) and not embed.pending
        if nothing_comes or self._is_full(compute):
            yield from self.buckets.fullest()
        elif self.ledger.begun_since(oldest[1]) > MAX_OPEN_UNITS:
            yield oldest[0]

    def _row(self, row: Row) -> None:
        if not row.status.startswith(TOO_LARGE):
            self.stats.count_row(self.ledger.computed(row))
            return
        self.refused[self.shape_of[_composition(row.conformer)]] = row.status.partition(": ")[2]
        self.stats.count_refused(row, self.ledger.refused(row))

    def _compile_event(self, event: ProgramEvent, compute: ComputePool) -> None:
        self.stats.computing()
        if event.seconds is None:
            self.display.begin(f"worker {event.worker} compiles {event.label} ...")
            return
        self.stats.program_ready(event)
        self.trace.program(event.worker, event.label, event.seconds, cached=event.cached)
        how = "loaded from the disk cache" if event.cached else "compiled"
        size, mib = self.engine.batch_size(event.shape), compute.memory_bytes(event.shape) / 2**20
        self.display.say(
            f"worker {event.worker} {how} {event.label} in {event.seconds:.1f} s: "
            f"batch of {size}, about {mib:.0f} MiB"
        )


def _composition(conformer: Conformer) -> tuple[bytes, int, int]:
    """All that a shape depends on."""
    return conformer.numbers.tobytes(), conformer.charge, conformer.multiplicity

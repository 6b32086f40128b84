"""The main path: lines -> molecules -> conformers -> batches -> rows -> shards.

One loop in the main process moves everything along; RDKit and the engine run in worker processes.
The loop reads ahead only as far as the engine can follow, so memory does not grow with the input.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import engine, manifest, smiles, store
from .buckets import Buckets
from .conformers import Embedded, EmbedPool
from .dispatch import ComputePool, ProgramEvent
from .errors import UserError
from .interrupts import Interrupt, interrupts
from .ledger import Ledger, Unit
from .presets import RunSettings
from .progress import Display, Quiet, Stats
from .schema import Drop, Row
from .smiles import Candidate, InputSummary, Screen
from .workers import n_cores, wait

MAX_WAITING = 4096
"""Conformers in memory that wait for the engine, about; then no more lines are read."""

MAX_OPEN_UNITS = 4
"""An incomplete batch is sent off when this many newer work units have been begun."""

LINES_AT_A_TIME = 32
"""Lines read between two looks at the workers."""


@dataclass(frozen=True)
class Run:
    """One run: what, from where, to where, on what."""

    source: Path
    out: Path
    settings: RunSettings
    workers: int = 0
    """Compute processes; 0 for one a core."""
    factory: str = engine.DEFAULT

    @property
    def title(self) -> str:
        """From where to where, and what is computed."""
        level, count = self.settings.level, self.settings.conformers
        return (
            f"{self.source} -> {self.out}: {count} conformer{'s' * (count > 1)} a molecule, "
            f"{level.xc}/{level.basis}, grid level {level.grid_level}, {level.precision}"
        )


@dataclass(frozen=True)
class Summary:
    """How a run ended."""

    stats: Stats
    interrupted: bool


def generate(run: Run, display: Display | None = None) -> Summary:
    """Compute every conformer of every molecule of a file, into `run.out`.

    Raises:
        UserError: the input, the output folder or the settings cannot be used, the disk is full, or
            the compute processes cannot start.
    """
    summary = smiles.summarise(run.source)
    try:
        solver = engine.build(run.factory, run.settings.level)
        definition = engine.definition(run.settings.level.xc)
    except ValueError as error:
        raise UserError(f"{error}.".replace("..", ".")) from None
    store.prepare(run.out)
    return _Generation(run, summary, solver, definition, display or Quiet()).execute()


class _Generation:
    """The state of a running generation."""

    def __init__(
        self, run: Run, source: InputSummary, solver: Any, definition: str, display: Display
    ) -> None:
        self.run, self.settings, self.display = run, run.settings, display
        self.solver = solver
        self.memory_bytes = functools.cache(solver.memory_bytes)
        self.n_ao = functools.partial(_n_ao, functools.cache(lambda z: solver.n_ao([z])))
        n_lines = min(source.n_lines, self.settings.limit or source.n_lines)
        self.stats = Stats(n_lines, self.settings.conformers)
        self.manifest = manifest.describe(run.settings, run.source, source, definition)
        self.lines: Iterator[smiles.Line] = smiles.read(run.source, self.settings.limit)
        self.all_read = False
        self.screen = Screen(self.n_ao, self.settings.max_aos, self.settings.keep_charged)
        self.ledger = Ledger(self.settings.unit_lines)
        self.buckets = Buckets(functools.cache(solver.batch_size))
        self.shape_of: dict[bytes, Hashable] = {}

    def execute(self) -> Summary:
        """Run to the end, or to the first Ctrl-C; then write what is left and the manifest."""
        from pyscf_ipu.memory import available_bytes

        self._write_manifest("running")
        store.write_dropped(self.run.out, [])
        n = self.run.workers or n_cores()
        log = self.run.out / store.LOG
        s = self.settings
        status = "failed"
        with self.display, interrupts() as interrupt:
            self.display.say(self.run.title)
            compute = ComputePool(
                n,
                self.run.factory,
                s.level,
                log,
                self.n_ao,
                self.memory_bytes,
                available_bytes(),
            )
            embed = EmbedPool(max(1, n // 8), s.conformers, s.seed, s.embed_timeout, log)
            try:
                self._loop(embed, compute, interrupt)
                for unit in self.ledger.interrupted():
                    self._write(unit)
                status = "interrupted" if interrupt.count else "complete"
            finally:
                embed.stop()
                compute.stop()
                self._finish(status)
        return Summary(self.stats, status == "interrupted")

    def _loop(self, embed: EmbedPool, compute: ComputePool, interrupt: Interrupt) -> None:
        told = False
        flush = functools.partial(self._flush, embed)
        while not interrupt.count or (compute.running and interrupt.count == 1):
            if interrupt.count:
                if not told:
                    self.display.say(
                        "Interrupted: finishing the running batches; once more to stop at once."
                    )
                    told = True
                compute.abandon_retries()
            else:
                self._read(embed, compute)
                for row in compute.dispatch(self.buckets, flush):
                    self._row(row)
                if self.all_read and not self.ledger.unfinished:
                    break
            wait([*compute.workers, *embed.workers], timeout=0.2)
            for result in embed.results():
                if not interrupt.count:
                    self._embedded(result)
            for event in compute.collect():
                if isinstance(event, ProgramEvent):
                    self._compile_event(event)
                else:
                    self._row(event)
            self.stats.compiling = compute.compiling
            for unit in self.ledger.closed(self.all_read):
                self._write(unit)
            self.display.update(self.stats)
        for unit in self.ledger.closed(self.all_read):
            self._write(unit)

    def _read(self, embed: EmbedPool, compute: ComputePool) -> None:
        """Read and screen lines while there is room for their conformers."""
        for _ in range(LINES_AT_A_TIME):
            busy = self.buckets.waiting + compute.running
            if self.all_read or not embed.has_room or busy >= MAX_WAITING:
                return
            line = next(self.lines, None)
            if line is None:
                self.all_read = True
                return
            self.stats.lines_read += 1
            found = self.screen(line)
            if isinstance(found, Candidate):
                self.stats.molecules += 1
                self.ledger.opened(line.number, found.smiles)
                embed.submit(found)
            else:
                self.stats.count_drop(found)
                self.ledger.dropped(found)

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
        key = first.numbers.tobytes()
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
        elif self.ledger.unit_of(oldest[1]) < self.ledger.newest - MAX_OPEN_UNITS:
            yield oldest[0]

    def _row(self, row: Row) -> None:
        self.stats.count_row(row)
        self.ledger.computed(row)

    def _compile_event(self, event: ProgramEvent) -> None:
        if event.seconds is None:
            self.display.begin(f"worker {event.worker} compiles {event.label} ...")
            return
        self.stats.compiles.append(event)
        how = "loaded from the disk cache" if event.cached else "compiled"
        self.display.say(f"worker {event.worker} {how} {event.label} in {event.seconds:.1f} s")

    def _write(self, unit: Unit) -> None:
        """Close a unit: its shard first, which is what counts, then the readable dropped.csv."""
        attributes = {key: self.manifest[key] for key in manifest.LEVEL_KEYS}
        attributes |= self.manifest["settings"]
        attributes["unit"] = unit.index
        attributes["complete"] = unit.complete
        if not unit.complete:
            for drop in unit.drops:
                if drop.reason == "interrupted":
                    self.stats.count_drop(drop)
        store.write_shard(self.run.out, unit.index, unit.rows, unit.drops, attributes)
        store.append_dropped(self.run.out, unit.drops)

    def _finish(self, status: str) -> None:
        """dropped.csv in the order of the input, and the counts into the manifest."""
        drops = itertools.chain.from_iterable(map(store.read_drops, store.shards(self.run.out)))
        store.write_dropped(self.run.out, drops)
        self._write_manifest(status)

    def _write_manifest(self, status: str) -> None:
        whole = self.manifest | {"status": status} | manifest.progress(self.stats)
        store.write_manifest(self.run.out, whole)


def _n_ao(of_element: Callable[[int], int], numbers: Any) -> int:
    return sum(of_element(int(z)) for z in numbers)

"""A run: an input file and settings in, a folder of shards out; or what a folder lacks of that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import cluster, engine, folder, inputs, manifest, store
from .errors import UserError
from .folder import Folder
from .inputs import InputSummary
from .interrupts import Interrupt, interrupts
from .ledger import Unit
from .pipeline import Found, Pipeline, Pools, Reports
from .presets import RunSettings
from .progress import Display, Quiet, Stats
from .smiles import Screen
from .tally import Tally
from .units import WHOLE, Plan, Share
from .workers import n_cores


@dataclass(frozen=True)
class Run:
    """One run: what, from where, to where, on what."""

    source: Path
    out: Path
    settings: RunSettings
    workers: int = 0
    """Compute processes; 0 for one a core."""
    factory: str = engine.DEFAULT
    share: Share = WHOLE
    """The part of the work units that this run takes."""
    other_versions: bool = False
    """Go on in a folder that other software began."""
    cluster: str | None = None
    """Address of a Ray cluster, or auto; None to compute on this machine."""

    @property
    def title(self) -> str:
        """From where to where, and what is computed."""
        level, count = self.settings.level, self.settings.conformers
        part = f", shard {self.share}" if self.share.count > 1 else ""
        return (
            f"{self.source} -> {self.out}: {count} conformer{'s' * (count > 1)} a molecule, "
            f"{level.xc}/{level.basis}, grid level {level.grid_level}, {level.precision}{part}"
        )


@dataclass(frozen=True)
class Summary:
    """How a run ended."""

    stats: Stats
    """Of this run and, for the counts, of the runs before it in the same folder."""
    tally: Tally
    """What lies in the folder."""
    interrupted: bool


def generate(run: Run, display: Display | None = None) -> Summary:
    """Compute every conformer of every molecule of a file, into `run.out`.

    If `run.out` holds a part of that already, only the rest is computed: the folder is the same in
    the end, row by row, as if one run had filled it.

    Raises:
        UserError: the input, the output folder or the settings cannot be used, the folder is in use
            or holds another run, the input changes under way, the disk is full, or the compute
            processes cannot start or keep dying.
    """
    source = inputs.summarise(run.source, run.settings)
    try:
        solver = engine.build(run.factory, run.settings.level)
        definition = engine.definition(run.settings.level.xc)
    except ValueError as error:
        raise UserError(f"{error}.".replace("..", ".")) from None
    n_lines = min(source.n_lines, run.settings.limit or source.n_lines)
    plan = Plan(n_lines, run.settings.unit_lines, run.share)
    identity = manifest.describe(run.settings, run.source, source, definition, run.share)
    with folder.opened(run.out, identity, plan, run.other_versions) as out:
        return _Generation(run, source, out, solver, display or Quiet()).execute()


class _Generation:
    """The state of a running generation."""

    def __init__(
        self, run: Run, source: InputSummary, out: Folder, solver: Any, display: Display
    ) -> None:
        self.run, self.source, self.out = run, source, out
        self.solver, self.display = solver, display
        self.n_ao = engine.ao_counter(solver)
        self.stats = _stats(out, run.settings.conformers)
        self.workers = run.workers or n_cores()
        self.started = folder.started_now()

    def execute(self) -> Summary:
        """Run to the end, or to the first Ctrl-C; the folder is in order in any case."""
        self._write_manifest("running")
        self.out.write_dropped()
        with self.display, interrupts() as interrupt:
            self.display.say(self.run.title)
            self._say_what_is_there()
            try:
                if self.out.missing:
                    self._compute(interrupt)
                self.out.write_dropped()
            except BaseException:
                with suppress(UserError):  # on a full disk this fails too; the first error counts
                    self._write_manifest("failed")
                raise
            status = "interrupted" if self.out.missing else "complete"
            self._write_manifest(status)
        return Summary(self.stats, self.out.tally, status == "interrupted")

    def _compute(self, interrupt: Interrupt) -> None:
        """The missing units."""
        if self.run.cluster:
            run, plan = self.run, self.out.plan
            job = cluster.Job(run.settings, run.factory, plan, run.other_versions, self._write)
            watch = cluster.Watch(self.stats, self.display, interrupt)
            cluster.compute(self.run.cluster, job, self._lines(), watch)
        else:
            self._compute_here(interrupt)

    def _compute_here(self, interrupt: Interrupt) -> None:
        """On this machine's cores."""
        log = self.run.out / store.LOG
        settings = self.run.settings
        pools = Pools(self.workers, self.run.factory, settings, self.solver, self.n_ao, log)
        try:
            reports = Reports(self.stats, self.display, self._write)
            Pipeline(settings, self.solver, self._lines(), reports).run(pools, interrupt)
        finally:
            pools.stop()

    def _lines(self) -> Iterator[Found]:
        """The screened lines of missing units, up to the last of them.

        Every line before is screened too: whether a molecule is a duplicate depends on all lines
        above it, whoever computed them.

        Raises:
            UserError: the input is not what it was when the run began.
        """
        settings, missing = self.run.settings, set(self.out.missing)
        screen = Screen(self.n_ao, settings.max_aos, settings.keep_charged, settings.conformers)
        last = min((max(missing) + 1) * settings.unit_lines, self.out.plan.n_lines)
        for line in inputs.read(self.run.source, settings, last, self.source):
            found = screen(line)
            yield found if self.out.plan.unit_of(line.number) in missing else None

    def _write(self, unit: Unit, versions: Mapping[str, str] | None = None) -> None:
        self.out.add(unit, versions)
        self._write_manifest("running")

    def _write_manifest(self, status: str) -> None:
        this_run = {
            "started": self.started,
            "seconds": round(self.stats.seconds, 1),
            "starved_seconds": round(self.stats.starved_seconds, 1),
            "rows": self.out.tally.rows - self.stats.rows_before,
            "workers": None if self.run.cluster else self.workers,
            "cluster": self.run.cluster,
            "versions": self.out.identity["versions"],
            "programs": [
                {"shape": e.label, "seconds": round(e.seconds or 0.0, 2), "cached": e.cached}
                for e in self.stats.compiles
            ],
        }
        self.out.write_manifest(status, this_run)

    def _say_what_is_there(self) -> None:
        out = self.out
        for name in out.identity["input"]["skipped"]:
            self.display.say(f"{name} in the archive is not read: its name is of no format")
        for name in out.damaged:
            self.display.say(f"{name} was damaged and is computed again")
        if out.done:
            self.display.say(
                f"{len(out.done)} of {len(out.plan.units)} work units are there, with "
                f"{out.tally.rows} rows"
            )


def _stats(out: Folder, conformers: int) -> Stats:
    """The display's counts, beginning with what lies in the folder."""
    tally = out.tally
    return Stats(
        n_lines=out.plan.lines,
        conformers=conformers,
        lines_read=tally.lines,
        molecules=tally.kept_lines,
        missing=tally.kept_lines * conformers - tally.rows,
        rows=tally.rows,
        rows_before=tally.rows,
        statuses=tally.statuses.copy(),
        drops=tally.drops.copy(),
    )

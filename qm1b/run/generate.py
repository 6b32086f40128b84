"""A run: from an input file and settings to a folder of shards, or to the rest of its shards."""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

from pyscf_ipu.base.host.cores import n_cores
from pyscf_ipu.base.terminal import counted
from qm1b import inputs
from qm1b.engine import factory as engine_factory
from qm1b.engine.factory import Engine
from qm1b.errors import UserError
from qm1b.folder import run_folder, shards
from qm1b.folder.manifest import manifest
from qm1b.folder.manifest.manifest import Manifest
from qm1b.folder.manifest.manifest_schema import COMPLETE, RUNNING
from qm1b.folder.manifest.tally import Tally
from qm1b.folder.manifest.work_units import WHOLE, Share, cut
from qm1b.folder.run_folder import LockedFolder
from qm1b.inputs import InputSummary
from qm1b.process.display import Display
from qm1b.process.interrupts import Interrupt, interrupts
from qm1b.reference.free_atoms import FreeAtoms
from qm1b.rows.schema import RETRIABLE, Json
from qm1b.rows.unit import Unit
from qm1b.run import cluster
from qm1b.run.pipeline import Pipeline, Pools, Reports, Verdict
from qm1b.run.progress.preview import Preview, too_large
from qm1b.run.progress.progress import Stats
from qm1b.run.progress.work import PricedWork
from qm1b.run.trace import Trace
from qm1b.screening.limits import Limits
from qm1b.screening.screen import Screen
from qm1b.settings import FINE, RunSettings
from qm1b.storage import kept


@dataclass(frozen=True)
class Run:
    """What to compute, from where, to where, on what."""

    source: Path
    out: Path
    settings: RunSettings
    workers: int = 0
    """Compute processes; 0 for one per core."""
    factory: str = engine_factory.DEFAULT
    share: Share = WHOLE
    """The part of the work units that this run takes."""
    other_versions: bool = False
    """Resume a run that other versions of the software began."""
    cluster: str | None = None
    """Address of a Ray cluster, or auto; None to compute on this machine."""
    retry_dropped: tuple[str, ...] = ()
    """Reasons of `qm1b.rows.schema.RETRIABLE`: lines in the folder that were dropped for one of
    them are tried again."""
    trace: Path | None = None
    """File for a trace of the processes (`qm1b.run.trace`)."""
    deadline: float = math.inf
    """By `time.monotonic`: the run begins no unit that would not be finished by then, and ends."""

    @property
    def title(self) -> str:
        """From where to where, and what is computed."""
        count = self.settings.conformers
        part = f", shard {self.share}" if self.share.count > 1 else ""
        return (
            f"{self.source} -> {self.out}: {count} conformer{'s' * (count > 1)} per molecule, "
            f"{self.settings.level.in_words}{', with forces' * self.settings.forces}"
            f"{''.join(f', {name}' for name in self.settings.properties)}"
            f"{', with every cycle' * self.settings.level.history}"
            f"{f', {self.settings.padding} padding' * bool(self.settings.coarse)}"
            f"{f', on a simulated {self.settings.machine}' * self.settings.is_simulated}{part}"
        )


@dataclass(frozen=True)
class Summary:
    """How a run ended."""

    stats: Stats
    """Statistics of this run; the counts include earlier runs in the same folder."""
    tally: Tally
    """What the folder holds."""
    interrupted: bool
    stopped_in_time: bool = False
    """Whether it was `Run.deadline` that ended it."""


def generate(run: Run, display: Display | None = None) -> Summary:
    """Compute every conformer of every molecule of a file, into `run.out`.

    If `run.out` holds a part of that already, only the rest is computed. In the end the folder is
    the same, row by row, as if one run had filled it.

    Raises:
        UsageError: the input, the output folder or the settings cannot be used, the folder is in
            use or holds another run, the input changes during the run, the disk is full, or the
            compute processes cannot start or keep dying.
        MissingPackage: the package of a dispersion correction is not installed.
    """
    _check_retry(run)
    source = inputs.summarise(run.source, run.settings)
    engine = engine_factory.build(run.factory, run.settings)
    definition = engine_factory.definition(run.settings.level.xc)
    settings = with_padding(run.settings, run.out)
    preview = Preview.of(source, settings, limits_of(settings, engine))
    settings = replace(settings, padding=preview.padding)
    run = replace(run, settings=with_units(settings, run.out, preview, stride=source.stride))
    identity = Manifest.of(run.settings, run.source, source, definition=definition, share=run.share)
    retry = run.retry_dropped
    with run_folder.opened(run.out, identity, run.other_versions, retry=retry) as out:
        generation = _Generation(
            run, source, out, engine=engine, preview=preview,
            display=display or Display(),
        )  # fmt: skip
        return generation.execute()


def with_padding(settings: RunSettings, folder: Path) -> RunSettings:
    """The settings with a padding: the one given, that of the run in the folder, or none."""
    if settings.padding is not None:
        return settings
    earlier = shards.settings_of_run(folder)
    if earlier is None:
        return settings
    return replace(settings, padding=earlier.get("padding", FINE))


def with_units(settings: RunSettings, folder: Path, preview: Preview, stride: int) -> RunSettings:
    """The settings with the work units: those given, those of the run in the folder, or new ones.

    Args:
        settings: of the run.
        folder: its own; it may not exist.
        preview: of the whole input, also if this run computes a share of it.
        stride: lines of a unit are multiples of it.
    """
    if settings.unit_rows is not None:
        return settings
    earlier = shards.settings_of_run(folder) or {}
    if "units" in earlier:
        return replace(settings, units=tuple(map(tuple, earlier["units"])))
    if "unit_rows" in earlier:
        return replace(settings, unit_rows=earlier["unit_rows"])
    units = cut(preview.line_seconds, preview.n_lines, settings.conformers, stride=stride)
    return replace(settings, units=units)


def limits_of(settings: RunSettings, engine: Engine) -> Limits:
    """The limits that molecules must keep."""
    return Limits.of(settings, engine_factory.ao_counter(engine))


def _check_retry(run: Run) -> None:
    unknown = [reason for reason in run.retry_dropped if reason not in RETRIABLE]
    if unknown:
        raise UserError(
            f"--retry-dropped names {unknown[0]!r}: only lines dropped as {', '.join(RETRIABLE)} "
            "can be tried again (one or more, with commas between); the others would be dropped "
            "again"
        )


class _Generation:
    """The state of a running generation."""

    def __init__(
        self,
        run: Run,
        source: InputSummary,
        out: LockedFolder,
        *,
        engine: Engine,
        preview: Preview,
        display: Display,
    ) -> None:
        self.run, self.source, self.out, self.preview = run, source, out, preview
        self.engine, self.display = engine, display
        self.rows_before = out.tally.rows
        left = copy(out.tally)
        left.replace(out.taken_out, Tally())
        work, each = PricedWork(preview), run.settings.conformers
        self.stats = Stats.after(left, out.plan.lines, each, work=work)
        self.workers = run.workers or n_cores()
        self.started = run_folder.started_now()
        self.limits = limits_of(run.settings, engine)
        known = out.identity.free_atom_energies_hartree
        self._of_atoms: Json = {
            "level": run.settings.level.to_dict(), "max_aos": run.settings.max_aos,
            "factory": run.factory, "versions": dict(out.identity.versions),
        }  # fmt: skip
        before = kept.find("free-atoms", self._of_atoms)
        numbers: list[int] = []
        if isinstance(before, dict):
            known = before | dict(known)
        else:
            numbers = self.limits.elements()
        self.atoms = FreeAtoms(run.settings.level, numbers, known)

    def execute(self) -> Summary:
        """Run to the end, or to the first Ctrl-C; the folder is consistent in either case."""
        self._write_manifest(RUNNING)
        self.out.write_dropped()
        with self.display, interrupts(Interrupt(self.run.deadline)) as interrupt:
            self.display.say(self.run.title)
            self._say_what_is_there()
            try:
                if self.out.to_do:
                    self._compute(interrupt)
                self.out.write_dropped()
                if not interrupt.count:
                    self._know_atoms()
                self.stats.settle(self.out.tally)
                self.display.end(self.stats)
            except BaseException:
                with suppress(UserError):  # a full disk; the first error counts
                    self._write_manifest("failed")
                raise
            finally:
                self.atoms.stop()
            status = "interrupted" if self.out.to_do else COMPLETE
            self._write_manifest(status)
        in_time = bool(self.out.to_do) and not interrupt.by_hand
        return Summary(
            self.stats,
            self.out.tally,
            interrupted=status == "interrupted",
            stopped_in_time=in_time,
        )

    def _compute(self, interrupt: Interrupt) -> None:
        """Compute the missing units, on a cluster or on this machine's cores."""
        run = self.run
        reports = Reports(self.stats, self.display, self._write)
        if run.cluster:
            job = cluster.ClusterJob(
                run.settings, run.factory, self.out.plan, other_versions=run.other_versions
            )
            cluster.compute(run.cluster, job, self._lines(), reports=reports, interrupt=interrupt)
            return
        with Trace(run.trace) as trace:
            log = run.out / shards.LOG
            pools = Pools(self.workers, run.factory, run.settings, engine=self.engine, log=log)
            try:
                pipeline = Pipeline(
                    run.settings, self.engine, self._lines(), plan=self.out.plan, reports=reports,
                    trace=trace,
                )  # fmt: skip
                pipeline.run(pools, interrupt)
            finally:
                pools.stop()

    def _lines(self) -> Iterator[Verdict]:
        """The screened lines of missing units and those tried again, up to the last of them.

        Every line before is screened too, because a molecule on any of them makes a later one a
        duplicate.

        Raises:
            UserError: the input is not what it was when the run began.
        """
        settings, wanted = self.run.settings, self.out.wanted()
        screen = Screen(self.limits, settings.conformers)
        last = self.out.plan.last_line(self.out.to_do[-1])
        for line in inputs.read(self.run.source, settings, last, expected=self.source):
            verdict = screen(line)
            yield verdict if wanted(line.number) else None
        for doubt in screen.doubts:
            self.display.say(f"Warning: {self.run.source}: {doubt}")

    def _know_atoms(self) -> None:
        """Wait for the free atoms, and put their energies into the manifest before any row."""
        if self.atoms.energies != self.out.identity.free_atom_energies_hartree:
            self.out.know(self.atoms.energies)
            self._write_manifest(RUNNING)
            if not self.atoms.problems:
                kept.keep("free-atoms", self._of_atoms, self.atoms.energies)
        while self.atoms.problems:  # each is said once
            symbol, problem = self.atoms.problems.popitem()
            self.display.say(
                f"PySCF gave no energy of the free atom of {symbol} ({problem}): rows with it have "
                "no atomisation energy"
            )

    def _write(self, unit: Unit, versions: Mapping[str, str] | None = None) -> None:
        self._know_atoms()
        self.out.add(unit, versions)
        self._write_manifest(RUNNING)

    def _write_manifest(self, status: str) -> None:
        this_run = {
            "started": self.started,
            "seconds": round(self.stats.seconds, 1),
            "starved_seconds": round(self.stats.starved_seconds, 1),
            "rows": self.out.tally.rows - self.rows_before,
            "workers": None if self.run.cluster else self.workers,
            "cluster": self.run.cluster,
            "versions": dict(self.out.identity.versions),
            "programs": [
                {"shape": e.label, "seconds": round(e.seconds or 0.0, 2), "cached": e.cached}
                for e in self.stats.compiles
            ],
            "troubles": dict(sorted(self.stats.troubles.items())),
        }
        self.out.write_manifest(status, this_run)

    def _say_what_is_there(self) -> None:
        out = self.out
        for name in out.identity.input.skipped:
            self.display.say(f"skipping {name} in the archive: its name has no known ending")
        if large := too_large(self.preview, self.source, self.run.settings, limits=self.limits):
            self.display.say(large)
        if out.mended:
            self.display.say(f"manifest.json is written anew: {out.mended}")
        if out.mixed:
            self.display.say(
                "other software computed rows that are here, which may differ from the next ones:\n"
                f"{manifest.table([*out.mixed])}"
            )
        for name in out.damaged:
            self.display.say(f"{name} was damaged; computing it again")
        if out.done:
            self.display.say(
                f"resuming: {len(out.done)} of {counted(len(out.plan.units), 'work unit')} done, "
                f"with {counted(out.tally.rows, 'row')}"
            )
        if self.run.retry_dropped:
            n, names = sum(map(len, out.again.values())), " or ".join(self.run.retry_dropped)
            lines = counted(n, "line")
            self.display.say(f"trying {lines} again that the run has dropped as {names}")

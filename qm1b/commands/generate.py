"""`qm1b generate`: molecules in, a folder of shards out."""

import math
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import tyro

from pyscf_ipu.base.terminal import EXIT_INTERRUPTED, say
from pyscf_ipu.elements.cartesian import Cart
from pyscf_ipu.settings import Settings, preset
from qm1b import inputs
from qm1b.commands.choices import (
    conformers,
    duration_seconds,
    forces_need,
    on_its_machine,
    properties,
    size_limit,
    spins,
    stability,
)
from qm1b.commands.ending import how_to_go_on, outcome, this_command
from qm1b.errors import UserError
from qm1b.folder.manifest.work_units import WHOLE, Share
from qm1b.folder.stdin import PIPE, spooled
from qm1b.inputs.container import MEMBER_SUFFIXES
from qm1b.process.worker import start_server
from qm1b.rows.schema import Json
from qm1b.settings import PRESETS, RunSettings

if TYPE_CHECKING:
    from pyscf_ipu.ipu import Target

SAMPLE = Path(__file__).parent.parent / "data" / "gdb11_sample.smi"
SUFFIXES = {*MEMBER_SUFFIXES, ".gz", ".bz2", ".xz", ".tar", ".tgz"}
EXIT_NOTHING, FIRST_ROWS = 1, 8
EXIT_STOPPED = 124
"""After --stop-after, as of timeout(1)."""
DEFAULT_PRESET, FEW_CONFORMERS = "qm1b", 4
"""Without --preset: the level, and conformers for a first look."""

TOO_LARGE = 2**63
"""The least integer that HDF5 cannot hold."""


@dataclass(frozen=True)
class Generate(RunSettings):
    """Compute a dataset from a file of molecules."""

    groups: ClassVar = {
        "level of theory": "preset basis xc grid_level nlc_grid unpruned grid_kind precision cart "
        "jk accuracy fixed_cycles history forces properties",
        "conformers": "conformers seed embed_timeout relax rattle_angstrom one_stereoisomer",
        "quality": "retry stability audit retry_dropped",
        "computing": "machine run_vertices workers shard cluster padding stop_after "
        "allow_other_versions",
        "files": "out input_format smiles_column id_column limit max_aos price trace",
        "electrons": "keep_charged open_shells multiplicities",
    }
    stdout_is_log: ClassVar = True

    source: Annotated[
        tyro.conf.Positional[Path],
        tyro.conf.arg(help_behavior_hint="If not given, a sample of 300 that comes with qm1b."),
    ] = SAMPLE
    """SMILES, one per line (GDB's columns may follow); CSV or TSV with a column of SMILES; SDF, XYZ
    or extended XYZ with geometries; compressed or in a .tar.gz too; or - for standard input."""
    out: Path | None = None
    """Folder for the dataset. If it holds an unfinished run of the same input and settings, that
    run is resumed. If not given, a new folder: data/NAME of the input, numbered if it exists."""
    level: tyro.conf.Suppress[tyro.conf.Fixed[Settings]] = PRESETS["qm1b"]
    unit_rows: tyro.conf.Suppress[tyro.conf.Fixed[int | None]] = None
    units: tyro.conf.Suppress[tyro.conf.Fixed[None]] = None
    conformers: int | None = None  # type: ignore[assignment]
    """Conformers per molecule; if not given, the preset's number, which is 1000 for qm1b, or 4
    without a preset. Displaced copies per geometry, 1 if not given."""
    forces: bool | None = None  # type: ignore[assignment]
    """Also compute the force on every atom, -dE/dR (--forces), or not (--no-forces), instead of the
    preset's choice; rows that did not converge have none."""
    max_aos: int | None = None  # type: ignore[assignment]
    """Drop molecules with more atomic orbitals (too_large). If not given, 128 for qm1b; for the
    other presets, as many as this machine's memory holds."""
    preset: str | None = None
    """Level of theory of a published dataset, and its number of conformers: qm1b (B3LYP with
    VWN5/STO-3G, grid level 0, float32), qm9, pubchemqc, ani1x, transition1x, qmugs, rmd17, qh9,
    spice, omol25 or openff; or a method, r2scan-3c or b97-3c; docs/levels.md has each. If not
    given, qm1b's level with few conformers."""
    basis: str | None = None
    """Basis set instead of the preset's, then with spherical functions unless --cart is given;
    r2scan-3c and b97-3c have their own."""
    xc: str | None = None
    """hf, lda, pbe, blyp, b3lyp, b3lyp5, pbe0, wb97x and others instead of the preset's functional;
    for dispersion with -d3bj, -d3 or -d4 behind it: b3lyp-d3bj."""
    grid_level: int | tuple[int, int] | None = None
    """Integration grid, 0 to 9, instead of the preset's; or two numbers: radial points, and points
    of each sphere."""
    nlc_grid: int | tuple[int, int] | None = None
    """Grid of VV10's pairs of points, for a functional that has it, instead of the preset's: 0 to
    9, or two numbers."""
    unpruned: bool | None = None
    """Keep all points of every sphere (--unpruned), or leave some out as PySCF does
    (--no-unpruned); if not given, as the preset does, or as PySCF does with --grid-level 0 to 9."""
    grid_kind: Literal["pyscf", "gaussian"] | None = None
    """PySCF's grids, or Gaussian's before its pruning, for which --grid-level is two numbers and
    all points are kept; if not given, as the preset does, or PySCF's with --grid-level 0 to 9."""
    precision: str | None = None
    """float32, mixed (float32, with the final energy in float64) or float64 instead of the
    preset's."""
    cart: Cart | None = None
    """Cartesian d and f functions (--cart), spherical ones (--no-cart), or cartesian d and
    spherical f (--cart 6d7f), as Gaussian takes for Pople's basis sets, instead of the preset's."""
    jk: Literal["exact", "ri", "auto"] | None = None
    """Electron repulsion from all its integrals (exact), by density fitting (ri), or by density
    fitting for shapes of more than 128 atomic orbitals (auto), instead of the preset's."""
    accuracy: Literal["energy", "orbitals", "properties"] | None = None
    """What is to be right: the energy alone, orbital energies too, or all columns (properties, the
    default). The first two save some of the last cycles."""
    fixed_cycles: int | None = None
    """Do exactly this many SCF cycles, as QM1B did (20), instead of ending when converged."""
    history: bool = False
    """Keep energy, commutator and gap of every SCF cycle in each row."""
    workers: int = 0
    """Compute processes; 0 for one per core."""
    shard: str | None = None
    """i/n: compute only the work units i, i + n, i + 2 n, ..., into the folder OUT/part-i-of-n.
    Give each of the n jobs its own i, from 0 to n - 1, then join the folders with qm1b merge. With
    a preset other than qm1b give --max-aos, too."""
    cluster: str | None = None
    """Compute on a Ray cluster: its address, or auto for the one that this machine belongs to."""
    stop_after: str | None = None
    """End the run cleanly before this time is over, for example 20h, 90m or 1d12h; the same command
    goes on. The exit code is then 124."""
    allow_other_versions: bool = False
    """Resume a run although other versions of the software began it; rows may then be mixed."""
    retry_dropped: str | None = None
    """Try lines again that the run in --out has dropped for these reasons: embed_crash,
    embed_timeout or too_large, with commas between. The other rows stay as they are."""
    price: str | None = None
    """Afterwards, predict what the rows would have cost on this simulated IPU, bow or gc200: into
    the manifest, by shape, and so into the dataset card."""
    trace: Path | None = None
    """Write what this process and its workers do, and when, to a .json file for
    https://ui.perfetto.dev or chrome://tracing."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from rich.console import Console

        from qm1b.process.display import Bar, Plain
        from qm1b.report.info import first_rows
        from qm1b.run.generate import Run, generate

        began, chip = time.monotonic(), None
        if self.cluster is None:
            start_server()
        if self.price:
            from pyscf_ipu.ipu.chip.target import priced_target

            chip = priced_target(self.price)
        share = Share.parse(self.shard) if self.shard else WHOLE
        out = self._folder(share)
        source = spooled(out) if self.source == PIPE else self.source
        settings, versions = run_settings(self, source), self.allow_other_versions
        if chip:
            from qm1b.report.costs.shape_price import check_priced

            check_priced(settings.level)
        run = Run(
            source,
            out,
            settings,
            workers=self.workers,
            share=share,
            other_versions=versions,
            cluster=self.cluster,
            retry_dropped=self._reasons(),
            trace=self._trace(),
            deadline=began + duration_seconds(self.stop_after) if self.stop_after else math.inf,
        )
        console = Console()
        summary = generate(run, Bar(console) if console.is_terminal else Plain())
        say(outcome(summary))
        say(first_rows(out, FIRST_ROWS))
        say(f"\nThe data are in {out} (dropped.csv there says what was left out and why).")
        if summary.interrupted:
            say(how_to_go_on(summary, out, self.out is not None))
            return EXIT_STOPPED if summary.stopped_in_time else EXIT_INTERRUPTED
        if share.count == 1 and not summary.tally.rows:
            say(f"qm1b: {self.source} gave no rows; dropped.csv says why", to_stderr=True)
            return EXIT_NOTHING
        if chip is not None and summary.tally.rows:
            _say_price(out, chip)
        if share.count == 1:
            say(f"As one table: {this_command()} export {out} {out}.parquet")
        if self.source == SAMPLE:
            say(
                "These are bundled molecules. For your own, give a file of SMILES: "
                f"{this_command()} generate FILE"
            )
        return 0

    def _trace(self) -> Path | None:
        """The file of the trace."""
        if self.trace is not None and self.trace.suffix != ".json":
            raise UserError(f"--trace is {self.trace}: its name must end in .json")
        if self.trace is not None and not self.trace.absolute().parent.is_dir():
            raise UserError(f"--trace is {self.trace}: there is no such folder; make it first")
        if self.trace is not None and self.cluster is not None:
            raise UserError("--trace is for this machine's processes: leave --cluster out")
        return self.trace

    def _reasons(self) -> tuple[str, ...]:
        """The reasons for which lines are tried again."""
        if self.retry_dropped is None:
            return ()
        if self.out is None:
            raise UserError("--retry-dropped needs --out: the folder of the run that dropped them")
        return tuple(dict.fromkeys(name.strip() for name in self.retry_dropped.split(",")))

    def _folder(self, share: Share) -> Path:
        """Where the data goes."""
        if self.shard is None:
            return self.out or _free_folder(self.source)
        if self.out is None:
            raise UserError("--shard needs --out: the jobs must agree on a folder")
        return self.out / part_name(share)


def _say_price(folder: Path, chip: "Target") -> None:
    """Price the rows, and say what they would have cost."""
    from qm1b.report.costs.run_price import price_run

    price = price_run(folder, chip, say)
    low, high = (price["ipu_seconds"][end] for end in ("low", "high"))
    say(f"On {chip.name} these {price['rows']} rows would take {low:.3g} to {high:.3g} IPU-seconds")


def part_name(share: Share) -> str:
    """The folder of a share, within the folder of the whole."""
    width = len(str(share.count - 1))
    return f"part-{share.index:0{width}d}-of-{share.count}"


def run_settings(command: Generate, source: Path | None = None) -> RunSettings:
    """The settings of a run: the preset, overridden by the flags that were given.

    Args:
        command: the flags.
        source: the input, if it is not the command's.

    Raises:
        UserError: a number is out of range, there is no such preset, the input cannot be read, or
            a flag does not go with its format.
    """
    allowed = {
        "conformers": (1 if command.conformers is None else command.conformers, 1),
        "max-aos": (1 if command.max_aos is None else command.max_aos, 1),
        "limit": (command.limit or (1 if command.limit is None else 0), 1),
        "seed": (command.seed, 0),
        "workers": (command.workers, 0),
        "embed-timeout": (command.embed_timeout, 1),
        "rattle-angstrom": (command.rattle_angstrom, 0),
    }
    for name, (value, least) in allowed.items():
        if not least <= value < TOO_LARGE:  # refuses nan too
            raise UserError(f"--{name} is {value}: it must be at least {least}, and below 2**63")
    if not 0 <= command.audit <= 1:
        raise UserError(f"--audit is {command.audit}: give a fraction of the rows, from 0 to 1")
    dataset = preset(command.preset or DEFAULT_PRESET)
    names = "basis grid_level nlc_grid precision grid_kind jk accuracy fixed_cycles".split()
    level = {name: getattr(command, name) for name in names} | {
        "xc": command.xc and command.xc.lower(),
        "cart": _cart(command),
        "prune": _prune(command),
        "history": command.history or None,
    }
    given = {name: value for name, value in level.items() if value is not None}
    input_format = inputs.resolve(source or command.source, command.input_format)
    if input_format in inputs.REMARKS:
        say(f"qm1b: {source or command.source}: {inputs.REMARKS[input_format]}", to_stderr=True)
    settings: Json = {f.name: getattr(command, f.name) for f in fields(RunSettings)}
    settings["level"] = Settings.preset(command.preset or DEFAULT_PRESET).changed(**given)
    settings["conformers"] = conformers(
        command, input_format, dataset.conformers if command.preset else FEW_CONFORMERS
    )
    settings["forces"] = dataset.forces if command.forces is None else command.forces
    if settings["forces"]:
        forces_need(settings["level"], command.preset if command.forces is None else None)
    settings["properties"] = properties(command.properties, settings["level"])
    settings["max_aos"] = (
        command.max_aos
        or dataset.max_aos
        or size_limit(settings["level"], command.out, command.shard is not None)
    )
    settings["input_format"] = input_format
    settings["stability"] = stability(command.stability, command.history, command.fixed_cycles)
    return on_its_machine(spins(RunSettings(**settings)))


def _cart(command: Generate) -> Cart | None:
    """The kind of functions; None for the preset's choice, which is that of its own basis."""
    if command.cart is not None:
        return command.cart
    return None if command.basis is None else False


def _prune(command: Generate) -> bool | None:
    """Whether grids are pruned; None for the preset's choice."""
    if command.unpruned is not None:
        return not command.unpruned
    return True if isinstance(command.grid_level, int) else None


def _free_folder(source: Path) -> Path:
    """data/NAME, or data/NAME-2 and so on: without --out, a run never resumes an older one."""
    name = source.name
    for suffix in reversed(source.suffixes[-2:]):
        name = name.removesuffix(suffix) if suffix.lower() in SUFFIXES else name
    name = "stdin" if source == PIPE else name or "run"
    folder = Path("data") / name
    for number in range(2, 10_000):
        if not folder.exists():
            break
        folder = Path("data") / f"{name}-{number}"
    return folder

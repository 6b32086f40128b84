"""`qm1b generate`: molecules in, a folder of shards out."""

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

import tyro

from pyscf_ipu.settings import Settings
from pyscf_ipu.terminal import EXIT_INTERRUPTED, say
from qm1b import inputs
from qm1b.commands.ending import (
    how_to_go_on,
    outcome,
    print_first_rows,
    this_command,
)
from qm1b.conformers.embedding import RELAX
from qm1b.errors import UserError
from qm1b.inputs import GEOMETRIES
from qm1b.inputs.container import MEMBER_SUFFIXES
from qm1b.rows.schema import Json
from qm1b.run.stdin import PIPE, spooled
from qm1b.settings import PRESETS, STABILITY, RunSettings
from qm1b.work_units import WHOLE, Share

SAMPLE = Path(__file__).parent.parent / "data" / "gdb11_sample.smi"
SUFFIXES = {*MEMBER_SUFFIXES, ".gz", ".bz2", ".xz", ".tar", ".tgz"}
DEFAULT_CONFORMERS = 4
EXIT_NOTHING = 1
MAX_RATTLE_ANGSTROM = 1.0
"""Beyond that, bonds are broken rather than bent."""

TOO_LARGE = 2**63
"""The least integer that HDF5 cannot hold."""


@dataclass(frozen=True)
class Generate(RunSettings):
    """Compute a dataset from a file of molecules."""

    source: tyro.conf.Positional[Path] = SAMPLE
    """SMILES, one per line (GDB's columns may follow); CSV or TSV with a column of SMILES; SDF, XYZ
    or extended XYZ with geometries; compressed or in a .tar.gz too; or - for standard input."""
    out: Path | None = None
    """Folder for the dataset. If it holds an unfinished run of the same input and settings, that
    run is resumed. If not given, a new folder: data/NAME of the input, numbered if it exists."""
    level: tyro.conf.Suppress[tyro.conf.Fixed[Settings]] = PRESETS["qm1b"]
    unit_rows: tyro.conf.Suppress[tyro.conf.Fixed[int]] = RunSettings.unit_rows
    conformers: int | None = None  # type: ignore[assignment]
    """Conformers per molecule, 4 if not given; displaced copies per geometry, 1 if not given."""
    preset: str = "qm1b"
    """Level of theory. qm1b: B3LYP with VWN5 (b3lyp5), STO-3G, grid level 0, float32."""
    basis: str | None = None
    """Basis set instead of the preset's."""
    xc: str | None = None
    """hf, lda, pbe, blyp, b3lyp, b3lyp5, pbe0, wb97x and others instead of the preset's functional;
    for dispersion with -d3bj, -d3 or -d4 behind it: b3lyp-d3bj."""
    grid_level: int | tuple[int, int] | None = None
    """Integration grid, 0 to 9, instead of the preset's; or two numbers: radial points, and points
    of each sphere."""
    unpruned: bool = False
    """Keep all points of every sphere, whatever the preset says."""
    precision: str | None = None
    """float32, mixed (float32, with the final energy in float64) or float64 instead of the
    preset's."""
    workers: int = 0
    """Compute processes; 0 for one per core."""
    shard: str | None = None
    """i/n: compute only the work units i, i + n, i + 2 n, ..., into the folder OUT/part-i-of-n.
    Give each of the n jobs its own i, from 0 to n - 1, then join the folders with qm1b merge."""
    cluster: str | None = None
    """Compute on a Ray cluster: its address, or auto for the one that this machine belongs to."""
    allow_other_versions: bool = False
    """Resume a run although other versions of the software began it; rows may then be mixed."""
    retry_dropped: str | None = None
    """Try lines again that the run in --out has dropped for these reasons: embed_crash,
    embed_timeout or too_large, with commas between. The other rows stay as they are."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from rich.console import Console

        from qm1b.process.display import Bar, Plain
        from qm1b.run.generate import Run, generate

        share = Share.parse(self.shard) if self.shard else WHOLE
        out = self._folder(share)
        source = spooled(out) if self.source == PIPE else self.source
        settings, versions = run_settings(self, source), self.allow_other_versions
        run = Run(
            source,
            out,
            settings,
            self.workers,
            share=share,
            other_versions=versions,
            cluster=self.cluster,
            retry_dropped=self._reasons(),
        )
        console = Console()
        summary = generate(run, Bar(console) if console.is_terminal else Plain())
        say(outcome(summary))
        print_first_rows(out)
        say(f"\nThe data are in {out} (dropped.csv there says what was left out and why).")
        if summary.interrupted:
            say(how_to_go_on(summary, out, self.out is not None))
            return EXIT_INTERRUPTED
        if share.count == 1 and not summary.tally.rows:
            say(f"qm1b: {self.source} gave no rows; dropped.csv says why", to_stderr=True)
            return EXIT_NOTHING
        if share.count == 1:
            say(f"As one table: {this_command()} export {out} {out}.parquet")
        if self.source == SAMPLE:
            say(
                "These are bundled molecules. For your own, give a file of SMILES: "
                f"{this_command()} generate FILE"
            )
        return 0

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
        "max-aos": (command.max_aos, 1),
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
    if command.preset not in PRESETS:
        raise UserError(f"unknown preset {command.preset!r}: use {' or '.join(PRESETS)}")
    level = {
        "basis": command.basis,
        "xc": command.xc and command.xc.lower(),
        "grid_level": command.grid_level,
        "precision": command.precision,
        "prune": False if command.unpruned else None,
    }
    given = {name: value for name, value in level.items() if value is not None}
    input_format = inputs.resolve(source or command.source, command.input_format)
    settings: Json = {f.name: getattr(command, f.name) for f in fields(RunSettings)}
    settings["level"] = replace(PRESETS[command.preset], **given)  # type: ignore[arg-type]
    settings["conformers"] = _conformers(command, input_format)
    settings["input_format"] = input_format
    settings["stability"] = _stability(command.stability)
    return RunSettings(**settings)


def _stability(given: str) -> str:
    """--stability in the one spelling that settings have for it."""
    if given in STABILITY:
        return given
    with suppress(ValueError):
        share = float(given)
        if 0 <= share <= 1:
            return {0.0: "none", 1.0: "all"}.get(share, repr(share))
    raise UserError(
        f"--stability is {given}: use none, all, suspect, or give a share of the rows from 0 to 1"
    )


def _conformers(command: Generate, input_format: str) -> int:
    """Conformers for each record; refuses flags that do not go together."""
    sigma, count = command.rattle_angstrom, command.conformers
    if command.relax not in RELAX:
        raise UserError(f"--relax is {command.relax!r}: use one of {', '.join(RELAX)}")
    if not sigma <= MAX_RATTLE_ANGSTROM:
        raise UserError(f"--rattle-angstrom is {sigma}: at most {MAX_RATTLE_ANGSTROM} is allowed")
    if command.smiles_column is not None and input_format != "table":
        raise UserError(
            f"--smiles-column is for tables, but the input looks like {input_format}; "
            "leave it out, or add --input-format table if the input is a table"
        )
    if command.id_column is not None and input_format == "smiles":
        raise UserError(
            "--id-column is for tables, SDF and extended XYZ: on a line of SMILES, the id is what "
            "follows; leave it out, or add --input-format table if the input is a table"
        )
    if input_format not in GEOMETRIES:
        return DEFAULT_CONFORMERS if count is None else count
    if command.relax != "none":
        raise UserError(
            f"--relax is for SMILES: geometries of {input_format} are taken as given; leave it out"
        )
    if (count or 1) > 1 and not sigma:
        raise UserError(
            f"--conformers {count} would repeat each given geometry unchanged: leave it out, or "
            "displace the copies with --rattle-angstrom"
        )
    return count or 1


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

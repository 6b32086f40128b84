"""`qm1b merge`, `export`, `import` and `split`: from one form of a dataset to another."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import tyro

from pyscf_ipu.base.command_line.options import SeveralPaths
from pyscf_ipu.base.terminal import counted, say
from qm1b.commands.ending import warn_if_incomplete
from qm1b.errors import UserError

FormatName = Literal["parquet", "extxyz", "aselmdb", "schnetpack", "ace", "spice", "hub"]
"""Names of `qm1b.convert.kinds.KINDS`, which is not imported for the help."""
SplitFormat = Literal[FormatName, "extxyz.gz"]
"""Names of `qm1b.convert.split.FILES`."""


@dataclass(frozen=True)
class Merge:
    """Join the folders of qm1b generate --shard into one, as if a single run had filled it."""

    stdout_is_log: ClassVar = True

    folders: SeveralPaths
    """Folders of the parts."""
    out: Path
    """Folder for the whole; it may contain the parts' folders."""
    allow_other_versions: bool = False
    """Join parts although different versions of the software computed them."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from qm1b.convert.merge import merge
        from qm1b.folder.manifest.manifest import table

        if not self.folders:
            raise UserError("no folders to join: give qm1b merge the folders of all parts")
        done = merge(self.folders, self.out, self.allow_other_versions)
        say(
            f"{self.out}: {counted(done.tally.rows, 'conformer')} of {done.tally.kept} in "
            f"{counted(done.tally.units, 'shard')} ({done.copied} copied now), from "
            f"{counted(len(self.folders), 'folder')}"
        )
        if done.mixed:
            say(f"the rows are of different software:\n{table(done.mixed)}")
        return 0


@dataclass(frozen=True)
class Export:
    """Write a dataset in another format: one file for a reader, or a folder for a dataset hub."""

    stdout_is_log: ClassVar = True

    folder: tyro.conf.Positional[Path]
    """Folder made by qm1b generate."""
    out: tyro.conf.Positional[Path]
    """File to write, or the folder of --format hub. A file's ending decides the format: .parquet
    (QM1B's columns), .extxyz, .extxyz.gz, .aselmdb (fairchem, MACE) or .db (SchNetPack)."""
    all: bool = False
    """Also write rows that did not converge or are not finite, and all that qm1b import needs; only
    in Parquet and extended XYZ."""
    format: FormatName | None = None
    """Format, where the ending does not decide: ace (TorchMD-Net) and spice are HDF5 files, hub is
    a folder of Parquet files with a card."""
    parts: int | None = None
    """Write a folder as QM1B is published: its ten columns, in this many Parquet files for
    training, between which the conformers of a molecule are spread, and one for validation."""
    valid_rows: float = 0.0
    """With --parts: about this many rows for validation, in whole molecules; for example 20e6."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from qm1b.convert.export import export

        if self.parts is not None:
            return self._as_published(self.parts)
        if self.valid_rows:
            raise UserError("--valid-rows is for --parts; qm1b split makes a validation set else")

        done = export(self.folder, self.out, self.all, kind=self.format)
        why = ""
        if done.left_out:
            why = f"; left out {done.left_out} not converged or not finite (--all keeps them)"
        if done.suspect:
            why += f"; {done.suspect} of the rows are suspect (see qm1b stats)"
        say(f"{self.out}: {counted(done.rows, 'row')}{why}")
        if done.beside:
            where = "in" if self.out.is_dir() else "beside"
            say(f"{where} it: {', '.join(path.name for path in done.beside)}")
        warn_if_incomplete(self.folder)
        return 0

    def _as_published(self, parts: int) -> int:
        """A folder in QM1B's layout."""
        from qm1b.convert.parts import VALIDATION, export_parts

        if self.all or self.format is not None:
            raise UserError("--parts writes QM1B's own layout: leave --all and --format out")
        if not (0 <= self.valid_rows < 2**63 and self.valid_rows == int(self.valid_rows)):
            raise UserError(f"--valid-rows is {self.valid_rows}: give a whole number of rows")
        done = export_parts(self.folder, self.out, parts, valid_rows=int(self.valid_rows))
        why = f"; left out {done.left_out} not converged or not finite" if done.left_out else ""
        say(
            f"{self.out}: {counted(done.train_rows, 'row')} in {counted(parts, 'part')}, "
            f"{counted(done.valid_rows, 'row')} in {VALIDATION}{why}"
        )
        if done.warning:
            say(f"warning: {done.warning}", to_stderr=True)
        warn_if_incomplete(self.folder)
        return 0


@dataclass(frozen=True)
class Import:
    """Restore a dataset folder from a file of qm1b export --all."""

    stdout_is_log: ClassVar = True

    file: tyro.conf.Positional[Path]
    """A .parquet, .extxyz or .extxyz.gz file; the files exported with it must be beside it."""
    out: Path
    """New folder."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from qm1b.convert.importing import import_file

        done = import_file(self.file, self.out)
        counts = (done.rows, "row"), (done.drops, "dropped line"), (done.shards, "shard")
        say(f"{self.out}: {', '.join(counted(*each) for each in counts)}")
        if done.warning:
            say(f"warning: {done.warning}", to_stderr=True)
        return 0


@dataclass(frozen=True)
class Split:
    """Split a dataset by molecule: all conformers of a molecule go into the same set."""

    stdout_is_log: ClassVar = True

    folder: tyro.conf.Positional[Path]
    """Folder made by qm1b generate."""
    out: Path | None = None
    """Folder for train, valid and test; if not given, split in the dataset's folder."""
    train: float = 0.8
    """Fraction of the molecules for training."""
    valid: float = 0.1
    """Fraction for validation."""
    test: float = 0.1
    """Fraction for testing."""
    seed: int = 0
    """Seed of the split; the same seed gives the same split."""
    format: SplitFormat = "parquet"
    """Format of the files; hub makes one folder, whose card names the three sets."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from qm1b.convert.split import Fractions, split

        out = self.out or self.folder / "split"
        fractions = Fractions(self.train, self.valid, self.test)
        parts = split(self.folder, out, fractions, seed=self.seed, form=self.format)
        for part in parts.values():
            rows = f"{counted(part.rows, 'row')} of {counted(part.molecules, 'molecule')}"
            say(f"{out / part.file}: {rows}")
        warn_if_incomplete(self.folder)
        return 0

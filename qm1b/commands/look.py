"""`qm1b stats`, `head` and `info`: what a dataset holds."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pyscf_ipu.base.command_line.options import JsonTarget
from pyscf_ipu.base.command_line.targets import TO_STDOUT, put_json
from pyscf_ipu.base.terminal import say
from qm1b.commands.ending import warn_if_incomplete
from qm1b.errors import UserError


@dataclass(frozen=True)
class StatsCommand:
    """Print how the quantities of a dataset are distributed, with pictures on request."""

    path: tyro.conf.Positional[Path]
    """Folder made by qm1b generate, or a .parquet, .extxyz or .extxyz.gz file."""
    plots: Path | None = None
    """Folder for histograms as PNG files."""
    json: JsonTarget = None
    """Print JSON instead of a table, or write it to FILE.json."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from qm1b.report.stats import as_text, collect

        stats = collect(self.path)
        if self.json is not None:
            put_json(json.dumps(stats.to_dict(), indent=2), self.json)
        if self.json != TO_STDOUT:
            say(as_text(stats))
        if self.plots is not None:
            from qm1b.report import plots

            # Printed after the JSON they would make it invalid.
            for path in plots.distributions(stats.distributions, self.plots):
                say(path, to_stderr=self.json == TO_STDOUT)
        return 0


@dataclass(frozen=True)
class Head:
    """Print the first rows of a dataset folder, Parquet file or extended XYZ file."""

    path: tyro.conf.Positional[Path]
    """Folder made by qm1b generate, or a .parquet, .extxyz or .extxyz.gz file."""
    rows: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 10
    """How many rows."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from qm1b.report.info import first_rows

        if self.rows < 1:
            raise UserError(f"--rows is {self.rows}: it must be at least 1")
        say(first_rows(self.path, self.rows))
        return 0


@dataclass(frozen=True)
class Info:
    """Say what a dataset folder holds."""

    folder: tyro.conf.Positional[Path]
    """Folder made by qm1b generate."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from qm1b.report.info import describe

        if self.folder.is_file():
            raise UserError(
                f"{self.folder} is a file: info describes a folder of qm1b generate; qm1b stats "
                "and qm1b head read files"
            )
        say(describe(self.folder))
        warn_if_incomplete(self.folder)
        return 0

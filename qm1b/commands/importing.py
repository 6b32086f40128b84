"""`qm1b import`: an exported file back into a dataset folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Import:
    """Make the dataset folder again from a file of qm1b export --all."""

    file: tyro.conf.Positional[Path]
    """A .parquet, .extxyz or .extxyz.gz file, beside the files written with it."""
    out: Path
    """New folder."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from ..importing import import_file

        done = import_file(self.file, self.out)
        print(f"{self.out}: {done.rows} rows, {done.drops} dropped lines, {done.shards} shards")
        return 0

"""`qm1b head`: the first rows of a dataset as a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ..errors import UserError


@dataclass(frozen=True)
class Head:
    """Print the first rows of a dataset folder, Parquet file or extended XYZ file."""

    path: tyro.conf.Positional[Path]
    """Folder of a qm1b generate, or a .parquet, .extxyz or .extxyz.gz file."""
    rows: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 10
    """How many rows."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from ..head import first_rows

        if self.rows < 1:
            raise UserError(f"--rows is {self.rows}: it must be at least 1.")
        print(first_rows(self.path, self.rows))
        return 0

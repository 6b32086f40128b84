"""`qm1b split`: training, validation and test sets by molecule."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from .warning import warn_if_incomplete


@dataclass(frozen=True)
class Split:
    """Divide a dataset by molecule: all conformers of a molecule on one side."""

    folder: tyro.conf.Positional[Path]
    """Folder of a qm1b generate."""
    out: Path | None = None
    """Folder for train, valid and test; if not given, split in the dataset's folder."""
    train: float = 0.8
    """Part of the molecules for training."""
    valid: float = 0.1
    """Part for validation."""
    test: float = 0.1
    """Part for the test."""
    seed: int = 0
    """Another seed gives another division; the same seed the same one."""
    format: Literal["parquet", "extxyz", "extxyz.gz"] = "parquet"
    """Kind of the files."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from ..split import Fractions, split

        out = self.out or self.folder / "split"
        fractions = Fractions(self.train, self.valid, self.test)
        parts = split(self.folder, out, fractions, self.seed, f".{self.format}")
        for part in parts.values():
            print(f"{out / part.file}: {part.rows} rows of {part.molecules} molecules")
        warn_if_incomplete(self.folder)
        return 0

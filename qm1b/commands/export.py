"""`qm1b export`: a dataset folder as one Parquet file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Export:
    """Write a dataset as one Parquet file with QM1B's columns (eV; pos in Bohr)."""

    folder: tyro.conf.Positional[Path]
    """Folder of a qm1b generate."""
    out: tyro.conf.Positional[Path]
    """Parquet file to write."""
    all: bool = False
    """Also rows that are not converged or not finite."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from ..export import export

        done = export(self.folder, self.out, self.all)
        why = (
            f", {done.left_out} not converged left out (--all keeps them)" if done.left_out else ""
        )
        print(f"{self.out}: {done.rows} rows{why}")
        return 0

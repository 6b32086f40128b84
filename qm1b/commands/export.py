"""`qm1b export`: a dataset folder as one file of another format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from .warning import warn_if_incomplete


@dataclass(frozen=True)
class Export:
    """Write a dataset as one file: .parquet with QM1B's columns, .extxyz or .extxyz.gz."""

    folder: tyro.conf.Positional[Path]
    """Folder of a qm1b generate."""
    out: tyro.conf.Positional[Path]
    """File to write; its ending says which kind."""
    all: bool = False
    """Also rows that are not converged or not finite, and all that qm1b import needs."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from ..export import export

        done = export(self.folder, self.out, self.all)
        why = ""
        if done.left_out:
            why = f", {done.left_out} not converged or not finite left out (--all keeps them)"
        print(f"{self.out}: {done.rows} rows{why}")
        if done.beside:
            print(f"beside it: {', '.join(path.name for path in done.beside)}")
        warn_if_incomplete(self.folder)
        return 0

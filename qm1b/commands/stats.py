"""`qm1b stats`: counts and distributions of a dataset."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class StatsCommand:
    """Print how the quantities of a dataset are distributed, with pictures on request."""

    path: tyro.conf.Positional[Path]
    """Folder of a qm1b generate, or a .parquet, .extxyz or .extxyz.gz file."""
    plots: Path | None = None
    """Folder for histograms as PNG files."""
    json: bool = False
    """Print JSON instead of a table."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from ..stats import as_text, collect

        stats = collect(self.path)
        print(json.dumps(stats.to_dict(), indent=2) if self.json else as_text(stats))
        if self.plots is not None:
            from .. import plots

            # Behind the JSON they would make it none.
            stream = sys.stderr if self.json else sys.stdout
            for path in plots.distributions(stats.distributions, self.plots):
                print(path, file=stream)
        return 0

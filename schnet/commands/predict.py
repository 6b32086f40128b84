"""`schnet predict`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Predict:
    """Predict for SMILES, geometries or a dataset; CSV on the screen or in a file.

    A row with an element that no training row had keeps its line, without a prediction.
    """

    run: tyro.conf.Positional[Path]
    """Folder of a run."""
    data: tyro.conf.Positional[Path]
    """SMILES, one a line (.smi), .xyz, .extxyz(.gz), .parquet, or a folder of qm1b generate."""
    out: Path | None = None
    """CSV file; if not given, the screen."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from ..folder import RunFolder
        from ..results import lines, write_predictions
        from ..sources import open_source

        predictor = RunFolder(self.run).predictor()
        source = open_source(self.data, None)
        if self.out is None:
            sys.stdout.writelines(lines(predictor, source.parts(), truth=False))
        else:
            n = write_predictions(self.out, predictor, source.parts(), truth=False)
            print(f"{self.out}: {n} predictions of {predictor.target.name}")
        for reason, count in source.dropped.items():
            print(f"schnet: left out {count} rows: {reason}", file=sys.stderr)
        return 0

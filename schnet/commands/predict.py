"""`schnet predict`."""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Predict:
    """Predict a property of SMILES, geometries or a dataset, and print or write it as CSV.

    A row that cannot be predicted, such as one with an element that no training row had, keeps its
    line; the column reason says why.
    """

    run: tyro.conf.Positional[Path]
    """Folder of a run."""
    data: tyro.conf.Positional[Path]
    """SMILES, one per line (.smi) or in a column (.csv, .tsv), .xyz, .extxyz(.gz), .parquet, or a
    folder of qm1b generate."""
    out: Path | None = None
    """CSV file to write; if not given, the CSV is printed."""

    @property
    def stdout_is_log(self) -> bool:
        """Whether the predictions go to a file."""
        return self.out is not None

    def __call__(self) -> int:
        """Run the command; returns the exit code."""
        from pyscf_ipu.base.command_line.targets import check_folders
        from pyscf_ipu.base.terminal import counted
        from schnet.runs.results import PredictedRows, lines, write_predictions
        from schnet.runs.run_folder import RunFolder
        from schnet.sources import open_source

        check_folders([self.out])
        predictor = RunFolder(self.run).predictor()
        source = open_source(self.data, None)
        for remark in source.remarks:
            print(f"schnet: {remark}", file=sys.stderr)
        tally = PredictedRows()
        if self.out is None:
            sys.stdout.writelines(lines(predictor, source.parts(), truth=False, tally=tally))
        else:
            write_predictions(self.out, predictor, source.parts(), truth=False, tally=tally)
            predicted = tally.rows - tally.without
            print(f"{self.out}: {counted(predicted, 'prediction')} of {predictor.target.name}")
        if tally.sentence():
            print(f"schnet: {tally.sentence()}", file=sys.stderr)
        return 0

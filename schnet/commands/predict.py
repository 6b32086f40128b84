"""`schnet predict`."""

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

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
    """What qm1b generate reads: SMILES, one per line or in a column, SDF or XYZ, packed or not, -
    for standard input; also .parquet, or a folder of qm1b generate."""
    out: Path | None = None
    """CSV file to write; if not given, the CSV is printed."""

    @property
    def stdout_is_log(self) -> bool:
        """Whether the predictions go to a file."""
        return self.out is not None

    def __call__(self) -> int:
        """Run the command; returns the exit code."""
        from pyscf_ipu.base.command_line.targets import check_folders
        from qm1b.folder.stdin import PIPE, spooled

        check_folders([self.out])
        with TemporaryDirectory() as folder:
            return self._predict(spooled(Path(folder)) if self.data == PIPE else self.data)

    def _predict(self, data: Path) -> int:
        from pyscf_ipu.base.terminal import counted
        from schnet.runs import results
        from schnet.runs.run_folder import RunFolder
        from schnet.sources import open_source

        predictor = RunFolder(self.run).predictor()
        source = open_source(data, None)
        for remark in source.remarks:
            print(f"schnet: {remark}", file=sys.stderr)
        tally = Counter[str]()
        rows = results.lines(predictor, source.parts(), truth=False, tally=tally)
        if self.out is None:
            sys.stdout.writelines(rows)
        else:
            results.write_rows(self.out, rows)
            predicted = tally[results.ROWS] - tally[results.WITHOUT]
            print(f"{self.out}: {counted(predicted, 'prediction')} of {predictor.target.name}")
        if sentence := results.tally_sentence(tally):
            print(f"schnet: {sentence}", file=sys.stderr)
        return 0

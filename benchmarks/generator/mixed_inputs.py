"""Different molecules, one conformer each, against many conformers of few molecules.

The few are every n-th of the many in order of size, so both runs have the same sizes to compute.
Rates are rows per second of the clock between the first tenth of the rows and the last row.  The
runs take turns, after one of each that gets all programs ready.  Both have the padding of long
runs.  The target is 0.8.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from rdkit import Chem

from benchmarks import harness, molecules
from qm1b.commands.generate import SAMPLE
from qm1b.process.display import Plain
from qm1b.run.generate import Run, generate
from qm1b.run.progress.progress import Stats
from qm1b.settings import FINE, PRESETS, RunSettings

BUNDLED = (SAMPLE, molecules.GDB, molecules.QM9)
FEW = 12
TARGET = 0.8
WARM = 0.1  # part of the rows that are left out at the beginning: workers start, programs load


class Watch(Plain):
    """Records how many rows were done at what time."""

    def __init__(self) -> None:
        super().__init__(every=60.0)
        self.seen: list[tuple[float, int]] = []

    def update(self, stats: Stats) -> None:
        super().update(stats)
        self.seen.append((stats.seconds, stats.rows))


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--smiles", type=Path, nargs="+", default=BUNDLED)
    parser.add_argument("--molecules", type=int, default=10_000, help="at most")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=0, help="0 for one per core")
    args = parser.parse_args()
    many = by_size(args.smiles, args.molecules)
    few = many[len(many) // FEW // 2 :: max(1, len(many) // FEW)][:FEW]
    each = len(many) // len(few)
    sides = {
        "many": lambda: rate(many, 1, args.workers),
        "few": lambda: rate(few, each, args.workers),
    }
    for side in sides.values():
        side()  # gets the programs ready
    rates = harness.in_turn(sides, args.rounds)
    ratio = float(np.median(np.divide(rates["many"], rates["few"])))
    print(f"ratio {ratio:.3f} (target {TARGET})")
    missed = [] if ratio >= TARGET else [f"ratio {ratio:.3f}, not {TARGET}"]
    return harness.finish(args.out, rates | {"ratio": ratio}, missed)


def by_size(paths: list[Path], most: int) -> list[str]:
    """Different SMILES of some files, the smallest molecules first."""
    lines = [text for path in paths for text in molecules.smiles_of(path)]
    found = {
        Chem.MolToSmiles(Chem.AddHs(Chem.MolFromSmiles(text))): molecules.n_ao(text)
        for text in lines
    }
    return sorted(list(found)[:most], key=lambda smiles: (found[smiles], smiles))


def rate(smiles: list[str], conformers: int, workers: int) -> float:
    """Rows per second of a run."""
    settings = RunSettings(PRESETS["qm1b"], conformers, seed=0, max_aos=128, padding=FINE)
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "input.smi"
        order = np.random.default_rng(0).permutation(len(smiles))  # as in a file, not by size
        source.write_text("".join(f"{smiles[i]}\n" for i in order))
        stats = generate(Run(source, Path(folder) / "out", settings, workers), watch).stats
    seconds, rows = np.array(watch.seen).T
    ends = [np.argmax(rows >= WARM * rows[-1]), np.argmax(rows == rows[-1])]
    found = float(np.diff(rows[ends])[0] / np.diff(seconds[ends])[0])
    print(
        f"{len(smiles)} molecules x {conformers}: {found:.2f} rows/s, idle for lack of conformers "
        f"{stats.starved_seconds:.1f} s"
    )
    return found


if __name__ == "__main__":
    sys.exit(main())

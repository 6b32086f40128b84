"""Different molecules, one conformer each, against many conformers of few molecules.

    python benchmarks/mixed_inputs.py
    python benchmarks/mixed_inputs.py --smiles mine.smi --molecules 2000

The few are every n-th of the many in order of size, so both runs have the same sizes to compute.
Rates are rows per second of the clock between the first tenth of the rows and the last row; both
runs are made in turn, after one that gets all programs ready.  The target is 0.8.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from qm1b.commands.generate import SAMPLE
from qm1b.generate import Run, generate
from qm1b.presets import PRESETS, RunSettings
from qm1b.progress import Plain, Stats

DATA = Path(__file__).parent / "data"
BUNDLED = (SAMPLE, DATA / "gdb11_mixed_200.smi", DATA / "qm9_9heavy_100.smi")
FEW = 12
TARGET = 0.8
WARM = 0.1  # part of the rows that are left out at the beginning: workers start, programs load


class Watch(Plain):
    """When how many rows were there."""

    def __init__(self) -> None:
        super().__init__(every=60.0)
        self.seen: list[tuple[float, int]] = []

    def update(self, stats: Stats) -> None:
        super().update(stats)
        self.seen.append((stats.seconds, stats.rows))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smiles", type=Path, nargs="+", default=BUNDLED)
    parser.add_argument("--molecules", type=int, default=10_000, help="at most")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=0, help="0 for one a core")
    default = Path(__file__).parent / "results" / "mixed_inputs.json"
    parser.add_argument("--out", type=Path, default=default)
    args = parser.parse_args()
    many = molecules(args.smiles, args.molecules)
    few = many[len(many) // FEW // 2 :: max(1, len(many) // FEW)][:FEW]
    each = len(many) // len(few)
    rates: dict[str, list[float]] = {"many": [], "few": []}
    for number in range(args.rounds + 1):
        for name, smiles, conformers in (("many", many, 1), ("few", few, each)):
            found, starved = rate(smiles, conformers, args.workers)
            kind = "getting programs ready" if number == 0 else f"round {number}"
            print(f"{kind}: {name:4} {len(smiles)} molecules x {conformers}: {found:.2f} rows/s, "
                  f"idle for lack of conformers {starved:.1f} s", flush=True)  # fmt: skip
            if number:
                rates[name].append(found)
    ratio = float(np.median(np.divide(rates["many"], rates["few"])))
    print(f"ratio {ratio:.3f} (target {TARGET})")
    args.out.write_text(json.dumps(rates | {"ratio": ratio}, indent=1))
    return 0 if ratio >= TARGET else 1


def molecules(paths: list[Path], most: int) -> list[str]:
    """Different SMILES, by size."""
    from rdkit import Chem

    found: dict[str, int] = {}
    for path in paths:
        for line in path.read_text().splitlines():
            graph = Chem.AddHs(Chem.MolFromSmiles(line.split()[0]))
            numbers = [atom.GetAtomicNum() for atom in graph.GetAtoms()]
            found[Chem.MolToSmiles(graph)] = sum(1 if z == 1 else 5 for z in numbers)
    chosen = list(found)[:most]
    return sorted(chosen, key=lambda smiles: (found[smiles], smiles))


def rate(smiles: list[str], conformers: int, workers: int) -> tuple[float, float]:
    """Rows per second of a run, and how long its compute processes waited for conformers."""
    settings = RunSettings(PRESETS["qm1b"], conformers, seed=0, max_aos=128)
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "input.smi"
        order = np.random.default_rng(0).permutation(len(smiles))  # as in a file, not by size
        source.write_text("".join(f"{smiles[i]}\n" for i in order))
        stats = generate(Run(source, Path(folder) / "out", settings, workers), watch).stats
    rows = [n for _, n in watch.seen]
    start = next(i for i, n in enumerate(rows) if n >= WARM * rows[-1])
    end = next(i for i, n in enumerate(rows) if n == rows[-1])
    (since, first), (until, last) = watch.seen[start], watch.seen[end]
    return (last - first) / (until - since), stats.starved_seconds


if __name__ == "__main__":
    sys.exit(main())

"""SchNet: speed and error beside PyTorch-Geometric's, error over training rows, transfer.

speed     molecules/s of training and prediction; medians of rounds in turn, data loading and
          packing included
qm9       test MAE of QM9's gap, after the same number of epochs and after the same time
scaling   test MAE over the number of training rows
transfer  QM9's gap from weights that were trained on the data of qm1b first
fixture   the file that the parity test reads

Needs the extras `train` and `pyg`.  QM9 is extended XYZ with a key `gap_au`; the data are a folder
of `qm1b generate` or a Parquet file.  Both networks have the same size, molecules, residuals to
learn, mean number of molecules in a batch, update rule and learning rates, and use all cores.
"""

import argparse
import functools
import sys
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.training.errors import qm9, transfer
from benchmarks.training.scaling import scaling
from benchmarks.training.speed import speed
from schnet.samples.samples import Samples
from schnet.sources import open_source

SIZES = (300, 1_000, 3_000, 10_000, 30_000, 100_000)
UPDATES = 6_000
"""Updates of each point of the scaling curve: small sets are passed through more often."""


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("parts", nargs="+", choices=list(PARTS))
    parser.add_argument("--qm9", type=Path, help="extended XYZ of QM9 molecules with gap_au")
    parser.add_argument("--data", type=Path, help="a dataset of qm1b")
    parser.add_argument("--split", default="2400,300,300", help="of the QM9 file, in molecules")
    parser.add_argument("--presets", nargs="+", default=["small", "schnet-9m"], help="for speed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=30, help="of qm9 and transfer")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="for scaling")
    parser.add_argument("--updates", type=int, default=UPDATES, help="of scaling and pretraining")
    parser.add_argument("--least-epochs", type=int, default=20, help="of scaling")
    parser.add_argument("--held-out", default="1000,2000", help="validation and test molecules")
    figure = harness.ROOT / "docs" / "figures" / "schnet_scaling.png"
    parser.add_argument("--figure", type=Path, default=figure, help="of scaling")
    args = parser.parse_args()
    parts = {name: functools.partial(part, args) for name, part in PARTS.items()}
    return harness.run_parts(parts, args.parts, args.out)


def fixture(args: argparse.Namespace) -> tuple[Any, list[str]]:
    """Write what the parity test reads."""
    from benchmarks.training.pyg import write_fixture

    samples = Samples.concatenate(list(open_source(args.qm9, "gap").parts()))
    path = harness.ROOT / "tests" / "schnet" / "data" / "pyg_schnet.npz"
    write_fixture(path, samples)
    print(f"{path.name}: {path.stat().st_size} bytes, {len(samples)} molecules")
    return {"molecules": len(samples)}, []


PARTS = {
    "fixture": fixture,
    "speed": speed,
    "qm9": qm9,
    "scaling": scaling,
    "transfer": transfer,
}


if __name__ == "__main__":
    sys.exit(main())

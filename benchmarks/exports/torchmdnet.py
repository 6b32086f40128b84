"""The layouts Ace and SPICE, read with `Ace` and `SPICE` of `torchmdnet.datasets`.

In an environment of its own, with TorchMD-Net (or a checkout of it on PYTHONPATH, `torch_geometric`
and `h5py`), from the root of the checkout:

    python -m benchmarks.exports.torchmdnet data/mine mine.h5 --layout ace
"""

from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

from benchmarks.exports.compare import Values, options, report

SPICE_VERSION = "1.1.4"
"""Of which a file is taken for granted in the folder where TorchMD-Net would download it to."""


def by_ace(path: Path) -> Iterator[Values]:
    """What its training code gets from `Ace`."""
    from torchmdnet.datasets import Ace  # pyright: ignore[reportMissingImports]

    with TemporaryDirectory() as root:
        for data in Ace(root=root, paths=str(path)):
            yield {
                "numbers": data.z,
                "positions": data.pos,
                "formation": data.y,
                "forces": data.neg_dy,
                "dipole": data.dp,
                "charges": data.pq,
                "total_charge": data.q,
            }


def by_spice(path: Path) -> Iterator[Values]:
    """What its training code gets from `SPICE`."""
    from torchmdnet.datasets import SPICE  # pyright: ignore[reportMissingImports]

    with TemporaryDirectory() as root:
        place = Path(root) / "raw" / "spice" / SPICE_VERSION
        place.mkdir(parents=True)
        copyfile(path, place / f"SPICE-{SPICE_VERSION}.hdf5")
        for data in SPICE(root=root, version=SPICE_VERSION):
            yield {
                "numbers": data.z,
                "positions": data.pos,
                "formation": data.y,
                "forces": data.neg_dy,
            }


def main() -> int:
    """Run it; returns the exit status."""
    made = options(__doc__, __file__)
    readers = {"ace": by_ace, "spice": by_spice}
    made.add_argument("--layout", choices=list(readers), default="ace")
    given = made.parse_args()
    return report(given, given.layout, readers[given.layout](given.exported))


if __name__ == "__main__":
    raise SystemExit(main())

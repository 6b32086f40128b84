"""A folder for a dataset hub, read with `datasets.load_dataset` and with mlcroissant.

In an environment of its own, with `pip install datasets mlcroissant h5py`, from the root of the
checkout:

    python -m benchmarks.exports.hub data/mine hub
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.exports.compare import ANGSTROM, Values, compare, options

NAMES = ("z", "pos", "energy", "dipole", "mulliken_charges", "charge", "forces")
"""The columns that are compared; the last one may be missing."""


def by_datasets(folder: Path, name: str | None) -> Iterable[Values]:
    """The rows of a configuration; None is the default."""
    from datasets import load_dataset  # pyright: ignore[reportMissingImports]

    return map(_values, load_dataset(str(folder), name, split="train"))


def by_croissant(folder: Path) -> Iterator[Values]:
    """The rows of the first part."""
    import mlcroissant  # pyright: ignore[reportMissingImports]

    dataset = mlcroissant.Dataset(str(folder / "croissant.json"))
    for record in dataset.records("part-00000"):
        yield _values({key.rpartition("/")[2]: value for key, value in record.items()})


def _values(row: Mapping[str, Any]) -> Values:
    z, pos, energy, dipole, charges, total, *forces = (row[name] for name in NAMES if name in row)
    found = {
        "numbers": z,
        "positions": np.asarray(pos, float) * ANGSTROM,
        "energy": energy,
        "dipole": np.asarray(dipole, float) * ANGSTROM,
        "charges": charges,
        "total_charge": total,
    }
    return found | ({"forces": forces[0]} if forces else {})


def main() -> int:
    """Run it; returns the exit status."""
    made = options(__doc__, __file__)
    given = made.parse_args()
    readers = {
        "datasets": lambda: by_datasets(given.exported, None),
        "datasets, sample": lambda: by_datasets(given.exported, "sample"),
        "mlcroissant": lambda: by_croissant(given.exported),
    }
    figures, missed = {}, []
    for name, read in readers.items():
        figures[name], wrong = compare(name, given.folder, read())
        missed += wrong
    return harness.finish(given.out, figures, missed)


if __name__ == "__main__":
    raise SystemExit(main())

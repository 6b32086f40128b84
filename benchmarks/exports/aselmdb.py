"""`.aselmdb`, read with fairchem's AseDBDataset or MACE's LMDBDataset.

In an environment of its own, with `pip install fairchem-core` or `pip install mace-torch`, from the
root of the checkout:

    python -m benchmarks.exports.aselmdb data/mine mine.aselmdb --reader fairchem
"""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.exports.compare import Values, options, report, rows


def by_fairchem(path: Path) -> Iterator[Values]:
    """What its training code gets, and the numbers of atoms that its sampler gets."""
    from fairchem.core.datasets.ase_datasets import (  # pyright: ignore[reportMissingImports]
        AseDBDataset,
    )

    keys = {"r_data_keys": ["charge", "spin"], "r_energy": True, "r_forces": True}
    dataset = AseDBDataset({"src": str(path), "a2g_args": keys})
    for index in range(len(dataset)):
        data = dataset[index]
        assert int(dataset.get_metadata("natoms", index)) == len(data.atomic_numbers)
        assert int(data.spin) == 1
        found = {
            "numbers": data.atomic_numbers,
            "positions": data.pos,
            "energy": data.energy,
            "total_charge": data.charge,
        }
        yield found | ({} if data.forces is None else {"forces": data.forces})


def by_mace(path: Path, folder: Path) -> Iterator[Values]:
    """What its training code gets."""
    import torch  # pyright: ignore[reportMissingImports]
    from mace.data import LMDBDataset  # pyright: ignore[reportMissingImports]
    from mace.tools import AtomicNumberTable  # pyright: ignore[reportMissingImports]

    torch.set_default_dtype(torch.float64)
    table = AtomicNumberTable(sorted({int(z) for row in rows(folder) for z in row["numbers"]}))
    dataset = LMDBDataset(str(path), r_max=5.0, z_table=table)
    for index in range(len(dataset)):
        data = dataset[index]
        assert int(data.total_spin) == 1
        yield {
            "numbers": [table.zs[i] for i in data.node_attrs.argmax(dim=1)],
            "positions": data.positions,
            "energy": data.energy,
            "forces": data.forces,
            "total_charge": data.total_charge,
        }


def main() -> int:
    """Run it; returns the exit status."""
    made = options(__doc__, __file__)
    made.add_argument("--reader", choices=("fairchem", "mace"), default="fairchem")
    given = made.parse_args()
    readers = {
        "fairchem": lambda: by_fairchem(given.exported),
        "mace": lambda: by_mace(given.exported, given.folder),
    }
    return report(given, given.reader, readers[given.reader]())


if __name__ == "__main__":
    raise SystemExit(main())

"""SchNetPack's database, read with `schnetpack.data.ASEAtomsData`, in other units than the file's.

In an environment of its own, with `pip install schnetpack h5py`, from the root of the checkout:

    python -m benchmarks.exports.schnetpack data/mine mine.db
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from benchmarks import harness
from benchmarks.exports.compare import EV, Values, compare, options


def read(path: Path) -> Iterator[Values]:
    """What its training code gets; SchNetPack converts from Hartree and Debye itself."""
    import torch.utils.data.dataloader as loader  # pyright: ignore[reportMissingImports]

    if not hasattr(loader, "T_co"):  # SchNetPack 2.0 imports it, and PyTorch 2.13 lacks it
        loader.T_co = TypeVar("T_co", covariant=True)  # pyright: ignore[reportGeneralTypeIssues]
    from schnetpack.data import ASEAtomsData  # pyright: ignore[reportMissingImports]

    # In ASE's units a charge is a number, so a dipole moment in e*Angstrom is a length.
    units = {"energy": "Hartree", "dipole_moment": "Ang"}
    dataset = ASEAtomsData(str(path), property_units=units)
    references = dataset.atomrefs
    for index in range(len(dataset)):
        data = dataset[index]
        found = {
            "numbers": data["_atomic_numbers"],
            "positions": data["_positions"],
            "energy": data["energy"] * EV,
            "dipole": data["dipole_moment"],
            "charges": data["partial_charges"],
            "total_charge": data["total_charge"],
        }
        if "energy" in references:
            atoms = references["energy"][data["_atomic_numbers"]]
            found["atoms"] = atoms.double().sum() * EV
        yield found | ({"forces": data["forces"]} if "forces" in data else {})


def main() -> int:
    """Run it; returns the exit status."""
    given = options(__doc__, __file__).parse_args()
    figures, missed = compare("SchNetPack", given.folder, read(given.exported))
    return harness.finish(given.out, figures, missed)


if __name__ == "__main__":
    raise SystemExit(main())

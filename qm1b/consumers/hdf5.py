"""An HDF5 file that appears whole, with a group of datasets for each molecule."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, NamedTuple

import h5py
import numpy as np

from qm1b.process import files

LIBVER = ("v108", "v110")
"""Groups in the compact form of HDF5 1.8; every h5py of today reads it."""


class WithUnits(NamedTuple):
    """The values of a dataset, and its attribute `units`."""

    values: object
    units: str = ""
    """Empty for a dataset without the attribute."""


def write_hdf5(out: Path, fill: Callable[[h5py.File], None]) -> None:
    """Fill a new HDF5 file, and give it its name when it is whole.

    Raises:
        UserError: it cannot be written.
    """

    def write(stream: IO[bytes]) -> None:
        try:
            with h5py.File(stream, "w", libver=LIBVER) as file:
                fill(file)
        except RuntimeError as error:  # of the library, when it closes what it could not write
            raise OSError(str(error)) from error

    files.atomic_write(out, write)


def add_group(parent: h5py.Group, name: str, datasets: Mapping[str, WithUnits]) -> None:
    """Add a group with these datasets; texts are written as variable-length UTF-8."""
    group = parent.create_group(name)
    for key, (values, units) in datasets.items():
        is_text = isinstance(values, list)
        dtype = h5py.string_dtype() if is_text else None
        dataset = group.create_dataset(key, data=values, dtype=dtype)
        if units:
            dataset.attrs["units"] = units


def single(values: np.ndarray) -> np.ndarray:
    """Values in float32, in which the readers compute."""
    return values.astype(np.float32)

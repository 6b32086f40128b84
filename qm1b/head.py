"""The first rows of a dataset as a text table, energies in eV."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from pyscf_ipu.units import HARTREE_TO_EV

from .batch import Record
from .reading import load

_COLUMNS: dict[str, Callable[[Record], Any]] = {
    "line": lambda row: row["line"],
    "smiles": lambda row: row["smiles"],
    "conformer": lambda row: row["conformer"],
    "N [AOs]": lambda row: row["n_ao"],
    "energy [eV]": lambda row: row["energy"] * HARTREE_TO_EV,
    "homo [eV]": lambda row: row["homo"] * HARTREE_TO_EV,
    "lumo [eV]": lambda row: row["lumo"] * HARTREE_TO_EV,
    "gap [eV]": lambda row: (row["lumo"] - row["homo"]) * HARTREE_TO_EV,
    "dipole norm [e bohr]": lambda row: float(np.linalg.norm(row["dipole"])),
    "cycles": lambda row: row["cycles"],
    "status": lambda row: row["status"],
}
_FIELDS = (
    *("line", "smiles", "conformer", "n_ao", "energy", "homo", "lumo", "dipole"),
    *("cycles", "status"),
)


def first_rows(path: Path, count: int) -> str:
    """The first `count` rows of anything that `load` reads; columns that it lacks are left out.

    Raises:
        UserError: there is no dataset.
    """
    import pandas as pd

    rows = list(islice(load(path, _FIELDS), count))
    if not rows:
        return f"{path} has no rows."
    table = pd.DataFrame(
        {
            title: [value(row) for row in rows]
            for title, value in _COLUMNS.items()
            if _has(rows[0], value)
        }
    )
    return table.to_string(index=False, float_format="{:.4f}".format)


def _has(row: Record, value: Callable[[Record], Any]) -> bool:
    try:
        value(row)
    except KeyError:
        return False
    return True

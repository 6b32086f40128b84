"""SchNetPack's dataset: an SQLite database of ASE, whose metadata name properties and units.

Each property is an array in the row's `data`; `ASEAtomsData` reads it there by name. SMILES, line
and conformer are key-value pairs, for which ASE can select: `ase db mine.db line=7`. The id is a
text in `data`, since ASE refuses key-value pairs whose text could be a number.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from pyscf_ipu.base.errors import MissingPackage
from pyscf_ipu.base.extras import how_to_install
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, E_BOHR_TO_DEBYE
from qm1b.formats.consumers.ase_rows import AseRow, ase_rows, free_atoms_by_number
from qm1b.rows.batch import Batch
from qm1b.rows.dataset import Dataset
from qm1b.rows.schema import CHARGES_LOWDIN, DISPERSION, QUADRUPOLE, Json, has
from qm1b.storage import files

if TYPE_CHECKING:
    from ase.db.core import Database

ENDING = ".db"
"""SchNetPack takes no other."""

UNITS: dict[str, str | None] = {
    "energy": "eV",
    "forces": "eV/Ang",
    "dipole_moment": "Debye",
    "partial_charges": None,
    "total_charge": None,
    "homo": "eV",
    "lumo": "eV",
    "gap": "eV",
    "dispersion": "eV",
    "lowdin_charges": None,
    "quadrupole_moment": "Debye*Ang",
}
"""Properties and their units in SchNetPack's words. Charges are in e, for which it has no word; so
the dipole moment is in Debye, which it converts to what is asked for."""

OPTIONAL = {
    "forces": "forces",
    "dispersion": DISPERSION,
    "lowdin_charges": CHARGES_LOWDIN,
    "quadrupole_moment": QUADRUPOLE,
}
"""Properties that not every run has, and what a run must have for them (`schema.has`).  Bond orders
are none of them: SchNetPack joins the arrays of molecules, which [A, A] of several sizes prevents.
"""


def write_schnetpack(out: Path, batches: Iterator[Batch], source: Dataset) -> list[Path]:
    """Write rows as one database; there is no file beside it.

    Raises:
        UserError: the file cannot be written.
        MissingPackage: ASE is not installed.
    """
    try:
        from ase.db.sqlite import SQLite3Database
    except ImportError:
        raise MissingPackage(
            f"writing SchNetPack's database needs ASE: run {how_to_install('ase')}"
        ) from None

    def write(stream: IO[bytes]) -> None:
        try:
            database = SQLite3Database(stream.name, use_lock_file=False)
            with database:  # outside it, ASE leaves closing a connection to the garbage collector
                database.metadata = metadata(source)
            for batch in batches:
                with database:
                    for row in ase_rows(batch):
                        _add(database, row)
        except sqlite3.Error as error:
            raise OSError(str(error)) from error

    files.atomic_write(out, write)
    return []


def metadata(source: Dataset) -> Json:
    """What SchNetPack wants to know; `atomrefs` has an energy in eV for each atomic number."""
    settings = source.metadata.get("settings", {})
    names = [name for name in UNITS if has(settings, OPTIONAL.get(name, ""))]
    free = free_atoms_by_number(source)
    return {
        "_property_unit_dict": {name: UNITS[name] for name in names},
        "_distance_unit": "Ang",
        "atomrefs": {"energy": free} if free else {},
        "functional_definition": source.metadata.get("functional_definition", ""),
        "settings": settings,
    }


def _add(database: Database, row: AseRow) -> None:
    from ase.db.row import AtomsRow

    results = row.results
    values = {
        "energy": results["energy"],
        "dipole_moment": results["dipole"] * (E_BOHR_TO_DEBYE / BOHR_TO_ANGSTROM),
        "partial_charges": results["charges"],
        "total_charge": float(row.charge),
        **row.energies,
    }
    if "forces" in results:
        values["forces"] = results["forces"]
    if (charges := row.properties.get("lowdin_charges")) is not None:
        values["lowdin_charges"] = charges
    if (moments := row.properties.get("quadrupole")) is not None:  # [1, 3, 3]: they are joined
        values["quadrupole_moment"] = moments[None] * (E_BOHR_TO_DEBYE / BOHR_TO_ANGSTROM)
    pairs = {"smiles": row.smiles, "line": row.line, "conformer": row.conformer}
    pairs |= {"multiplicity": row.multiplicity} if row.multiplicity > 1 else {}
    entry = {
        "numbers": row.numbers,
        "positions": row.positions,
        "unique_id": row.unique_id,
        "ctime": 0.0,
        "user": "",
    }
    data = {name: np.atleast_1d(np.asarray(value, np.float64)) for name, value in values.items()}
    database.write(AtomsRow(entry), key_value_pairs=pairs, data={**data, "id": row.id})

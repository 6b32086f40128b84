"""The part of a result that prints it and writes it to files."""

from __future__ import annotations

import json
from dataclasses import Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.host.temporaries import write_text
from pyscf_ipu.results import orbital_files, printed
from pyscf_ipu.results.entries import UNITS, Values, entries, is_list, plain, record, without_nan

if TYPE_CHECKING:
    from pandas import DataFrame

COORDINATES = "xyz"


class Keepable:
    """The base of a result dataclass, of one molecule or of a list: ways to keep it."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __repr__(self) -> str:
        return printed.table(self._values())

    def to_dict(self) -> dict[str, object]:
        """The result as plain Python values; a list of molecules is under "molecules".

        Numbers are Python's, arrays are lists, and what was not asked for is left out.  `units` has
        the unit of every field that has one.
        """
        values = self._values()
        records = [record(one) for one in entries(values)]
        outer = {"molecules": records} if is_list(values) else records[0]
        return {**outer, "units": dict(UNITS)}

    def to_json(self, path: str | Path | None = None) -> str:
        """`to_dict` as JSON text, with null for NaN; also written to a file if there is a path.

        Raises:
            OSError: the file cannot be written.
        """
        text = json.dumps(without_nan(self.to_dict()), indent=2, allow_nan=False)
        if path is not None:
            write_text(path, f"{text}\n")
        return text

    def to_pandas(self) -> DataFrame:
        """A table with a row per molecule; `attrs["units"]` has the units of its columns.

        Energy terms and the dipole's components have columns of their own, `energy_kinetic` and
        `dipole_x` for example.  Columns of arrays hold an array per molecule.
        """
        from pandas import DataFrame

        rows = [_columns(one) for one in entries(self._values())]
        frame = DataFrame(rows)
        units = {name: _unit(name) for name in frame.columns}
        frame.attrs["units"] = {name: unit for name, unit in units.items() if unit}
        return frame

    def to_molden(self, path: str | Path, index: int | None = None) -> None:
        """Write a Molden file: geometry, basis set, and all orbitals with energies in Hartree.

        Args:
            path: the file.
            index: which molecule of a list, from 0.

        Raises:
            UsageError: the result has no orbitals (`rks(..., orbitals=True)` gives them), the index
                is missing or wrong, or there is no such folder.
        """
        orbital_files.write_molden(self._entry(index), Path(path))

    def to_cube(
        self,
        path: str | Path,
        what: str | int = "density",
        points: int = 80,
        index: int | None = None,
        spin: str = "alpha",
    ) -> None:
        """Write a Gaussian cube file of a density or of an orbital, in atomic units.

        Args:
            path: the file.
            what: "density" (electrons per Bohr^3), "spin" (its alpha less its beta part), "homo",
                "lumo", or an orbital's number from 0.
            points: points per direction.
            index: which molecule of a list, from 0.
            spin: "alpha" or "beta", of an orbital from `uks`.

        Raises:
            UsageError: as for `to_molden`, or there is no such orbital.
        """
        orbital_files.write_cube(self._entry(index), Path(path), what, points=points, spin=spin)

    def _values(self) -> Values:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _entry(self, index: int | None) -> Values:
        values = self._values()
        every = entries(values)
        if index is None and not is_list(values):
            return every[0]
        if index is None or not 0 <= index < len(every):
            raise UsageError(
                f"index={index}: say which of the {len(every)} molecules, from 0 to "
                f"{len(every) - 1}"
            )
        return every[index]


def _columns(values: Values) -> dict[str, object]:
    """The columns of one molecule."""
    mol = values["molecule"]
    columns: dict[str, object] = {}
    if mol is not None:
        columns |= {"molecule": str(mol), "name": mol.name, "smiles": mol.smiles}
    for name, value in values.items():
        if value is None or name in ("molecule", "settings"):
            continue
        if name == "energy_terms":
            columns |= {f"energy_{term}": plain(number) for term, number in value.items()}
        elif name == "dipole":
            columns |= {f"dipole_{x}": float(v) for x, v in zip(COORDINATES, value, strict=True)}
        else:
            columns[name] = plain(value) if np.ndim(value) == 0 else value
    return columns


def _unit(name: str) -> str | None:
    if name in UNITS:
        return UNITS[name]
    return UNITS.get(name.rpartition("_")[0]) if name.startswith(("energy_", "dipole_")) else None

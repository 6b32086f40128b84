"""The columns of a Parquet file: their Arrow types, and the field that each one holds."""

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pyscf_ipu.base.units import FORCE_TO_EV_PER_ANGSTROM, HARTREE_TO_EV
from qm1b.folder.manifest.manifest_schema import LEVEL_KEYS
from qm1b.formats.spread import MEANING, PUBLISHED, meaning
from qm1b.rows.batch import OFFSETS, unit_name
from qm1b.rows.schema import FIELDS, FREE_ATOMS, Field, Json, fields_of, has

ORDER = """
smile atoms z energy homo lumo N std y pos
status converged cycles commutator_norm dipole mulliken_charges conformer seed embedding relaxation
attempts stable followed suspect line id input_atom charge atomisation_energy energy_std
""".split()
"""QM1B's own columns, then ours; columns that are not named here follow in the order of fields."""

MADE = (
    Field("atoms", "str", "text", text="element symbols, heavy atoms first"),
    Field("y", "float64", "eV", text="gap, lumo - homo"),
    Field(PUBLISHED, "float32", "eV", text="spread of the energies after convergence"),
)
"""Columns that no field holds."""

FACTORS = {"eV": HARTREE_TO_EV, "eV/angstrom": FORCE_TO_EV_PER_ANGSTROM}
"""Factors of a field's values, by the unit of its column."""


class Converted(NamedTuple):
    """A column with the values of a field in another unit."""

    column: str
    factor: float
    """What the field's values are multiplied by."""


RENAMED = {f.name: f.column.name for f in FIELDS if f.column if f.column.name and not f.column.unit}
"""Fields that QM1B's columns hold without loss, under these other names."""

CONVERTED = {
    f.name: Converted(f.column.name or f.name, FACTORS[f.column.unit])
    for f in FIELDS
    if f.column and f.column.unit
}
"""Fields that a file without exact columns has only in eV, or eV/Angstrom."""


def _columns() -> Iterator[Field]:
    columns = {c.name: c for c in (*MADE, *(f.column.of(f) for f in FIELDS if f.column))}
    yield from (columns[name] for name in dict.fromkeys([*ORDER, *columns]))


COLUMNS = tuple(_columns())
"""The columns of a Parquet file: each has its own name, unit, type and text."""


def arrow_schema(manifest: Json, exact: bool = False) -> pa.Schema:
    """The Arrow schema: QM1B's columns and types, units and the level of theory as metadata.

    N is uint8, as in QM1B, unless the run allowed molecules of more than 255 orbitals.
    """
    settings = manifest["settings"]
    columns = [(c, c.name) for c in COLUMNS if has(settings, c.only_with)]
    columns += exact_columns(fields_of(settings)) if exact else []
    texts = {name: c.text for c, name in columns} | {PUBLISHED: meaning(settings)}
    fields = [
        pa.field(name, arrow_type(c), metadata={"unit": c.unit, "description": texts[name]})
        for c, name in columns
    ]
    if settings["max_aos"] > np.iinfo(np.uint8).max:
        fields = [f.with_type(pa.uint16()) if f.name == "N" else f for f in fields]
    metadata = {key: _text(manifest[key]) for key in LEVEL_KEYS}
    metadata[FREE_ATOMS] = json.dumps(manifest.get(FREE_ATOMS, {}))
    if exact:
        metadata["manifest"] = json.dumps(manifest)
    metadata[MEANING] = texts[PUBLISHED]
    metadata["units"] = json.dumps({f.name: f.metadata[b"unit"].decode() for f in fields})
    metadata["hartree_to_ev"] = str(HARTREE_TO_EV)
    return pa.schema(fields, metadata=metadata)


def exact_columns(fields: Iterable[Field]) -> list[tuple[Field, str]]:
    """The fields that no ordinary column holds bit for bit, with the names of their columns."""
    ordinary = {(c.name, c.unit, arrow_type(c)) for c in COLUMNS}
    return [
        (f, unit_name(f))
        for f in fields
        if f.name not in (*OFFSETS, *RENAMED) and (f.name, f.unit, arrow_type(f)) not in ordinary
    ]


def arrow_type(field: Field) -> pa.DataType:
    """The Arrow type that holds a field without loss."""
    one = pa.string() if field.dtype == "str" else pa.from_numpy_dtype(np.dtype(field.dtype))
    return pa.list_(one) if field.ragged or field.width > 1 else one


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)

"""The columns of a Parquet file: their Arrow types, and the field that each one holds."""

import json

import numpy as np
import pyarrow as pa

from pyscf_ipu.units import HARTREE_TO_EV
from qm1b.manifest_schema import LEVEL_KEYS
from qm1b.rows.batch import OFFSETS, unit_name
from qm1b.rows.schema import COLUMNS, FIELDS, Field, Json

RENAMED = {"smiles": "smile", "numbers": "z", "positions": "pos", "n_ao": "N"}
"""Fields that QM1B's columns hold without loss, under these other names."""

FROM_EV = {"energy": "energy", "homo": "homo", "lumo": "lumo", "energy_std": "std"}
"""Fields that a file without exact columns has only in eV."""


def arrow_schema(manifest: Json, exact: bool = False) -> pa.Schema:
    """The Arrow schema: QM1B's columns and types, units and the level of theory as metadata.

    N is uint8, as in QM1B, unless the run allowed molecules of more than 255 orbitals.
    """
    found = [(c.name, _type_named(c.arrow), c) for c in COLUMNS]
    found += [(name, arrow_type(f), f) for f, name in exact_columns() if exact]
    fields = [
        pa.field(name, arrow, metadata={"unit": of.unit, "description": of.description})
        for name, arrow, of in found
    ]
    if manifest["settings"]["max_aos"] > np.iinfo(np.uint8).max:
        fields = [f.with_type(pa.uint16()) if f.name == "N" else f for f in fields]
    metadata = {key: _text(manifest[key]) for key in LEVEL_KEYS}
    if exact:
        metadata["manifest"] = json.dumps(manifest)
    metadata["units"] = json.dumps({f.name: f.metadata[b"unit"].decode() for f in fields})
    metadata["hartree_to_ev"] = str(HARTREE_TO_EV)
    return pa.schema(fields, metadata=metadata)


def exact_columns() -> list[tuple[Field, str]]:
    """Fields that the ordinary columns do not hold bit for bit, with the names of their columns."""
    ordinary = {(c.name, c.unit, _type_named(c.arrow)) for c in COLUMNS}
    return [
        (f, unit_name(f))
        for f in FIELDS
        if f.name not in (*OFFSETS, *RENAMED) and (f.name, f.unit, arrow_type(f)) not in ordinary
    ]


def arrow_type(field: Field) -> pa.DataType:
    """The Arrow type that holds a field without loss."""
    one = pa.string() if field.dtype == "str" else pa.from_numpy_dtype(np.dtype(field.dtype))
    return pa.list_(one) if field.ragged or field.width > 1 else one


def _type_named(name: str) -> pa.DataType:
    inner = name.removeprefix("list<").removesuffix(">")
    return pa.type_for_alias(name) if inner == name else pa.list_(pa.type_for_alias(inner))


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)

"""Which columns a Parquet file has, of which Arrow type, and which field each one holds."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from pyscf_ipu.units import HARTREE_TO_EV

from ..batch import OFFSETS, unit_name
from ..manifest import LEVEL_KEYS
from ..schema import COLUMNS, FIELDS, Column, Field

_ARROW: dict[str, pa.DataType] = {
    "string": pa.string(),
    "double": pa.float64(),
    "float": pa.float32(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "list<uint8>": pa.list_(pa.uint8()),
    "list<float>": pa.list_(pa.float32()),
}

RENAMED = {"smiles": "smile", "numbers": "z", "positions": "pos", "n_ao": "N"}
"""Fields that QM1B's columns hold without loss under another name."""

FROM_EV = {"energy": "energy", "homo": "homo", "lumo": "lumo", "energy_std": "std"}
"""Fields that a file which is not exact has in eV only."""


def arrow_schema(manifest: dict[str, Any], exact: bool = False) -> pa.Schema:
    """The Arrow schema: QM1B's columns and types, units and the level of theory as metadata.

    N is uint8, as in QM1B, unless the run allowed molecules of more than 255 orbitals.
    """
    wide = manifest["settings"]["max_aos"] > np.iinfo(np.uint8).max

    def described(column: Column) -> pa.Field:
        arrow = "uint16" if column.name == "N" and wide else column.arrow
        metadata = {"unit": column.unit, "description": column.description}
        return pa.field(column.name, _ARROW[arrow], metadata=metadata)

    fields = [described(column) for column in COLUMNS]
    if exact:
        fields += [
            pa.field(name, arrow_type(f), metadata={"unit": f.unit, "description": f.description})
            for f, name in exact_columns()
        ]
    metadata = {key: _text(manifest[key]) for key in LEVEL_KEYS}
    if exact:
        metadata["manifest"] = json.dumps(manifest)
    metadata["units"] = json.dumps({f.name: f.metadata[b"unit"].decode() for f in fields})
    metadata["hartree_to_ev"] = str(HARTREE_TO_EV)
    return pa.schema(fields, metadata=metadata)


def exact_columns() -> list[tuple[Field, str]]:
    """Fields that the ordinary columns do not hold bit for bit, and the names of theirs."""
    ordinary = {c.name: c for c in COLUMNS}
    found = []
    for f in FIELDS:
        c = ordinary.get(f.name)
        same = c is not None and c.unit == f.unit and _ARROW[c.arrow] == arrow_type(f)
        if f.name in OFFSETS or f.name in RENAMED or same:
            continue
        found.append((f, unit_name(f)))
    return found


def arrow_type(field: Field) -> pa.DataType:
    """The Arrow type that holds a field without loss."""
    one = pa.string() if field.dtype == "str" else pa.from_numpy_dtype(np.dtype(field.dtype))
    return pa.list_(one) if field.ragged or field.width > 1 else one


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)

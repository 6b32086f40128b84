"""Parquet with the columns of QM1B (energies in eV, positions in Bohr).

A file `exact` has further columns, each named by field and unit, from which every row can be
rebuilt bit for bit: float32 columns and energies in eV cannot do that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pyscf_ipu.molecule import SYMBOLS
from pyscf_ipu.units import HARTREE_TO_EV

from ..batch import BY_NAME, OFFSETS, Batch, column, offsets_of
from ..errors import UserError
from ..manifest import LEVEL_KEYS
from ..reading import Indexed
from ..schema import COLUMNS, FIELDS, Field
from .columns import FROM_EV, RENAMED, arrow_type, exact_columns

ROWS_PER_GROUP = 100_000
"""Rows of a row group: DuckDB and polars divide the work of a file by row groups, and small ones
cost them more than they hold."""

_SYMBOLS = np.array(SYMBOLS, dtype=object)


def write(
    stream: IO[bytes],
    batches: Iterable[Batch],
    schema: pa.Schema,
    rows_per_group: int = ROWS_PER_GROUP,
) -> int:
    """Write rows as one Parquet file, in full row groups; returns how many there were."""
    waiting: list[pa.Table] = []
    total = n = 0
    text: Any = [f.name for f in schema if f.type == pa.string()]
    with pq.ParquetWriter(stream, schema, compression="zstd", use_dictionary=text) as writer:
        for batch in batches:
            waiting.append(table(batch, schema))
            n += len(batch)
            total += len(batch)
            while n >= rows_per_group:
                joined = pa.concat_tables(waiting)
                writer.write_table(joined[:rows_per_group].combine_chunks(), rows_per_group)
                waiting, n = [joined[rows_per_group:]], n - rows_per_group
        if n:
            writer.write_table(pa.concat_tables(waiting).combine_chunks(), rows_per_group)
    return total


def table(batch: Batch, schema: pa.Schema) -> pa.Table:
    """Rows as an Arrow table with the columns of the schema."""
    columns = _ordinary(batch)
    for f, name in exact_columns():
        if name in schema.names:
            columns[name] = _arrow(batch, f)
    return pa.table([pa.array(columns[f.name], f.type) for f in schema], schema=schema)


def batch_of(found: pa.Table) -> Batch:
    """The fields that an Arrow table holds, exact columns before those in eV."""
    names, columns = set(found.column_names), {}
    exact = {f.name: name for f, name in exact_columns()}
    for f in FIELDS:
        if f.name in OFFSETS:
            continue
        same = RENAMED.get(f.name, f.name)
        if exact.get(f.name) in names:
            _take(columns, f, found[exact[f.name]])
        elif f.name in FROM_EV and FROM_EV[f.name] in names:
            ev = found[FROM_EV[f.name]].to_numpy().astype(np.float64)
            columns[f.name] = column(f, ev / HARTREE_TO_EV, len(found))
        elif same in names and f.name not in FROM_EV:
            _take(columns, f, found[same])
    return Batch({f.name: columns[f.name] for f in FIELDS if f.name in columns}, len(found))


class ParquetFile(Indexed):
    """A Parquet file; its parts are its row groups."""

    def __init__(self, path: Path, fields: Sequence[str] | None = None) -> None:
        super().__init__(path, fields)
        try:
            self._file = pq.ParquetFile(path)
        except (OSError, pa.ArrowException) as error:
            raise UserError(f"{path} is not a whole Parquet file ({error}).") from None
        schema = self._file.schema_arrow
        if not {"smile", "z", "pos", "energy"} <= set(schema.names):
            raise UserError(
                f"{path} has not QM1B's columns smile, z, pos and energy; give a file of "
                "qm1b export or of QM1B."
            )
        self.metadata = _manifest(schema.metadata or {})
        self.exact = all(name in schema.names for _, name in exact_columns())
        """Whether every field can be read bit for bit."""

    @cached_property
    def sizes(self) -> list[int]:
        """Rows of each row group."""
        groups = self._file.metadata
        return [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]

    def part(self, number: int) -> Batch:
        """The rows of a row group."""
        try:
            found = self._file.read_row_group(number, columns=self._columns())
        except (OSError, pa.ArrowException) as error:
            raise UserError(f"{self.path} is damaged ({error}); export it again.") from None
        return self._only(batch_of(found))

    def _columns(self) -> list[str] | None:
        """The columns that the wanted fields may come from."""
        if self.fields is None:
            return None
        exact = {f.name: name for f, name in exact_columns()}
        return [
            name
            for f in self.fields
            for name in (f, exact.get(f, f), RENAMED.get(f, f), FROM_EV.get(f, f))
            if name in self._file.schema_arrow.names
        ]


def _ordinary(batch: Batch) -> dict[str, Any]:
    """QM1B's columns and those that are ours in every file."""
    numbers, pos = _arrow(batch, BY_NAME["numbers"]), _arrow(batch, BY_NAME["positions"])
    offsets, symbols = batch["atom_offset"], _SYMBOLS[batch["numbers"]]
    homo, lumo = batch["homo"] * HARTREE_TO_EV, batch["lumo"] * HARTREE_TO_EV
    special = {
        "smile": batch["smiles"],
        "atoms": ["".join(symbols[a:b]) for a, b in pairwise(offsets)],
        "z": numbers,
        "energy": batch["energy"] * HARTREE_TO_EV,
        "homo": homo.astype(np.float32),
        "lumo": lumo.astype(np.float32),
        "N": batch["n_ao"],
        "std": (batch["energy_std"] * HARTREE_TO_EV).astype(np.float32),
        "y": lumo - homo,
        "pos": pos,
        "commutator_norm": batch["commutator_norm"].astype(np.float32),
        "dipole": _lists(batch["dipole"].astype(np.float32)),
        "mulliken_charges": _arrow(batch, BY_NAME["mulliken_charges"]).cast(pa.list_(pa.float32())),
    }
    rest = (c.name for c in COLUMNS if c.name not in special)
    return special | {name: _arrow(batch, BY_NAME[name]) for name in rest}


def _arrow(batch: Batch, field: Field) -> Any:
    """A field as an Arrow array, lists made from the flat values without a loop."""
    values = batch[field.name]
    if field.ragged:
        offsets = batch[f"{field.ragged}_offset"] * field.width
        return pa.ListArray.from_arrays(offsets.astype(np.int32), values.ravel())
    return _lists(values) if field.width > 1 else pa.array(values, arrow_type(field))


def _lists(values: np.ndarray) -> pa.ListArray:
    """[R, width] as lists."""
    offsets = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
    return pa.ListArray.from_arrays(offsets, values.ravel())


def _take(columns: dict[str, np.ndarray], field: Field, found: pa.ChunkedArray) -> None:
    """Put an Arrow column into the columns of a batch, with its offsets if it is ragged."""
    array, rows = found.combine_chunks(), len(found)
    if not (field.ragged or field.width > 1):
        columns[field.name] = column(field, array.to_numpy(zero_copy_only=False), rows)
        return
    columns[field.name] = column(field, array.flatten().to_numpy(zero_copy_only=False), rows)
    if field.ragged:
        lengths = array.value_lengths().to_numpy(zero_copy_only=False) // field.width
        columns[f"{field.ragged}_offset"] = offsets_of(lengths)


def _manifest(metadata: dict[bytes, bytes]) -> dict[str, Any]:
    """The manifest that an exact file holds, or the parts of it that others have."""
    if b"manifest" in metadata:
        return json.loads(metadata[b"manifest"])
    found = {key: metadata[key.encode()].decode() for key in LEVEL_KEYS if key.encode() in metadata}
    return {key: json.loads(text) if text[:1] == "{" else text for key, text in found.items()}

"""Parquet with the columns of QM1B (energies in eV, positions in Bohr).

An exact file has further columns, each named by field and unit, from which every row can be
rebuilt bit for bit. That is impossible from float32 columns and energies in eV.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pyscf_ipu.elements.symbols import SYMBOLS
from pyscf_ipu.units import HARTREE_TO_EV
from qm1b.errors import UserError
from qm1b.folder.manifest import LEVEL_KEYS
from qm1b.formats.columns import FROM_EV, RENAMED, arrow_type, exact_columns
from qm1b.rows.batch import BY_NAME, OFFSETS, Batch, column, in_order, offsets_of
from qm1b.rows.dataset import Indexed
from qm1b.rows.schema import FIELDS, Field, Json

ROWS_PER_GROUP = 100_000
"""Rows per row group: DuckDB and polars divide the work on a file by row groups, and small groups
cost more time than they save."""

_SYMBOLS = np.array(SYMBOLS, dtype=object)
_EXACT = {field.name: name for field, name in exact_columns()}
_FIELD_OF = {name: field for field, name in (RENAMED | _EXACT).items()}


def write(
    stream: IO[bytes],
    batches: Iterable[Batch],
    schema: pa.Schema,
    rows_per_group: int = ROWS_PER_GROUP,
) -> int:
    """Write rows as one Parquet file, in full row groups; returns the number of rows."""
    waiting: list[pa.Table] = []
    total = n = 0
    text = [f.name for f in schema if f.type == pa.string()]
    options = {"compression": "zstd", "use_dictionary": text}
    with pq.ParquetWriter(stream, schema, **options) as writer:
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
    symbols = _SYMBOLS[batch["numbers"]]
    ev = {name: batch[field] * HARTREE_TO_EV for field, name in FROM_EV.items()}
    found = {name: pa.array(values) for name, values in ev.items()}
    found["y"] = pa.array(ev["lumo"] - ev["homo"])
    found["atoms"] = pa.array(
        ["".join(symbols[a:b]) for a, b in pairwise(batch["atom_offset"])], pa.string()
    )
    for name in set(schema.names) - set(found):
        found[name] = _arrow(batch, BY_NAME[_FIELD_OF.get(name) or name])
    return pa.table([found[f.name].cast(f.type) for f in schema], schema=schema)


def batch_of(found: pa.Table) -> Batch:
    """The fields that an Arrow table holds; exact columns are preferred to those in eV."""
    names, columns = set(found.column_names), {}
    for f in FIELDS:
        if f.name in OFFSETS:
            continue
        same = RENAMED.get(f.name, f.name)
        if _EXACT.get(f.name) in names:
            _take(columns, f, found[_EXACT[f.name]])
        elif f.name in FROM_EV and FROM_EV[f.name] in names:
            ev = found[FROM_EV[f.name]].to_numpy().astype(np.float64)
            columns[f.name] = column(f, ev / HARTREE_TO_EV, len(found))
        elif same in names and f.name not in FROM_EV:
            _take(columns, f, found[same])
    return Batch(in_order(columns), len(found))


class ParquetFile(Indexed):
    """A Parquet file; its parts are its row groups."""

    def __init__(self, path: Path, fields: Sequence[str] | None = None) -> None:
        super().__init__(path, fields)
        try:
            self._file = pq.ParquetFile(path)
        except (OSError, pa.ArrowException) as error:
            raise UserError(f"{path} is not a whole Parquet file ({error})") from None
        schema = self._file.schema_arrow
        if not {"smile", "z", "pos", "energy"} <= set(schema.names):
            raise UserError(
                f"{path} lacks QM1B's columns smile, z, pos and energy; give a file of "
                "qm1b export or of QM1B"
            )
        self.metadata = _manifest(schema.metadata or {})
        self.exact = set(_EXACT.values()) <= set(schema.names)
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
            raise UserError(f"{self.path} is damaged ({error}); export it again") from None
        return self._only(batch_of(found))

    def _columns(self) -> list[str] | None:
        """The columns that may hold the wanted fields."""
        if self.fields is None:
            return None
        return [
            name
            for f in self.fields
            for name in (f, _EXACT.get(f, f), RENAMED.get(f, f), FROM_EV.get(f, f))
            if name in self._file.schema_arrow.names
        ]


def _arrow(batch: Batch, field: Field) -> pa.Array:
    """A field as an Arrow array; lists are made from the flat values without a loop."""
    values = batch[field.name]
    if not field.ragged and field.width == 1:
        return pa.array(values, arrow_type(field))
    rows = batch[f"{field.ragged}_offset"] if field.ragged else np.arange(len(values) + 1)
    return pa.ListArray.from_arrays((rows * field.width).astype(np.int32), values.ravel())


def _take(columns: dict[str, np.ndarray], field: Field, found: pa.ChunkedArray) -> None:
    """Put an Arrow column into the columns of a batch, with its offsets if it is ragged."""
    array = found.combine_chunks()
    flat = array.flatten() if field.ragged or field.width > 1 else array
    columns[field.name] = column(field, flat.to_numpy(zero_copy_only=False), len(found))
    if field.ragged:
        lengths = array.value_lengths().to_numpy(zero_copy_only=False) // field.width
        columns[f"{field.ragged}_offset"] = offsets_of(lengths)


def _manifest(metadata: dict[bytes, bytes]) -> Json:
    """The manifest in an exact file, or the parts of it in other files."""
    if b"manifest" in metadata:
        return json.loads(metadata[b"manifest"])
    found = {key: metadata[key.encode()].decode() for key in LEVEL_KEYS if key.encode() in metadata}
    return {key: json.loads(text) if text[:1] == "{" else text for key, text in found.items()}

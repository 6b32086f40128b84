"""Parquet with the columns of QM1B (energies in eV, positions in Bohr).

An exact file has further columns, each named by field and unit, from which every row can be
rebuilt bit for bit. That is impossible from float32 columns and energies in eV.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.elements.spellings import SYMBOLS
from qm1b.errors import UserError
from qm1b.folder.manifest.manifest_schema import LEVEL_KEYS
from qm1b.formats.columns import CONVERTED, RENAMED, arrow_type, exact_columns
from qm1b.formats.spread import PUBLISHED, published_std
from qm1b.rows.batch import BY_NAME, OFFSETS, Batch, column, in_order, offsets_of
from qm1b.rows.dataset import Indexed
from qm1b.rows.schema import FIELDS, FREE_ATOMS, Field, Json, fields_of

ROWS_PER_GROUP = 100_000
"""Rows per row group: DuckDB and polars divide the work on a file by row groups, and small groups
cost more time than they save."""

WHOLE_KEYS = ("manifest", "digests")
"""Entries in the metadata of an exact file, as JSON."""

_SYMBOLS = np.array(SYMBOLS, dtype=object)
_EXACT = {field.name: name for field, name in exact_columns(FIELDS)}
_DAMAGE = (OSError, pa.ArrowException, ArithmeticError, AttributeError, LookupError, MemoryError)
_DAMAGE += (TypeError, ValueError, RecursionError)
"""What a damaged file may raise: a footer has no checksum, so a column may be of any kind."""

_FIELD_OF = {name: field for field, name in (RENAMED | _EXACT).items()}


def write(
    stream: IO[bytes],
    batches: Iterable[Batch],
    schema: pa.Schema,
    closing: Callable[[], Mapping[str, str]] = dict,
) -> int:
    """Write rows as one Parquet file, in full row groups; returns the number of rows.

    Args:
        stream: the file.
        batches: the rows.
        schema: columns and metadata.
        closing: called after the last row; gives further metadata.
    """
    waiting: list[pa.Table] = []
    total = n = 0
    with writer_of(stream, schema) as writer:
        for batch in batches:
            waiting.append(table(batch, schema))
            n += len(batch)
            total += len(batch)
            while n >= ROWS_PER_GROUP:
                joined = pa.concat_tables(waiting)
                writer.write_table(joined[:ROWS_PER_GROUP].combine_chunks(), ROWS_PER_GROUP)
                waiting, n = [joined[ROWS_PER_GROUP:]], n - ROWS_PER_GROUP
        if n:
            writer.write_table(pa.concat_tables(waiting).combine_chunks(), ROWS_PER_GROUP)
        _add_metadata(writer, schema, closing())
    return total


def writer_of(target: IO[bytes], schema: pa.Schema) -> pq.ParquetWriter:
    """A writer with our compression, and checksums of pages."""
    text = [f.name for f in schema if f.type == pa.string()]
    options = {"compression": "zstd", "use_dictionary": text, "write_page_checksum": True}
    return pq.ParquetWriter(target, schema, **options)


def _add_metadata(writer: pq.ParquetWriter, schema: pa.Schema, entries: Mapping[str, str]) -> None:
    """Add metadata at the end of a file, and to the Arrow schema in it.

    The schema was written at the beginning, but in the footer the last one counts. What reads the
    file into Arrow and writes it again keeps only the schema's metadata.
    """
    if entries:
        whole = schema.with_metadata({**(schema.metadata or {}), **entries})
        arrow = base64.b64encode(whole.serialize().to_pybytes())
        writer.add_key_value_metadata({**entries, "ARROW:schema": arrow})


def table(batch: Batch, schema: pa.Schema) -> pa.Table:
    """Rows as an Arrow table with the columns of the schema."""
    symbols = _SYMBOLS[batch["numbers"]]
    arrays = {
        name: _arrow(batch[field] * factor, BY_NAME[field], batch)
        for field, (name, factor) in CONVERTED.items()
        if name in schema.names
    }
    settings = json.loads((schema.metadata or {}).get(b"settings", b"{}"))
    arrays[PUBLISHED] = pa.array(published_std(batch, settings) * HARTREE_TO_EV)
    arrays["y"] = pa.array(batch["lumo"] * HARTREE_TO_EV - batch["homo"] * HARTREE_TO_EV)
    arrays["atoms"] = pa.array(
        ["".join(symbols[a:b]) for a, b in pairwise(batch["atom_offset"])], pa.string()
    )
    for name in set(schema.names) - set(arrays):
        field = BY_NAME[_FIELD_OF.get(name) or name]
        arrays[name] = _arrow(batch[field.name], field, batch)
    return pa.table([arrays[f.name].cast(f.type) for f in schema], schema=schema)


def batch_of(rows: pa.Table) -> Batch:
    """The fields that an Arrow table holds; exact columns are preferred to others."""
    if "energy_std" not in rows.column_names:  # QM1B's own files, and ours from before
        names = ["energy_std" if name == PUBLISHED else name for name in rows.column_names]
        rows = rows.rename_columns(names)
    names, columns = set(rows.column_names), {}
    for f in FIELDS:
        if f.name in OFFSETS:
            continue
        same = RENAMED.get(f.name, f.name)
        if _EXACT.get(f.name) in names:
            _take(columns, f, rows[_EXACT[f.name]])
        elif f.name in CONVERTED and CONVERTED[f.name].column in names:
            _take(columns, f, rows[CONVERTED[f.name].column])
            columns[f.name] = columns[f.name] / CONVERTED[f.name].factor
        elif same in names and f.name not in CONVERTED:
            _take(columns, f, rows[same])
    return Batch(in_order(columns), len(rows))


class ParquetFile(Indexed):
    """A Parquet file; its parts are its row groups."""

    def __init__(self, path: Path, fields: Sequence[str] | None = None) -> None:
        super().__init__(path, fields)
        try:
            self._file = pq.ParquetFile(path, page_checksum_verification=True)
            schema = self._file.schema_arrow
            self.metadata = _manifest(schema.metadata or {})
            exact = exact_columns(fields_of(self.metadata.get("settings", {})))
        except _DAMAGE as error:
            raise UserError(f"{path} is not a whole Parquet file ({_words(error)})") from None
        if not {"smile", "z", "pos", "energy"} <= set(schema.names):
            raise UserError(
                f"{path} lacks QM1B's columns smile, z, pos and energy; give a file of "
                "qm1b export or of QM1B"
            )
        self.lacking = [name for f, name in exact if name not in schema.names and f.earlier is None]
        """Columns without which not every field of the run can be read bit for bit; those that
        earlier versions did not have do not count."""

    def __reduce__(self) -> tuple[type[ParquetFile], tuple[Path, list[str] | None]]:
        """Pickled by its path, as a data loader's processes need it."""
        return type(self), (self.path, self.fields)

    @cached_property
    def sizes(self) -> list[int]:
        """Rows of each row group."""
        groups = self._file.metadata
        return [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]

    def part(self, number: int) -> Batch:
        """The rows of a row group."""
        try:
            rows = self._file.read_row_group(number, columns=self._columns())
            rows.validate(full=True)
            return self._only(batch_of(rows))
        except _DAMAGE as error:
            raise UserError(f"{self.path} is damaged ({_words(error)}); export it again") from None

    def _columns(self) -> list[str] | None:
        """The columns that may hold the wanted fields."""
        if self.fields is None:
            return None
        return [
            name
            for f in (*self.fields, *[PUBLISHED] * ("energy_std" in self.fields))
            for name in (f, _EXACT.get(f, f), RENAMED.get(f, f), CONVERTED.get(f, (f,))[0])
            if name in self._file.schema_arrow.names
        ]


def _arrow(values: np.ndarray, field: Field, batch: Batch) -> pa.Array:
    """The values of a field as an Arrow array; lists are made from flat values without a loop."""
    if not field.ragged and field.width == 1:
        return pa.array(values, arrow_type(field))
    rows = batch[f"{field.ragged}_offset"] if field.ragged else np.arange(len(values) + 1)
    return pa.ListArray.from_arrays((rows * field.width).astype(np.int32), values.ravel())


def _take(columns: dict[str, np.ndarray], field: Field, chunks: pa.ChunkedArray) -> None:
    """Put an Arrow column into the columns of a batch, with its offsets if it is ragged."""
    array = chunks.combine_chunks()
    if array.null_count and not pa.types.is_floating(array.type):  # pandas writes NaN as null
        raise ValueError(f"{field.name} is empty in {array.null_count} rows")
    flat = array.flatten() if field.ragged or field.width > 1 else array
    columns[field.name] = column(field, flat.to_numpy(zero_copy_only=False), len(chunks))
    if field.ragged:
        lengths = array.value_lengths().to_numpy(zero_copy_only=False) // field.width
        columns[f"{field.ragged}_offset"] = offsets_of(lengths)


def _manifest(metadata: dict[bytes, bytes]) -> Json:
    """The manifest and digests in an exact file, or the parts of a manifest in other files."""
    if b"manifest" in metadata:
        parts = {k: json.loads(metadata[k.encode()]) for k in WHOLE_KEYS if k.encode() in metadata}
        manifest = parts.pop("manifest")
        if not isinstance(manifest, dict):
            raise ValueError(f"its manifest is {str(manifest)[:40]!r}")
        return manifest | parts
    keys = [key for key in (*LEVEL_KEYS, FREE_ATOMS) if key.encode() in metadata]
    parts = {key: metadata[key.encode()].decode() for key in keys}
    return {key: json.loads(text) if text[:1] == "{" else text for key, text in parts.items()}


def _words(error: BaseException) -> str:
    """What an error says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__

"""Croissant metadata (JSON-LD, version 1.0) of exported Parquet files.

The format: M. Akhtar et al., "Croissant: A Metadata Format for ML-Ready Datasets", DEEM 2024,
doi:10.1145/3650203.3663326. `croissant_context.json` has the terms of
http://mlcommons.org/croissant/1.0.
"""

import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from qm1b.errors import UserError
from qm1b.report.card.facts import Statements

VERSION = "http://mlcommons.org/croissant/1.0"
CONTEXT = "croissant_context.json"


def croissant(
    tables: Mapping[str, Path], root: Path, said: Statements, description: str
) -> dict[str, object]:
    """The metadata of Parquet files for a `croissant.json`.

    Args:
        tables: files of `qm1b export` by the names of their record sets.
        root: the folder that their addresses are relative to.
        said: name and address of the dataset; its licence and creators, if they are stated.
        description: one or two sentences on the dataset.

    Raises:
        UserError: a file cannot be read.
    """
    of_files = {path.relative_to(root).as_posix(): path for path in tables.values()}
    record: dict[str, object] = {
        "@context": json.loads(
            files("qm1b.report.card").joinpath(CONTEXT).read_text(encoding="utf-8")
        ),
        "@type": "sc:Dataset",
        "name": said.name,
        "description": description,
        "conformsTo": VERSION,
        "url": said.url,
        "distribution": [_file_object(name, path) for name, path in of_files.items()],
        "recordSet": [
            _record_set(table, name, path)
            for table, (name, path) in zip(tables, of_files.items(), strict=True)
        ],
    }
    if said.license:
        record["license"] = said.license
    if said.creators:
        record["creator"] = [{"@type": "sc:Person", "name": creator} for creator in said.creators]
    return record


def _file_object(name: str, path: Path) -> dict[str, object]:
    try:
        with open(path, "rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error})") from None
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": digest,
    }


def described(path: Path) -> list[tuple[str, str, str]]:
    """Name, unit and meaning of each column of a Parquet file.

    Raises:
        UserError: the file cannot be read.
    """
    return [(column.name, *_unit_and_words(column)) for column in _schema(path)]


def _schema(path: Path) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path} is not a whole Parquet file ({error})") from None


def _unit_and_words(column: pa.Field) -> tuple[str, str]:
    metadata = {k.decode(): v.decode() for k, v in (column.metadata or {}).items()}
    return metadata.get("unit", "1"), metadata.get("description", column.name)


def _record_set(table: str, name: str, path: Path) -> dict[str, object]:
    schema = _schema(path)
    return {
        "@type": "cr:RecordSet",
        "@id": table,
        "name": table,
        "description": "One row for each conformer.",
        "field": [_field(column, table, name) for column in schema],
    }


def _field(column: pa.Field, table: str, file: str) -> dict[str, object]:
    unit, words = _unit_and_words(column)
    record: dict[str, object] = {
        "@type": "cr:Field",
        "@id": f"{table}/{column.name}",
        "name": column.name,
        "description": words if unit in ("1", "text") else f"{words}, in {unit}",
        "dataType": _data_type(column.type),
        "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
    }
    return record | {"repeated": True} if pa.types.is_list(column.type) else record


def _data_type(arrow: pa.DataType) -> str:
    if pa.types.is_list(arrow):
        return _data_type(arrow.value_type)
    if pa.types.is_boolean(arrow):
        return "sc:Boolean"
    if pa.types.is_integer(arrow):
        return "sc:Integer"
    return "sc:Float" if pa.types.is_floating(arrow) else "sc:Text"

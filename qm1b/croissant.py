"""Croissant metadata (JSON-LD, version 1.0) of an exported Parquet file.

The format: M. Akhtar et al., "Croissant: A Metadata Format for ML-Ready Datasets", DEEM 2024,
doi:10.1145/3650203.3663326; terms as in http://mlcommons.org/croissant/1.0.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .errors import UserError

VERSION = "http://mlcommons.org/croissant/1.0"

_TERMS = (
    *("column", "extract", "field", "fileObject", "fileProperty", "fileSet", "format", "includes"),
    *("isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references"),
    *("regex", "repeated", "replace", "separator", "source", "subField", "transform", "citeAs"),
)

_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in sorted(_TERMS)},
}


def croissant(
    parquet: Path, name: str, description: str, license: str, url: str, creators: list[str]
) -> dict[str, Any]:
    """The metadata of a Parquet file that lies beside `croissant.json`.

    Args:
        parquet: a file of `qm1b export`.
        name, description, url: of the dataset.
        license: its name or address; "" leaves it out.
        creators: names of people or organisations.

    Raises:
        UserError: the file cannot be read.
    """
    try:
        schema = pq.read_schema(parquet)
        digest = _sha256(parquet)
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{parquet} is not a whole Parquet file ({error}).") from None
    found: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": name,
        "description": description,
        "conformsTo": VERSION,
        "url": url,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": parquet.name,
                "name": parquet.name,
                "contentUrl": parquet.name,
                "contentSize": f"{parquet.stat().st_size} B",
                "encodingFormat": "application/x-parquet",
                "sha256": digest,
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "rows",
                "name": "rows",
                "description": "One row for each conformer.",
                "field": [_field(column, parquet.name) for column in schema],
            }
        ],
    }
    if license:
        found["license"] = license
    if creators:
        found["creator"] = [{"@type": "sc:Person", "name": creator} for creator in creators]
    return found


def _field(column: pa.Field, file: str) -> dict[str, Any]:
    metadata = {k.decode(): v.decode() for k, v in (column.metadata or {}).items()}
    unit = metadata.get("unit", "1")
    words = metadata.get("description", column.name)
    found = {
        "@type": "cr:Field",
        "@id": f"rows/{column.name}",
        "name": column.name,
        "description": words if unit in ("1", "text") else f"{words}, in {unit}",
        "dataType": _data_type(column.type),
        "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
    }
    return found | {"repeated": True} if pa.types.is_list(column.type) else found


def _data_type(arrow: pa.DataType) -> str:
    if pa.types.is_list(arrow):
        return _data_type(arrow.value_type)
    if pa.types.is_boolean(arrow):
        return "sc:Boolean"
    if pa.types.is_integer(arrow):
        return "sc:Integer"
    return "sc:Float" if pa.types.is_floating(arrow) else "sc:Text"


def _sha256(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

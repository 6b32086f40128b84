"""The way back: an exported file that holds everything becomes the folder that it came from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any

from . import store
from .batch import Record, missing
from .errors import UserError
from .export import DIFFERING
from .formats import dropped
from .formats.parquet import ParquetFile
from .manifest import LEVEL_KEYS
from .reading import Dataset, Folder, load
from .schema import Conformer, Drop, Result, Row

_CONFORMER = [f.name for f in fields(Conformer)]
_RESULT = [f.name for f in fields(Result)]
_TUPLES = "dipole", "reference_dipole", "mo_energy", "mulliken_charges"


@dataclass
class Imported:
    """What an import wrote."""

    rows: int = 0
    drops: int = 0
    shards: int = 0


def import_file(path: Path, out: Path) -> Imported:
    """Make the dataset folder of which `path` is an export with everything.

    Args:
        path: a `.parquet`, `.extxyz` or `.extxyz.gz` file of `qm1b export --all`, beside the files
            written with it.
        out: the new folder.

    Raises:
        UserError: the file does not hold everything, is damaged, or `out` exists and is not empty.
    """
    source = load(path)
    manifest = _checked(source)
    own = _own_attributes(manifest.pop(DIFFERING, []))
    drops = defaultdict[int, list[Drop]](list)
    for drop in dropped.read(dropped.beside(path)):
        drops[_unit(drop.line, manifest)].append(drop)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} exists and is not an empty folder; give another --out.")
    out.mkdir(parents=True, exist_ok=True)
    done = Imported(drops=sum(map(len, drops.values())))
    written = set[int]()
    for unit, records in groupby(_records(source), lambda r: _unit(r["line"], manifest)):
        if unit in written:
            raise UserError(f"{path} is not in the order of its input; export it again.")
        rows = [_row(record) for record in records]
        _write(out, unit, rows, drops.get(unit, []), manifest | own.get(unit, {}))
        written.add(unit)
        done.rows += len(rows)
    for unit in drops.keys() - written:  # whose lines were all dropped
        _write(out, unit, [], drops[unit], manifest | own.get(unit, {}))
    done.shards = len(drops.keys() | written)
    store.write_dropped(out, (drop for unit in sorted(drops) for drop in drops[unit]))
    store.write_manifest(out, manifest)
    return done


def _checked(source: Dataset) -> dict[str, Any]:
    """The manifest of a file that holds everything; refuses any other."""
    again = "write it with qm1b export --all"
    if isinstance(source, Folder):
        raise UserError(f"{source.path} is a folder already; give an exported file.")
    lacking = [key for key in (*LEVEL_KEYS, "unit_lines") if key not in source.metadata]
    if lacking:
        raise UserError(f"{source.path} comes without its run's manifest ({lacking[0]}); {again}.")
    if isinstance(source, ParquetFile) and not source.exact:
        raise UserError(f"{source.path} has no exact columns; {again}.")
    if not dropped.beside(source.path).exists():
        raise UserError(f"{dropped.beside(source.path)} is missing; put it there, or {again}.")
    return source.metadata


def _own_attributes(entries: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """By unit, what its shard says otherwise than the manifest."""
    return {
        unit: {key: value for key, value in entry.items() if key != "units"}
        for entry in entries
        for unit in entry["units"]
    }


def _records(source: Dataset) -> Iterator[Record]:
    """All rows; refuses a file that lacks a field."""
    for batch in source.batches():
        lacking = missing(batch)
        if lacking:
            raise UserError(
                f"{source.path} does not hold {', '.join(lacking)}; write it with "
                "qm1b export --all."
            )
        yield from batch.rows()


def _write(
    out: Path, unit: int, rows: list[Row], drops: list[Drop], manifest: dict[str, Any]
) -> None:
    """One shard, with the attributes that the generator gives it."""
    attributes = {key: manifest[key] for key in LEVEL_KEYS} | manifest["settings"]
    attributes["unit"] = unit
    store.write_shard(out, unit, rows, drops, attributes)


def _unit(line: int, manifest: dict[str, Any]) -> int:
    return (line - 1) // manifest["unit_lines"]


def _row(record: Record) -> Row:
    values = {name: record[name] for name in _RESULT}
    values |= {name: tuple(values[name].tolist()) for name in _TUPLES}
    conformer = {name: record[name] for name in _CONFORMER}
    return Row(Conformer(**conformer), Result(**values))

"""The way back: an exported file that holds everything becomes the folder that it came from."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from . import store
from .batch import Record, missing
from .completeness import COMPLETE, plan_of
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


Drops = dict[int, list[Drop]]
"""Dropped lines by unit."""


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
        UserError: the file does not hold everything, is damaged, was shortened or does not go with
            the files beside it, or `out` exists and is not empty or cannot be written.
    """
    source = load(path)
    manifest = _checked(source)
    own = _own_attributes(manifest.pop(DIFFERING, []))
    drops: defaultdict[int, list[Drop]] = defaultdict(list)
    for drop in dropped.read(dropped.beside(path)):
        drops[_unit(drop.line, manifest)].append(drop)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} exists and is not an empty folder; give another --out.")
    with _arriving(out) as folder:
        done = _fill(folder, source, manifest, drops, own)
        _must_be_all(path, manifest, done, drops)
        store.write_dropped(folder, (drop for unit in sorted(drops) for drop in drops[unit]))
        store.write_manifest(folder, manifest)
    return done


@contextmanager
def _arriving(out: Path) -> Iterator[Path]:
    """A folder within `out` whose files come to lie in `out` at the end of the block. If the block
    fails, nothing of them is left: shards that look whole would never be computed again."""
    existed = out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        temporary = TemporaryDirectory(prefix=".import-", dir=out)
    except OSError as error:
        raise UserError(
            f"folder {out} cannot be written ({error.strerror}); give another --out."
        ) from None
    try:
        with temporary as name:
            yield Path(name)
            # The manifest last: without it, it is not a dataset.
            for path in sorted(Path(name).iterdir(), key=lambda p: p.name == store.MANIFEST):
                os.replace(path, out / path.name)
    except BaseException:
        if not existed:
            with suppress(OSError):
                out.rmdir()
        raise


def _fill(
    out: Path,
    source: Dataset,
    manifest: Mapping[str, Any],
    drops: Drops,
    own: Mapping[int, Mapping[str, Any]],
) -> Imported:
    """Write the shard of every unit that has rows or dropped lines."""
    plan, written, n_rows = plan_of(manifest), set[int](), 0
    for unit, rows in _units(source, manifest, drops):
        if unit in written:
            raise UserError(f"{source.path} is not in the order of its input; export it again.")
        dropped_here = drops.get(unit, [])
        lines = {row.conformer.line for row in rows} | {drop.line for drop in dropped_here}
        if len(lines) < (needed := plan.lines_of(unit)):
            what = f"lines of unit {unit}: {len(lines)} instead of {needed}"
            raise _shortened(source.path, what)
        _write(out, unit, rows, dropped_here, {**manifest, **own.get(unit, {})})
        written.add(unit)
        n_rows += len(rows)
    return Imported(n_rows, sum(map(len, drops.values())), len(written))


def _units(
    source: Dataset, manifest: Mapping[str, Any], drops: Drops
) -> Iterator[tuple[int, list[Row]]]:
    """The rows of each unit in the order of the file, then the units that have only drops."""
    left = set(drops)
    for unit, records in groupby(_records(source), lambda r: _unit(r["line"], manifest)):
        yield unit, [_row(record) for record in records]
        left.discard(unit)
    for unit in sorted(left):
        yield unit, []


def _must_be_all(path: Path, manifest: Mapping[str, Any], done: Imported, drops: Drops) -> None:
    """Compare with what the manifest counts. That of a run which was killed may be behind its
    shards, so that only of a complete run more than it counts is a fault."""
    counts = manifest.get("counts")
    if counts is None:
        return
    said = {"units": counts["units"], "rows": counts["rows"]}
    said |= {f"lines dropped as {reason}": n for reason, n in counts["dropped"].items()}
    reasons = Counter(f"lines dropped as {drop.reason}" for each in drops.values() for drop in each)
    found = {"units": done.shards, "rows": done.rows, **reasons}
    complete = manifest.get("status") == COMPLETE
    for what in said | found:
        here, there = found.get(what, 0), said.get(what, 0)
        if here < there or (complete and here != there):
            raise _shortened(path, f"{what}: {here} instead of {there}")


def _shortened(path: Path, what: str) -> UserError:
    return UserError(
        f"{path} and the files beside it do not hold all of their run ({what}): one of them was "
        "changed, or is of another export; write them again with qm1b export --all."
    )


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
    out: Path, unit: int, rows: list[Row], drops: list[Drop], manifest: Mapping[str, Any]
) -> None:
    """One shard, with the attributes that the generator gives it."""
    attributes = {key: manifest[key] for key in LEVEL_KEYS} | manifest["settings"]
    attributes["unit"] = unit
    store.write_shard(out, unit, rows, drops, attributes)


def _unit(line: int, manifest: Mapping[str, Any]) -> int:
    return (line - 1) // manifest["unit_lines"]


def _row(record: Record) -> Row:
    values = {name: record[name] for name in _RESULT}
    values |= {name: tuple(values[name].tolist()) for name in _TUPLES}
    conformer = {name: record[name] for name in _CONFORMER}
    return Row(Conformer(**conformer), Result(**values))

"""Whether two folders or shards hold the same data, value by value; used by merge and by trials."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from . import manifest, store


def same_unit(first: Path, second: Path) -> bool:
    """Whether two shards hold the same rows and dropped lines, bit for bit; NaN equals NaN."""
    return not list(_unit_differences(first, second))


def differences(first: Path, second: Path) -> list[str]:
    """How two complete datasets differ, one sentence each; nothing if they are the same.

    Compared are the rows and dropped lines of every shard, dropped.csv, and what the manifests say
    of settings, input, status and counts; not times, and not the names of the input files.
    """
    return list(_folder_differences(first, second))


def _folder_differences(first: Path, second: Path) -> Iterator[str]:
    ours, theirs = ({p.name: p for p in store.shards(folder)} for folder in (first, second))
    if ours.keys() != theirs.keys():
        yield f"shards in one of them only: {', '.join(sorted(ours.keys() ^ theirs.keys()))}"
    for name in sorted(ours.keys() & theirs.keys()):
        yield from (f"{name}: {what}" for what in _unit_differences(ours[name], theirs[name]))
    if _dropped(first) != _dropped(second):
        yield f"{store.DROPPED} differs"
    there, here = store.read_manifest(first), store.read_manifest(second)
    yield from (f"{name}: {a} and {b}" for name, a, b in manifest.differences(there, here))
    for key in ("status", "counts"):
        if there[key] != here[key]:
            yield f"{key}: {there[key]} and {here[key]}"


def _unit_differences(first: Path, second: Path) -> Iterator[str]:
    (_, rows, drops), (_, other_rows, other_drops) = map(store.read_whole, (first, second))
    yield from (f"{name} differs" for name in rows if not _same(rows[name], other_rows[name]))
    if drops != other_drops:
        yield "dropped lines differ"


def _same(a: Any, b: Any) -> bool:
    """Bit for bit for numbers: one quiet NaN is as good as another, but -0 is not 0."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "f":
        numbers = ~np.isnan(a)
        return bool(
            np.array_equal(numbers, ~np.isnan(b)) and a[numbers].tobytes() == b[numbers].tobytes()
        )
    return bool(np.array_equal(a, b))


def _dropped(folder: Path) -> list[list[str]]:
    with open(folder / store.DROPPED, newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))

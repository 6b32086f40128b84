"""Whether two folders or shards hold the same data, value by value; used by merge and by trials."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from qm1b.folder import shards
from qm1b.folder.manifest import manifest
from qm1b.reference.atomisation import TOLERANCE_HARTREE
from qm1b.rows import dropped


def same_unit(first: Path, second: Path) -> bool:
    """Whether two shards hold the same rows and dropped lines, bit for bit; NaN equals NaN.

    Only atomisation energies may differ, by as much as machines round free atoms differently.
    """
    return not list(_unit_differences(first, second))


def differences(first: Path, second: Path) -> list[str]:
    """How two complete datasets differ, one sentence each; nothing if they are the same.

    Compared are the rows and dropped lines of every shard, dropped.csv, and what the manifests say
    of settings, input, status and counts; not times, and not the names of the input files.
    """
    return list(_folder_differences(first, second))


def _folder_differences(first: Path, second: Path) -> Iterator[str]:
    ours, theirs = ({p.name: p for p in shards.shards(folder)} for folder in (first, second))
    if ours.keys() != theirs.keys():
        yield f"shards in one of them only: {', '.join(sorted(ours.keys() ^ theirs.keys()))}"
    for name in sorted(ours.keys() & theirs.keys()):
        yield from (f"{name}: {what}" for what in _unit_differences(ours[name], theirs[name]))
    if list(dropped.read(first / shards.DROPPED)) != list(dropped.read(second / shards.DROPPED)):
        yield f"{shards.DROPPED} differs"
    a, b = shards.read_manifest(first), shards.read_manifest(second)
    yield from (f"{name}: {of_a} and {of_b}" for name, of_a, of_b in manifest.differences(a, b))
    if a.status != b.status:
        yield f"status: {a.status} and {b.status}"
    if a.counts != b.counts:
        yield f"counts: {a.counts.to_dict()} and {b.counts.to_dict()}"


def _unit_differences(first: Path, second: Path) -> Iterator[str]:
    (_, rows, drops), (_, other_rows, other_drops) = map(shards.read_whole, (first, second))
    for name in {**rows.columns, **other_rows.columns}:
        if name not in rows or name not in other_rows:
            yield f"{name} is in one of them only"
        elif not _same(rows[name], other_rows[name]):
            by = _largest_difference(rows[name], other_rows[name])
            if name != "atomisation_energy" or by is None or not by <= TOLERANCE_HARTREE:
                yield f"{name} differs" + ("" if by is None else f" by up to {by:.2g}")
    if drops != other_drops:
        yield "dropped lines differ"


def _largest_difference(a: np.ndarray, b: np.ndarray) -> float | None:
    """Between numbers of one shape; NaN if only one of a pair is NaN. None of anything else."""
    if a.shape != b.shape or a.dtype.kind != "f" or b.dtype.kind != "f":
        return None
    apart = np.abs(a - b)[~(np.isnan(a) & np.isnan(b))]
    return float(apart.max(initial=0.0))


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Bit for bit for numbers: one quiet NaN is as good as another, but -0 is not 0."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "f":
        numbers = ~np.isnan(a)
        return bool(
            np.array_equal(numbers, ~np.isnan(b)) and a[numbers].tobytes() == b[numbers].tobytes()
        )
    return bool(np.array_equal(a, b))

"""Whether a folder holds the shards that its manifest says there must be.

A shard that was lost leaves no trace among those that are left; only the manifest knows of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from . import store
from .errors import UserError
from .reading import Folder
from .units import Plan, Share

COMPLETE = "complete"
SHOWN = 8
"""Ranges of units that a message names."""


def plan_of(manifest: Mapping[str, Any]) -> Plan:
    """The work units that a run, or its share, ends with."""
    n_lines, limit = manifest["input"]["lines"], manifest["settings"]["limit"]
    share = Share.parse(manifest["shard"])
    return Plan(min(n_lines, limit or n_lines), manifest["unit_lines"], share)


def missing_units(manifest: Mapping[str, Any], there: Iterable[int]) -> list[int]:
    """Units that a complete run has, and that are not there."""
    found = set(there)
    return [unit for unit in plan_of(manifest).units if unit not in found]


def notice(source: Folder) -> str:
    """What somebody who uses the rows of a folder must know: that the run is not at its end.

    Returns:
        A sentence, or "" for a complete run.

    Raises:
        UserError: a shard that was written is gone, or one is not of this run.
    """
    manifest, there = source.metadata, [store.unit_of(path) for path in source.shards]
    units = plan_of(manifest).units
    strange = [p.name for p, unit in zip(source.shards, there, strict=True) if unit not in units]
    if strange:
        raise UserError(f"{strange[0]} in {source.path} is not of its run; move it elsewhere.")
    missing, status = missing_units(manifest, there), manifest["status"]
    lost = len(missing) if status == COMPLETE else manifest["counts"]["units"] - len(there)
    if lost > 0:
        raise UserError(
            f"folder {source.path} has lost {lost} of the shards that were written (units "
            f"{ranges(missing)} are not there); run its qm1b generate again, which computes what "
            "is missing."
        )
    if status == COMPLETE:
        return ""
    return (
        f"the run in {source.path} is not complete but {status}: {len(there)} of {len(units)} work "
        f"units are there{f', not {ranges(missing)}' if missing else ''}."
    )


def ranges(units: Iterable[int]) -> str:
    """3, 5 to 7 and so on."""
    runs = [
        [unit for _, unit in group]
        for _, group in groupby(enumerate(units), lambda pair: pair[1] - pair[0])
    ]
    shown = [str(r[0]) if len(r) == 1 else f"{r[0]} to {r[-1]}" for r in runs[:SHOWN]]
    return ", ".join([*shown, "..."] if len(runs) > SHOWN else shown)

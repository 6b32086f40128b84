"""Whether a folder holds the shards that its manifest asks for, and no others.

A lost shard leaves no trace among the others; only the manifest shows that it is missing.
"""

from collections.abc import Iterable
from itertools import groupby, islice
from pathlib import Path

from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.folder.manifest import manifest
from qm1b.folder.manifest.manifest import Difference, Manifest
from qm1b.folder.manifest.manifest_schema import COMPLETE
from qm1b.folder.shard_folder import ShardFolder
from qm1b.rows.schema import Json

SHOWN = 8
"""Ranges of units that a message names."""
MOST = 1_000_000
"""Units that are looked at: a manifest without shards may say anything."""


def notice(source: ShardFolder) -> str:
    """A warning for those who use the rows of a folder, if its run is not complete.

    Returns:
        A sentence without a full stop, or "" for a complete run.

    Raises:
        UserError: a shard that was written is gone, or one is not of this run, or says something
            else than the manifest.
    """
    source.check()
    run, there = source.manifest, [shards.unit_of(path) for path in source.shards]
    units, status = run.plan.units, source.status
    strange = [p.name for p, unit in zip(source.shards, there, strict=True) if unit not in units]
    if strange:
        raise UserError(
            f"{strange[0]} in {source.path} is not of its run, by the manifest (unit_lines "
            f"{run.unit_lines}, shard {run.shard} of {run.plan.n_lines} lines); move it elsewhere, "
            "or run its qm1b generate again, which writes a new manifest"
        )
    missing = run.missing(there)
    lost = missing.count if status == COMPLETE else run.counts.units - len(there)
    if lost > 0:
        raise UserError(
            f"folder {source.path} has lost {lost} of the shards that were written (units "
            f"{ranges(missing.units)} are missing); run the same qm1b generate again to compute "
            "them"
        )
    if status == COMPLETE:
        return ""
    absent = f" (missing: {ranges(missing.units)})" if missing.count else ""
    return (
        f"the run in {source.path} is not complete but {status}: {len(there)} of {len(units)} work "
        f"units are there{absent}"
    )


def ranges(units: Iterable[int]) -> str:
    """3, 5 to 7 and so on."""
    runs = [
        [unit for _, unit in group]
        for _, group in groupby(enumerate(islice(units, MOST)), lambda pair: pair[1] - pair[0])
    ]
    shown = [str(r[0]) if len(r) == 1 else f"{r[0]} to {r[-1]}" for r in runs[:SHOWN]]
    return ", ".join([*shown, "..."] if len(runs) > SHOWN else shown)


def must_belong(
    run: Manifest, path: Path, unit: int, attributes: Json, lines: Iterable[int]
) -> None:
    """Refuse a good shard of another run: somebody put it there, and it is not ours to remove."""
    if manifest.contradiction(run, unit, attributes, lines=lines):
        raise stranger(path)


def stranger(path: Path) -> UserError:
    """What to say of a shard that is not of the run."""
    return UserError(
        f"shard {path} belongs to another run, share or work unit; move it out of the folder, or "
        "give another --out"
    )


def other_software(path: Path, differences: list[Difference]) -> UserError:
    """What to say of a shard that other software computed."""
    return UserError(
        f"shard {path} was computed with other software versions, which may give other rows; "
        "install those versions, give another --out, or accept a mixture with "
        f"--allow-other-versions:\n{manifest.table(differences)}"
    )

"""Several folders of one run (`--shard i/n`) as one, the same as if a single run had filled it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import folder, identical, manifest, store
from .completeness import plan_of, ranges
from .errors import UserError
from .folder import Folder
from .tally import Tally
from .units import WHOLE, Plan


@dataclass(frozen=True)
class Merged:
    """What a merge made."""

    tally: Tally
    copied: int
    """Shards that were copied now; the others were there from a merge that was stopped."""


def merge(folders: Sequence[Path], out: Path, other_versions: bool = False) -> Merged:
    """Join folders that hold the parts of one run into `out`.

    Every shard is compared with its checksum before it is copied. A unit that lies in several
    folders must be the same in all of them. A merge that was stopped is gone on with.

    Args:
        folders: of `qm1b generate`, with the same input and settings.
        out: a new folder, or that of a merge that was stopped; may contain the parts' folders.
        other_versions: join parts that different software computed.

    Raises:
        UserError: the folders are not parts of one run, a unit is missing, damaged, or not the
            same in two of them, or `out` cannot be used.
    """
    if out.resolve() in {path.resolve() for path in folders}:
        raise UserError(f"--out {out} is one of the folders to merge; give another.")
    manifests = [store.read_manifest(path) for path in folders]
    identity = _common(folders, manifests, other_versions)
    plan = plan_of(identity)
    paths = _units(folders, plan)
    _must_be_complete(plan, paths)
    with folder.opened(out, identity, plan, other_versions) as whole:
        whole.earlier = sorted(_runs(manifests), key=lambda run: str(run.get("started")))
        this_run = {"started": folder.started_now(), "rows": 0, "merged": len(folders)}
        whole.write_manifest("running", this_run)
        missing = whole.missing
        for unit in missing:
            _adopt(whole, unit, paths[unit], other_versions)
        whole.write_dropped()
        whole.write_manifest("complete", this_run)
        return Merged(whole.tally, len(missing))


def _common(
    folders: Sequence[Path], manifests: Sequence[Mapping[str, Any]], other_versions: bool
) -> dict[str, Any]:
    """The run that all folders are parts of."""
    keys = ("schema", *manifest.LEVEL_KEYS, "unit_lines")
    first, *others = ({**each, "shard": str(WHOLE)} for each in manifests)
    for path, other in zip(folders[1:], others, strict=True):
        found = manifest.differences(first, other)
        if not other_versions:
            found += manifest.other_versions(first, other)
        if found:
            raise UserError(
                f"folders {folders[0]} and {path} are not parts of one run; merge only folders of "
                "the same input, settings and software (the last: or --allow-other-versions):\n"
                f"{manifest.table(found)}"
            )
    return {key: first[key] for key in (*keys, "shard")}


def _units(folders: Iterable[Path], plan: Plan) -> dict[int, list[Path]]:
    """The shards of each unit."""
    found: dict[int, list[Path]] = {}
    for path in (shard for each in folders for shard in store.shards(each)):
        if store.unit_of(path) not in plan.units:
            raise UserError(f"shard {path} belongs to another run; move it out of the folder.")
        found.setdefault(store.unit_of(path), []).append(path)
    return found


def _must_be_complete(plan: Plan, paths: Mapping[int, object]) -> None:
    missing = [unit for unit in plan.units if unit not in paths]
    if missing:
        raise UserError(
            f"{len(missing)} of {len(plan.units)} work units are in none of the folders "
            f"({ranges(missing)}); run their qm1b generate --shard to the end, then merge again."
        )


def _runs(manifests: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    for each in manifests:
        yield from ({"shard": each["shard"], **run} for run in each.get("runs", []))


def _adopt(whole: Folder, unit: int, paths: Sequence[Path], other_versions: bool) -> None:
    for other in paths[1:]:
        if not identical.same_unit(paths[0], other):
            raise UserError(
                f"shards {paths[0]} and {other} differ: the same unit was computed on machines or "
                "with versions that round differently; leave one of the folders out."
            )
    whole.adopt(unit, paths[0], other_versions)

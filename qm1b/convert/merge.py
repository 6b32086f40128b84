"""The folders of a run's shares (`--shard i/n`) as one, as if a single run had filled it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from qm1b.errors import UserError
from qm1b.folder import run_folder, same, shards
from qm1b.folder.completeness import ranges
from qm1b.folder.manifest import manifest
from qm1b.folder.manifest.manifest import Difference, Manifest
from qm1b.folder.manifest.manifest_schema import COMPLETE, RUNNING
from qm1b.folder.manifest.tally import Tally
from qm1b.folder.manifest.work_units import WHOLE, WorkPlan
from qm1b.folder.run_folder import LockedFolder
from qm1b.folder.shard_folder import ShardFolder


@dataclass(frozen=True)
class Merged:
    """The result of a merge."""

    tally: Tally
    copied: int
    """Shards copied now; the others are from an interrupted merge."""
    mixed: list[Difference]
    """Where the software that computed shards differs from that of the first folder."""


def merge(folders: Sequence[Path], out: Path, other_versions: bool = False) -> Merged:
    """Join folders that hold the parts of one run into `out`; resumes an interrupted merge.

    Every shard is compared with its checksum before it is copied. A unit in several folders must be
    the same in all of them.

    Args:
        folders: of `qm1b generate`, with the same input and settings.
        out: a new folder, or that of an interrupted merge; it may contain the parts' folders.
        other_versions: join parts that different software computed.

    Raises:
        UserError: the folders are not parts of one run, a unit is missing, damaged, or not the
            same in two of them, or `out` cannot be used.
    """
    if out.resolve() in {path.resolve() for path in folders}:
        raise UserError(f"--out {out} is one of the folders to merge; give another")
    manifests = [_manifest(path) for path in folders]
    identity = _common(folders, manifests, other_versions)
    paths = _units(folders, identity.plan)
    runs = [{"shard": each.shard, **run} for each in manifests for run in each.runs]
    with run_folder.opened(out, identity, other_versions) as whole:
        whole.earlier = sorted(runs, key=lambda run: str(run.get("started")))
        this_run = {"started": run_folder.started_now(), "rows": 0, "merged": len(folders)}
        whole.write_manifest(RUNNING, this_run)
        missing = whole.missing
        for unit in missing:
            _adopt(whole, unit, paths[unit], other_versions=other_versions)
        if whole.mended:
            raise UserError(f"{whole.mended}; run the qm1b generate of each folder again")
        whole.write_dropped()
        whole.write_manifest(COMPLETE, this_run)
        return Merged(whole.tally, len(missing), [*whole.mixed])


def _manifest(folder: Path) -> Manifest:
    """The manifest of a part, which its first shard agrees with."""
    source = ShardFolder(folder)
    source.check()
    return source.manifest


def _common(
    folders: Sequence[Path], manifests: Sequence[Manifest], other_versions: bool
) -> Manifest:
    """The run that all folders are parts of."""
    first, *others = (replace(each, shard=str(WHOLE)) for each in manifests)
    for path, other in zip(folders[1:], others, strict=True):
        differing = manifest.differences(first, other)
        if not other_versions:
            differing += manifest.other_versions(first.versions, other.versions)
        if differing:
            raise UserError(
                f"folders {folders[0]} and {path} are not parts of one run; merge only folders of "
                "the same input, settings and software (the last: or --allow-other-versions):\n"
                f"{manifest.table(differing)}"
            )
    known: dict[str, float] = {}
    for each in reversed(manifests):  # where they differ in the last digit, the first one's
        known |= each.free_atom_energies_hartree
    return replace(first, free_atom_energies_hartree=known)


def _units(folders: Iterable[Path], plan: WorkPlan) -> dict[int, list[Path]]:
    """The shards of each unit; refuses folders that lack a unit."""
    paths = defaultdict[int, list[Path]](list)
    for path in (shard for each in folders for shard in shards.shards(each)):
        if shards.unit_of(path) not in plan.units:
            raise UserError(f"shard {path} belongs to another run; move it out of the folder")
        paths[shards.unit_of(path)].append(path)
    missing = [unit for unit in plan.units if unit not in paths]
    if missing:
        raise UserError(
            f"{len(missing)} of {len(plan.units)} work units are in none of the folders "
            f"({ranges(missing)}); run their qm1b generate --shard to the end, then merge again"
        )
    return paths


def _adopt(whole: LockedFolder, unit: int, paths: Sequence[Path], other_versions: bool) -> None:
    for other in paths[1:]:
        if not same.same_unit(paths[0], other):
            raise UserError(
                f"shards {paths[0]} and {other} differ: the same unit was computed on machines or "
                "with versions that round differently; leave one of the folders out"
            )
    whole.adopt(unit, paths[0], other_versions)

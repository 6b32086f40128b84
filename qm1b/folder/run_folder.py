"""The output folder of a run: locked, compared with the run, checked shard by shard, and filled.

However an earlier run ended, it left whole shards: those that pass their checksum are kept, the
others are computed again, and everything else (the counts, dropped.csv) is made from the shards.
"""

import itertools
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from qm1b.errors import UserError
from qm1b.folder import checksum, manifest, shards
from qm1b.folder.manifest import Manifest
from qm1b.folder.tally import Tally
from qm1b.inputs.detect import SMILES
from qm1b.manifest_schema import RUNNING
from qm1b.process import files
from qm1b.process.lock import locked
from qm1b.rows import identity as rows_identity
from qm1b.rows.batch import Batch
from qm1b.rows.schema import Conformer, Json
from qm1b.rows.unit import Unit
from qm1b.work_units import WorkPlan


@dataclass
class RunFolder:
    """A locked folder and its content. Make one with `opened`."""

    path: Path
    identity: Manifest
    """The run that fills it."""
    plan: WorkPlan
    """The units that should end here."""
    tally: Tally = field(default_factory=Tally)
    done: set[int] = field(default_factory=set)
    """Units whose shard is there and good."""
    damaged: list[str] = field(default_factory=list)
    """Names of shards that were found damaged, and removed."""
    mended: str = ""
    """What was wrong with the manifest, if a new one takes its place."""
    earlier: list[Json] = field(default_factory=list)
    """The manifest's records of the runs before this one."""

    @property
    def missing(self) -> list[int]:
        """Units that are still to be computed."""
        return [unit for unit in self.plan.units if unit not in self.done]

    def add(self, unit: Unit, versions: Mapping[str, str] | None = None) -> None:
        """Write a finished unit: its shard first, which is what counts, then dropped.csv.

        Args:
            unit: the unit.
            versions: those of the machine that computed it, if it was another.

        Raises:
            UserError: the disk is full or not writable.
        """
        told = self.identity if versions is None else replace(self.identity, versions=versions)
        attributes = manifest.shard_attributes(told.to_dict(), unit.index)
        shards.write_shard(self.path, unit.index, unit.rows, unit.drops, attributes)
        self.done.add(unit.index)
        self.tally.add_unit(unit, self.plan.lines_of(unit.index))
        self.tally.add_molecules(_molecule(row.conformer) for row in unit.rows)
        shards.append_dropped(self.path, unit.drops)

    def adopt(self, unit: int, path: Path, other_versions: bool = False) -> None:
        """Copy a shard of the same run from elsewhere.

        Raises:
            Damaged: it is not what was written.
            UserError: it is not of this run, or the disk is full or not writable.
        """
        _count(self, path, unit, other_versions)
        data = path.read_bytes()
        files.atomic_write(shards.shard_path(self.path, unit), lambda stream: stream.write(data))

    def write_dropped(self) -> None:
        """Write dropped.csv in the order of the input, from the shards."""
        paths = (shards.shard_path(self.path, unit) for unit in sorted(self.done))
        drops = itertools.chain.from_iterable(map(shards.read_drops, paths))
        shards.write_drops(self.path / shards.DROPPED, drops)

    def write_manifest(self, status: str, this_run: Json) -> None:
        """Write the manifest: what the run is, what is here, and how each run went."""
        runs = [*self.earlier, {**this_run, "status": status}]
        whole = replace(self.identity, status=status, counts=self.tally, runs=runs)
        shards.write_manifest(self.path, whole)


@contextmanager
def opened(path: Path, identity: Manifest, other_versions: bool = False) -> Iterator[RunFolder]:
    """A folder that this run may fill, locked inside the block; made if it does not exist.

    Args:
        path: the folder.
        identity: the run.
        other_versions: resume with shards that other software computed.

    Yields:
        The folder, with its good shards counted and its damaged ones removed.

    Raises:
        UserError: it cannot be written, another run is using it, or it holds another run.
    """
    files.make_folder(path)
    with locked(path):
        shards.clean(path)
        there, wrong = _earlier_manifest(path)
        is_smiles = identity.settings["input_format"] in SMILES
        folder = RunFolder(path, identity, identity.plan, Tally(lines_are_molecules=is_smiles))
        folder.mended = wrong
        if there is not None:
            _must_agree(path, there, identity)
            folder.earlier = [_ended(run) for run in there.runs]
        _survey(folder, other_versions)
        yield folder


def started_now() -> str:
    """The time, for the manifest: ISO 8601, UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _earlier_manifest(path: Path) -> tuple[Manifest | None, str]:
    """The manifest of a folder with shards, or what is wrong with it.

    Without a shard there is nothing to lose, so a run that failed or was stopped at once does not
    count. Without a good manifest, the shards are compared with the run, and a new one is written.
    """
    found = shards.shards(path)
    if not found:
        return None, ""
    try:
        there = shards.read_manifest(path)
    except UserError as error:
        return None, str(error) if (path / shards.MANIFEST).exists() else ""
    for shard in found:
        if shards.unit_of(shard) not in there.plan.units:
            return None, f"{shard.name} is none of the units in the manifest"
        try:
            attributes = shards.read_attributes(shard)
        except checksum.Damaged:
            continue  # it will be computed again
        if wrong := manifest.contradiction(there, shards.unit_of(shard), attributes, ()):
            return None, f"the manifest contradicts {shard.name}: in the manifest {wrong}"
    return there, ""


def _must_agree(path: Path, there: Manifest, here: Manifest) -> None:
    found = manifest.differences(there, here)
    if found:
        raise UserError(
            f"folder {path} holds another run; give another --out, or the same input and "
            "settings as there:\n"
            f"{manifest.table(found)}"
        )


def _ended(run: Json) -> Json:
    """The record of an earlier run, which did not write its end if it was killed."""
    return run | {"status": "killed"} if run.get("status") == RUNNING else run


def _survey(folder: RunFolder, other_versions: bool) -> None:
    """Check and count every shard; remove those that are damaged."""
    for path in shards.shards(folder.path):
        unit = shards.unit_of(path)
        if unit not in folder.plan.units:
            raise _stranger(path)
        try:
            _count(folder, path, unit, other_versions)
        except checksum.Damaged:
            folder.damaged.append(path.name)
            path.unlink()


def _count(folder: RunFolder, path: Path, unit: int, other_versions: bool) -> None:
    """Check a shard of `unit` and count what is in it."""
    attributes, rows, drops = shards.read_whole(path)
    if manifest.contradiction(folder.identity, unit, attributes, rows["line"].tolist()):
        # Somebody put a good shard of another run there, and it is not ours to remove.
        raise _stranger(path)
    if not other_versions:
        _same_software(folder, path, attributes)
    folder.done.add(unit)
    folder.tally.add(
        folder.plan.lines_of(unit),
        rows["line"].tolist(),
        rows["status"].tolist(),
        (drop.reason for drop in drops),
    )
    folder.tally.add_molecules(rows_identity.numbers(Batch(rows)).tolist())


def _molecule(conformer: Conformer) -> tuple[str, int]:
    return rows_identity.name_of(conformer.smiles, conformer.seed), conformer.charge


def _stranger(path: Path) -> UserError:
    return UserError(
        f"shard {path} belongs to another run, share or work unit; move it out of the "
        "folder, or give another --out"
    )


def _same_software(folder: RunFolder, path: Path, attributes: Json) -> None:
    there = json.loads(attributes.get("versions", "{}"))
    found = manifest.other_versions(there, folder.identity.versions)
    if found:
        raise UserError(
            f"shard {path} was computed with other software versions, which may give other rows; "
            "install those versions, give another --out, or accept a mixture with "
            f"--allow-other-versions:\n{manifest.table(found)}"
        )

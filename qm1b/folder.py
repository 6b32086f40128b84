"""The output folder of a run: locked, compared with the run, checked shard by shard, and filled.

Whatever ended an earlier run here, what it left is whole shards (`store`): those that pass their
checksum are kept, the others are computed again, and everything else (the counts, dropped.csv) is
made anew from the shards.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import checksum, manifest, molecules, store
from .batch import Batch
from .errors import UserError
from .inputs.formats import SMILES
from .ledger import Unit
from .lock import locked
from .schema import Conformer
from .tally import Tally
from .units import Plan


@dataclass
class Folder:
    """A locked folder and what lies in it. Make one with `opened`."""

    path: Path
    identity: dict[str, Any]
    """The run that fills it, as `manifest.describe` gives it."""
    plan: Plan
    tally: Tally = field(default_factory=Tally)
    done: set[int] = field(default_factory=set)
    """Units whose shard is there and good."""
    damaged: list[str] = field(default_factory=list)
    """Names of shards that were found damaged, and removed."""
    earlier: list[dict[str, Any]] = field(default_factory=list)
    """The manifest's records of the runs before this one."""

    @property
    def missing(self) -> list[int]:
        """Units that are still to be computed."""
        return [unit for unit in self.plan.units if unit not in self.done]

    def add(self, unit: Unit, versions: Mapping[str, str] | None = None) -> None:
        """Write a finished unit: its shard first, which is what counts, then dropped.csv.

        `versions` are those of the machine that computed it, if it was another.

        Raises:
            UserError: the disk is full or not writable.
        """
        attributes = {key: self.identity[key] for key in manifest.LEVEL_KEYS}
        attributes |= self.identity["settings"] | {"unit": unit.index}
        if versions is not None:
            attributes["versions"] = dict(versions)
        store.write_shard(self.path, unit.index, unit.rows, unit.drops, attributes)
        self.done.add(unit.index)
        self.tally.add(
            self.plan.lines_of(unit.index),
            (row.conformer.line for row in unit.rows),
            (_molecule(row.conformer) for row in unit.rows),
            (row.result.status for row in unit.rows),
            (drop.reason for drop in unit.drops),
        )
        store.append_dropped(self.path, unit.drops)

    def adopt(self, unit: int, path: Path, other_versions: bool = False) -> None:
        """Copy a shard of the same run from elsewhere.

        Raises:
            Damaged: it is not what was written.
            UserError: it is not of this run, or the disk is full or not writable.
        """
        _count(self, path, unit, other_versions)
        data = path.read_bytes()
        store.atomic_write(store.shard_path(self.path, unit), lambda stream: stream.write(data))

    def write_dropped(self) -> None:
        """dropped.csv in the order of the input, from the shards."""
        paths = (store.shard_path(self.path, unit) for unit in sorted(self.done))
        drops = itertools.chain.from_iterable(map(store.read_drops, paths))
        store.write_dropped(self.path, drops)

    def write_manifest(self, status: str, this_run: Mapping[str, Any]) -> None:
        """The manifest: what the run is, what lies here, and how each run went."""
        runs = [*self.earlier, {**this_run, "status": status}]
        seconds = sum(run.get("seconds", 0.0) for run in runs)
        whole = self.identity | {
            "status": status,
            "counts": self.tally.to_dict(),
            "timing": {"seconds": round(seconds, 1)},
            "runs": runs,
        }
        store.write_manifest(self.path, whole)


@contextmanager
def opened(
    path: Path, identity: Mapping[str, Any], plan: Plan, other_versions: bool = False
) -> Iterator[Folder]:
    """A folder that this run may fill, locked inside the block; made if it does not exist.

    Args:
        path: the folder.
        identity: the run, as `manifest.describe` gives it.
        plan: the units that should end here.
        other_versions: go on with shards that other software computed.

    Raises:
        UserError: it cannot be written, another run is at work there, or it holds another run.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"folder {path} cannot be written ({error.strerror}); give another --out."
        ) from None
    with locked(path):
        store.clean(path)
        there = _earlier_manifest(path)
        is_smiles = identity["settings"]["input_format"] in SMILES
        folder = Folder(path, dict(identity), plan, Tally(lines_are_molecules=is_smiles))
        if there is not None:
            _must_agree(path, there, identity)
            folder.earlier = [_ended(run) for run in there.get("runs", [])]
        _survey(folder, other_versions)
        yield folder


def started_now() -> str:
    """The time, for the manifest: ISO 8601, UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _earlier_manifest(path: Path) -> dict[str, Any] | None:
    """The manifest of a folder with shards. Without a shard there is nothing to lose, so a run that
    failed or was stopped at once binds nobody.

    A manifest that was lost is made again from what every shard says of itself.
    """
    paths = store.shards(path)
    if not paths:
        return None
    try:
        return store.read_manifest(path)
    except UserError:
        return None


def _must_agree(path: Path, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    found = manifest.differences(there, here)
    if found:
        raise UserError(
            f"folder {path} holds another run; give another --out, or what was given there:\n"
            f"{manifest.table(found)}"
        )


def _ended(run: dict[str, Any]) -> dict[str, Any]:
    """An earlier run's record; it did not write its end if it was killed."""
    return run | {"status": "killed"} if run.get("status") == "running" else run


def _survey(folder: Folder, other_versions: bool) -> None:
    """Check and count every shard; remove those that are damaged."""
    for path in store.shards(folder.path):
        unit = store.unit_of(path)
        if unit not in folder.plan.units:
            raise _stranger(path)
        try:
            _count(folder, path, unit, other_versions)
        except checksum.Damaged:
            folder.damaged.append(path.name)
            path.unlink()


def _count(folder: Folder, path: Path, unit: int, other_versions: bool) -> None:
    """Check a shard of `unit` and count what is in it."""
    attributes, rows, drops = store.read_whole(path)
    _must_belong(folder, path, unit, attributes)
    if not other_versions:
        _same_software(folder, path, attributes)
    folder.done.add(unit)
    folder.tally.add(
        folder.plan.lines_of(unit),
        rows["line"].tolist(),
        molecules.numbers(Batch(rows)).tolist(),
        rows["status"].tolist(),
        (drop.reason for drop in drops),
    )


def _molecule(conformer: Conformer) -> tuple[str, int]:
    return molecules.name_of(conformer.smiles, conformer.seed), conformer.charge


def _must_belong(folder: Folder, path: Path, unit: int, attributes: Mapping[str, Any]) -> None:
    """Refuse a good shard of another run: somebody put it there, and it is not ours to remove."""
    expected = (folder.identity["fingerprint"], folder.identity["input"]["sha256"], unit)
    source = json.loads(attributes.get("input", "{}"))
    if (attributes.get("fingerprint"), source.get("sha256"), attributes.get("unit")) != expected:
        raise _stranger(path)


def _stranger(path: Path) -> UserError:
    return UserError(
        f"shard {path} belongs to another run or place; move it out of the folder, or give "
        "another --out."
    )


def _same_software(folder: Folder, path: Path, attributes: Mapping[str, Any]) -> None:
    there = {"versions": json.loads(attributes.get("versions", "{}"))}
    found = manifest.other_versions(there, folder.identity)
    if found:
        raise UserError(
            f"shard {path} was computed by other software, which may give other rows; install "
            "what was used there, give another --out, or accept a mixture with "
            f"--allow-other-versions:\n{manifest.table(found)}"
        )

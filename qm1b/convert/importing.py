"""Restores the dataset folder from a file that was exported with everything."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from qm1b.convert import digests
from qm1b.convert.digests import DIGESTS, DropDigest, RowDigest
from qm1b.convert.export import DIFFERING
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.folder.manifest import manifest_schema
from qm1b.folder.manifest.manifest import Manifest, shard_attributes
from qm1b.folder.manifest.manifest_schema import COMPLETE, LEVEL_KEYS
from qm1b.folder.manifest.work_units import WorkPlan
from qm1b.folder.shard_folder import ShardFolder
from qm1b.formats.load import load
from qm1b.formats.parquet import ParquetFile
from qm1b.rows import dropped
from qm1b.rows.batch import Record, completed, missing, row_of
from qm1b.rows.dataset import Dataset
from qm1b.rows.schema import Drop, Json
from qm1b.rows.unit import Unit
from qm1b.storage import files
from qm1b.storage.arrival import arriving


@dataclass
class Imported:
    """The counts of an import."""

    rows: int = 0
    drops: int = 0
    shards: int = 0
    warning: str = ""
    """A sentence without a full stop if damage could not be noticed."""


def import_file(path: Path, out: Path) -> Imported:
    """Make the dataset folder again that `path` was exported from, with everything.

    Args:
        path: a `.parquet`, `.extxyz` or `.extxyz.gz` file of `qm1b export --all`, beside the files
            written with it.
        out: the new folder, or that of the same command before it was killed.

    Raises:
        UserError: the file does not hold everything, is damaged, was shortened or changed or does
            not belong to the files beside it, or `out` holds something else, is in use or cannot
            be written.
    """
    content = _Content.of(load(path))
    # The manifest last: without it, the folder is not a dataset.
    with arriving(out, shards.MANIFEST) as folder:
        done = content.fill(folder)
        content.check(done)
        drops = (drop for _, drops in sorted(content.drops.items()) for drop in drops)
        shards.write_drops(folder / shards.DROPPED, drops)
        files.write_json(folder / shards.MANIFEST, content.manifest)
    return done


@dataclass(frozen=True)
class _Content:
    """An exported file and the files beside it."""

    source: Dataset
    manifest: Json
    """As the file has it, so that the folder gets the same bytes."""
    plan: WorkPlan
    drops: Mapping[int, list[Drop]]
    """Dropped lines by unit."""
    own: Mapping[int, Json]
    """By unit, the attributes in which its shard differs from the manifest."""
    exported: Mapping[str, str]
    """The digests in the file; empty if an earlier version wrote it."""
    rows: RowDigest
    """The digest of the rows that were read."""
    dropped: DropDigest = field(default_factory=DropDigest)
    """The digest of the dropped lines that were read."""

    @classmethod
    def of(cls, source: Dataset) -> _Content:
        """Read all but the rows; refuses a file that does not hold everything."""
        _check(source)
        manifest = source.metadata
        whole, exported = digests.of_manifest(manifest), digests.told(source.path, manifest)
        manifest.pop(DIGESTS, None)
        own = _own(source.path, manifest.pop(DIFFERING, []))
        try:
            plan = Manifest.from_dict(manifest).plan
        except UserError as error:
            raise UserError(f"{source.path}: {error}") from None
        drops = defaultdict[int, list[Drop]](list)
        content = cls(
            source,
            manifest,
            plan,
            drops=drops,
            own=own,
            exported=exported,
            rows=RowDigest(manifest["settings"]),
        )
        content._compare("manifest", whole)
        for drop in dropped.read(dropped.beside(source.path)):
            drops[plan.unit_of(drop.line)].append(drop)
            content.dropped.add([drop])
        return content

    def _compare(self, part: str, digest: str) -> None:
        """Refuse a part that is not what was exported."""
        if self.exported and self.exported[part] != digest:
            what = {"dropped": "dropped lines"}.get(part, part)
            raise UserError(
                f"{self.source.path} is damaged or was changed: the digest of its {what} is "
                f"{digest[:12]}..., {self.exported[part][:12]}... was exported; copy it and the "
                "files beside it again, or write them again with qm1b export --all"
            )

    def fill(self, out: Path) -> Imported:
        """Write the shard of every unit that has rows or dropped lines."""
        written, done = set[int](), Imported()
        for unit in self._units():
            if unit.index not in self.plan.units:
                raise self._shortened(f"a row or line of unit {unit.index}, which the run has not")
            if unit.index in written:
                raise UserError(
                    f"{self.source.path} is not in the order of its input; export it again"
                )
            lines = {row.conformer.line for row in unit.rows} | {drop.line for drop in unit.drops}
            if len(lines) < (needed := self.plan.lines_of(unit.index)):
                what = f"lines of unit {unit.index}: {len(lines)} instead of {needed}"
                raise self._shortened(what)
            own = self.manifest | self.own.get(unit.index, {})
            attributes = shard_attributes(own, unit.index)
            shards.write_shard(out, unit.index, unit.rows, drops=unit.drops, attributes=attributes)
            written.add(unit.index)
            done.rows += len(unit.rows)
            done.drops += len(unit.drops)
        done.shards = len(written)
        if not self.exported:
            done.warning = (
                f"{self.source.path} carries no digests, because an earlier version wrote it: "
                "damaged values would not be noticed"
            )
        return done

    def check(self, done: Imported) -> None:
        """Compare with the counts in the manifest, and with the digests.

        The counts of a killed run may be smaller.
        """
        if "counts" in self.manifest:
            self._count(done)
        self._compare("dropped", self.dropped.hexdigest())
        self._compare("rows", self.rows.hexdigest())

    def _count(self, done: Imported) -> None:
        counts = Manifest.from_dict(self.manifest).counts
        expected = {"units": counts.units, "rows": counts.rows}
        expected |= {f"lines dropped as {reason}": n for reason, n in counts.drops.items()}
        drops = (drop for drops in self.drops.values() for drop in drops)
        read = {"units": done.shards, "rows": done.rows}
        read |= Counter(f"lines dropped as {drop.reason}" for drop in drops)
        complete = self.manifest.get("status") == COMPLETE
        for what in expected | read:
            here, there = read.get(what, 0), expected.get(what, 0)
            if here < there or (complete and here != there):
                raise self._shortened(f"{what}: {here} instead of {there}")

    def _units(self) -> Iterator[Unit]:
        """The units with rows in the order of the file, then those with only dropped lines."""
        left = dict(self.drops)
        unit_of, rows_read = self.plan.unit_of, _records(self.source, self.rows)
        for index, records in groupby(rows_read, lambda record: unit_of(record["line"])):
            rows = [row_of(record) for record in records]
            yield Unit(index, rows=rows, drops=left.pop(index, []))
        for index in sorted(left):
            yield Unit(index, drops=left[index])

    def _shortened(self, what: str) -> UserError:
        return UserError(
            f"{self.source.path} and the files beside it do not hold all of their run ({what}): "
            "one of them was changed, or belongs to another export; write them again with qm1b "
            "export --all"
        )


def _check(source: Dataset) -> None:
    """Refuse a file that cannot hold everything."""
    again = "write it with qm1b export --all of this version"
    if isinstance(source, ShardFolder):
        raise UserError(f"{source.path} is a folder already; give an exported file")
    lacking = [key for key in (*LEVEL_KEYS, "unit_lines") if key not in source.metadata]
    if lacking:
        raise UserError(f"{source.path} comes without its run's manifest ({lacking[0]}); {again}")
    if isinstance(source, ParquetFile) and source.lacking:
        what = f"{source.path} lacks the exact column {source.lacking[0]}"
        raise UserError(f"{what}; {_of_earlier(source)}")
    if not dropped.beside(source.path).exists():
        raise UserError(f"{dropped.beside(source.path)} is missing; put it there, or {again}")


def _own(path: Path, value: object) -> dict[int, Json]:
    """By unit, what the entry DIFFERING says."""
    for problem in manifest_schema.OWN_UNITS.problems(value, DIFFERING):
        raise UserError(f"{path} is damaged ({problem}); write it again with qm1b export --all")
    entries: list[Json] = value  # type: ignore[assignment]
    return {
        unit: {key: value for key, value in entry.items() if key != "units"}
        for entry in entries
        for unit in entry.get("units", ())
    }


def _records(source: Dataset, digest: RowDigest) -> Iterator[Record]:
    """All rows; refuses a file that lacks a field, unless no earlier version had it."""
    settings = source.metadata["settings"]
    for batch in source.batches():
        whole = completed(batch, settings)
        if lacking := missing(whole, settings):
            what = f"{source.path} does not hold {', '.join(lacking)}"
            raise UserError(f"{what}; {_of_earlier(source)}")
        digest.without(missing(batch, settings))
        digest.add(batch)
        yield from whole.rows()


def _of_earlier(source: Dataset) -> str:
    """What to do with a file that lacks columns: an older version than is read may have made it."""
    versions = source.metadata.get("versions", {})
    wrote = f" ({versions['pyscf-ipu']})" if "pyscf-ipu" in versions else ""
    return (
        "write it with qm1b export --all of this version, which reads the folders of earlier ones; "
        f"if the folder is gone, import the file with the version that wrote it{wrote}"
    )

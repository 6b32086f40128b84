"""A dataset folder as one file, Parquet or extended XYZ, and the files beside it."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np

from qm1b.convert import digests
from qm1b.convert.digests import DropDigest, RowDigest
from qm1b.errors import UserError
from qm1b.folder import completeness, shards
from qm1b.folder.shard_folder import ShardFolder
from qm1b.formats import extxyz, parquet
from qm1b.formats.columns import arrow_schema
from qm1b.process import files
from qm1b.rows import dropped
from qm1b.rows.batch import Batch
from qm1b.rows.schema import CONVERGED, Json

DIFFERING = "differing_units"
"""Metadata entry of a file exported with everything: the attributes in which single shards differ
from the manifest."""

VARYING = ("versions", "input")
"""Attributes that may differ between the shards of one run; of the input only the name."""


@dataclass
class Exported:
    """The counts and further files of an export."""

    rows: int = 0
    left_out: int = 0
    """Rows that are not converged or not finite."""
    beside: list[Path] = field(default_factory=list)
    """Further files: the dropped lines, the manifest."""


def export(folder: Path, out: Path, everything: bool = False) -> Exported:
    """Write the rows of a run as one file in the format of its ending.

    Args:
        folder: the `--out` of a run.
        out: a `.parquet`, `.extxyz` or `.extxyz.gz` file; replaced if it exists.
        everything: also rows that did not converge or are not finite, and whatever `import_file`
            needs to make the folder again.

    Raises:
        UserError: no run there, a lost or damaged shard, or `out` is of an unknown kind or cannot
            be written.
    """
    source = ShardFolder(folder)
    if everything:
        source.metadata |= _differing(source)
    if not source.shards:
        raise UserError(f"folder {folder} holds no shards; run qm1b generate to its end first")
    check_target(out)
    completeness.notice(source)  # raises if a shard is lost
    done = Exported()

    told = _Told(source)

    def batches() -> Iterator[Batch]:
        for batch in told.batches() if everything else source.batches():
            good = is_good(batch) | everything
            done.left_out += int((~good).sum())
            yield batch if good.all() else batch.take(np.flatnonzero(good))

    done.rows = write_rows(out, batches(), source, told.closing if everything else None)
    if everything:
        done.beside = _write_beside(source, out, told.entry())
    return done


class _Told:
    """All rows of a run, and the digests of what was read so far."""

    def __init__(self, source: ShardFolder) -> None:
        self.source, self.drops = source, DropDigest()
        self.rows = RowDigest(source.metadata["settings"])

    def batches(self) -> Iterator[Batch]:
        """The rows, a shard at a time."""
        for number in range(len(self.source.shards)):
            batch, drops = self.source.unit(number)
            self.rows.add(batch)
            self.drops.add(drops)
            yield batch

    def entry(self) -> dict[str, str]:
        """The digests by name."""
        return digests.entry(self.source.metadata, self.drops, self.rows)

    def closing(self) -> dict[str, str]:
        """The digests as metadata of a file."""
        return {digests.DIGESTS: json.dumps(self.entry())}


def check_target(out: Path) -> None:
    """Refuse a file that cannot be written or is of an unknown kind."""
    if out.suffix != ".parquet" and not extxyz.is_extxyz(out):
        raise UserError(f"{out} is of an unknown kind: use .parquet, .extxyz or .extxyz.gz")
    if not out.parent.is_dir():
        raise UserError(f"folder {out.parent} does not exist; make it first")


def is_good(batch: Batch) -> np.ndarray:
    """[R] Whether each row converged to finite values."""
    good = (batch["status"] == CONVERGED) & batch["converged"]
    for name in ("energy", "homo", "lumo", "energy_std"):
        good &= np.isfinite(batch[name])
    if "forces" in batch:
        row = np.repeat(np.arange(len(batch)), np.diff(batch["atom_offset"]))
        good[row[~np.isfinite(batch["forces"]).all(axis=1)]] = False
    return good


def write_rows(
    out: Path,
    batches: Iterator[Batch],
    source: ShardFolder,
    closing: Callable[[], Mapping[str, str]] | None = None,
) -> int:
    """Write rows of a run as a file in the format of its ending; returns the number of rows.

    Args:
        out: the file; replaced if it exists.
        batches: the rows.
        source: the run.
        closing: gives metadata of a Parquet file with the exact columns, after the last row; None
            for a file without them.
    """
    rows = 0

    def write(stream: IO[bytes]) -> None:
        nonlocal rows
        if extxyz.is_extxyz(out):
            forces = bool(source.metadata["settings"].get("forces"))
            first = extxyz.free_atoms(source.free_atoms_of_rows, forces)
            rows = extxyz.write(stream, batches, out.suffix == ".gz", first)
        else:
            schema = arrow_schema(source.metadata, exact=closing is not None)
            rows = parquet.write(stream, batches, schema, closing=closing or dict)

    files.atomic_write(out, write)
    return rows


def _differing(source: ShardFolder) -> Json:
    """The entry DIFFERING: how shards from other machines or versions differ from the manifest."""
    found: dict[str, Json] = {}
    for path in source.shards:
        attributes = shards.read_attributes(path)
        here = {key: json.loads(attributes[key]) for key in VARYING}
        other = {key: here[key] for key in VARYING if here[key] != source.metadata[key]}
        if other:
            entry = found.setdefault(json.dumps(other), {"units": [], **other})
            entry["units"].append(shards.unit_of(path))
    return {DIFFERING: list(found.values())} if found else {}


def _write_beside(source: ShardFolder, out: Path, told: Mapping[str, str]) -> list[Path]:
    """The dropped lines, and the manifest if the format cannot hold it."""
    drops = dropped.beside(out)
    shards.write_drops(drops, (drop for path in source.shards for drop in shards.read_drops(path)))
    if not extxyz.is_extxyz(out):
        return [drops]
    manifest = extxyz.manifest_path(out)
    files.write_json(manifest, source.metadata | {digests.DIGESTS: told})
    return [drops, manifest]

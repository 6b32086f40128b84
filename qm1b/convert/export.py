"""A dataset folder as one file or folder of another format, and the files beside it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pyscf_ipu.base.command_line.targets import check_folders
from qm1b.convert import digests
from qm1b.convert.digests import DropDigest, RowDigest
from qm1b.convert.kinds import FileKind, kind_of
from qm1b.errors import UserError
from qm1b.folder import completeness, shards
from qm1b.folder.shard_folder import ShardFolder
from qm1b.formats import extxyz
from qm1b.rows import dropped
from qm1b.rows.batch import Batch
from qm1b.rows.schema import CONVERGED, Json
from qm1b.storage import files

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
    suspect: int = 0
    """Rows that were written although they may be of another state (`qm1b.rows.suspects`)."""
    beside: list[Path] = field(default_factory=list)
    """Further files: the dropped lines, the manifest, what the format wants beside it."""


def export(folder: Path, out: Path, everything: bool = False, kind: str | None = None) -> Exported:
    """Write the rows of a run in another format.

    Args:
        folder: the `--out` of a run.
        out: a file, which is replaced if it exists; for `hub` a new folder.
        everything: also rows that did not converge or are not finite, and whatever `import_file`
            needs to make the folder again; only in Parquet and extended XYZ.
        kind: `parquet`, `extxyz`, `aselmdb`, `schnetpack`, `ace`, `spice` or `hub`; None for that
            of the ending of `out`.

    Raises:
        UserError: no run there, a lost or damaged shard, a run without what the format must have,
            a package that is not installed, or `out` is of an unknown kind or cannot be written.
    """
    source = ShardFolder(folder)
    if everything:
        source.metadata |= _differing(source)
    if not source.shards:
        raise UserError(f"folder {folder} holds no shards; run qm1b generate to its end first")
    target = check_target(out, kind)
    if everything and target.write_all is None:
        raise UserError(
            f"{out} cannot hold everything (--all): use .parquet, .extxyz or .extxyz.gz, which "
            "qm1b import reads"
        )
    if everything:
        check_folders(_beside(out))
    completeness.notice(source)  # raises if a shard is lost
    done = Exported()

    digested = _Told(source)

    def batches() -> Iterator[Batch]:
        for batch in digested.batches() if everything else source.batches():
            good = is_good(batch) | everything
            done.left_out += int((~good).sum())
            done.rows += int(good.sum())
            done.suspect += int((batch["suspect"][good] != "").sum())
            yield batch if good.all() else batch.take(np.flatnonzero(good))

    if everything and target.write_all:
        target.write_all(out, batches(), source, digested.closing)
        done.beside = _write_beside(source, out, digested.entry())
    else:
        done.beside = target.write(out, batches(), source)
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


def check_target(out: Path, kind: str | None = None) -> FileKind:
    """The format of a file; refuses one that cannot be written or is of an unknown kind."""
    chosen = kind_of(out, kind)
    check_folders([] if out.is_dir() else [out])  # a folder may be wanted
    return chosen


def is_good(batch: Batch) -> np.ndarray:
    """[R] Whether each row converged to finite values."""
    good = (batch["status"] == CONVERGED) & batch["converged"]
    for name in ("energy", "homo", "lumo", "energy_std"):
        good &= np.isfinite(batch[name])
    if "forces" in batch:
        row = np.repeat(np.arange(len(batch)), np.diff(batch["atom_offset"]))
        good[row[~np.isfinite(batch["forces"]).all(axis=1)]] = False
    return good


def _differing(source: ShardFolder) -> Json:
    """The entry DIFFERING: how shards from other machines or versions differ from the manifest."""
    entries: dict[str, Json] = {}
    for path in source.shards:
        attributes = shards.read_attributes(path)
        here = {key: json.loads(attributes[key]) for key in VARYING}
        other = {key: here[key] for key in VARYING if here[key] != source.metadata[key]}
        if other:
            entry = entries.setdefault(json.dumps(other), {"units": [], **other})
            entry["units"].append(shards.unit_of(path))
    return {DIFFERING: list(entries.values())} if entries else {}


def _write_beside(source: ShardFolder, out: Path, digested: Mapping[str, str]) -> list[Path]:
    """The dropped lines, and the manifest if the format cannot hold it."""
    drops, *manifest = written = _beside(out)
    shards.write_drops(drops, (drop for path in source.shards for drop in shards.read_drops(path)))
    for path in manifest:
        files.write_json(path, source.metadata | {digests.DIGESTS: digested})
    return written


def _beside(out: Path) -> list[Path]:
    """The files of `_write_beside`."""
    return [dropped.beside(out), *([extxyz.manifest_path(out)] if extxyz.is_extxyz(out) else [])]

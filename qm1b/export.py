"""A dataset folder as one file: Parquet or extended XYZ, and what travels beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from . import completeness, store
from .batch import Batch
from .errors import UserError
from .formats import dropped, extxyz, parquet
from .formats.columns import arrow_schema
from .reading import Folder
from .schema import CONVERGED

DIFFERING = "differing_units"
"""Where the metadata of a file with everything keeps what only some shards say of themselves."""

VARYING = ("versions", "input")
"""What may differ between the shards of one run; of the input only the name."""


@dataclass
class Exported:
    """What an export wrote."""

    rows: int = 0
    left_out: int = 0
    """Rows that are not converged or not finite."""
    beside: list[Path] = field(default_factory=list)
    """Further files: the dropped lines, the manifest."""


def export(folder: Path, out: Path, everything: bool = False) -> Exported:
    """Write the rows of a run as one file; its ending says which kind.

    Args:
        folder: the `--out` of a run.
        out: a `.parquet`, `.extxyz` or `.extxyz.gz` file; replaced if it exists.
        everything: also rows that did not converge or are not finite, and whatever `import_file`
            needs to make the folder again.

    Raises:
        UserError: no run there, a lost or damaged shard, or `out` is of no known kind or cannot be
            written.
    """
    source = Folder(folder)
    if everything:
        source.metadata |= _differing(source)
    if not source.shards:
        raise UserError(f"folder {folder} holds no shards; run qm1b generate to its end first.")
    check_target(out)
    completeness.notice(source)  # a lost shard ends it here
    done = Exported()
    store.atomic_write(out, lambda stream: _write(stream, source, out, everything, done))
    if everything:
        done.beside = _write_beside(source, out)
    return done


def check_target(out: Path) -> None:
    """Refuse a file that cannot be written or is of no known kind."""
    if out.suffix != ".parquet" and not extxyz.is_extxyz(out):
        raise UserError(f"{out} is of no known kind: use .parquet, .extxyz or .extxyz.gz.")
    if not out.parent.is_dir():
        raise UserError(f"folder {out.parent} does not exist; make it first.")


def is_good(batch: Batch) -> np.ndarray:
    """[R] Which rows converged to finite values."""
    good = (batch["status"] == CONVERGED) & batch["converged"]
    for name in ("energy", "homo", "lumo", "energy_std"):
        good &= np.isfinite(batch[name])
    return good


def write_rows(stream: IO[bytes], out: Path, batches: Iterator[Batch], source: Folder) -> int:
    """Write batches in the format of a file's ending, without the exact columns of Parquet."""
    if extxyz.is_extxyz(out):
        return extxyz.write(stream, batches, out.suffix == ".gz")
    return parquet.write(stream, batches, arrow_schema(source.metadata))


def _write(stream: IO[bytes], source: Folder, out: Path, everything: bool, done: Exported) -> None:
    def batches() -> Iterator[Batch]:
        for batch in source.batches():
            good = is_good(batch) | everything
            done.left_out += int((~good).sum())
            yield batch if good.all() else batch.take(np.flatnonzero(good))

    if everything and out.suffix == ".parquet":
        schema = arrow_schema(source.metadata, exact=True)
        done.rows = parquet.write(stream, batches(), schema)
    else:
        done.rows = write_rows(stream, out, batches(), source)


def _differing(source: Folder) -> dict[str, Any]:
    """What shards say otherwise than the manifest, as other machines or versions made them: an
    entry of the metadata that `import_file` takes out again. Empty if they agree."""
    found: dict[str, dict[str, Any]] = {}
    for path in source.shards:
        attributes = store.read_attributes(path)
        here = {key: json.loads(attributes[key]) for key in VARYING}
        other = {key: here[key] for key in VARYING if here[key] != source.metadata[key]}
        if other:
            entry = found.setdefault(json.dumps(other), {"units": [], **other})
            entry["units"].append(store.unit_of(path))
    return {DIFFERING: list(found.values())} if found else {}


def _write_beside(source: Folder, out: Path) -> list[Path]:
    """The dropped lines, and the manifest where the format has no room for it."""
    drops = dropped.beside(out)
    store.write_drops(drops, (drop for path in source.shards for drop in store.read_drops(path)))
    if not extxyz.is_extxyz(out):
        return [drops]
    manifest = extxyz.manifest_path(out)
    text = json.dumps(source.metadata, indent=2, ensure_ascii=False) + "\n"
    store.write_text(manifest, text)
    return [drops, manifest]

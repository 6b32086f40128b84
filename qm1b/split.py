"""Training, validation and test sets by molecule: all conformers of one are on one side.

The side is read off a hash of seed and SMILES, or what stands for it (`molecules`), so it depends
on nothing else: not on the order of the rows, not on what else is in the dataset, and a molecule
keeps its side when the dataset grows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import numpy as np

from . import completeness, molecules, store
from .batch import Batch
from .errors import UserError
from .export import check_target, is_good, write_rows
from .formats import extxyz
from .reading import Folder

NAMES = ("train", "valid", "test")
SPLIT_JSON = "split.json"
ENDINGS = (".parquet", *extxyz.ENDINGS)
METHOD = (
    "SHA-256 of seed and SMILES (without one, of the rows' seed, which stands for the bonds); all "
    "conformers of a molecule on one side"
)


@dataclass(frozen=True)
class Fractions:
    """Expected parts of the molecules; they add up to one."""

    train: float = 0.8
    valid: float = 0.1
    test: float = 0.1

    def check(self) -> None:
        """Raise UserError unless they are parts of a whole."""
        parts = (self.train, self.valid, self.test)
        # Written so that NaN, which fails every comparison, is refused.
        if not (all(0 <= part <= 1 for part in parts) and abs(sum(parts) - 1) <= 1e-9):
            raise UserError(
                f"the parts {', '.join(map(str, parts))} add up to {sum(parts):g}: give --train, "
                "--valid and --test that are not negative and add up to 1."
            )


@dataclass
class Part:
    """What one side got."""

    file: str
    molecules: int = 0
    rows: int = 0


def side(molecule: str, seed: int, fractions: Fractions) -> str:
    """Which side a molecule (`molecules.name_of`) is on: train, valid or test."""
    digest = hashlib.sha256(f"{seed}\n{molecule}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    ends = np.cumsum([getattr(fractions, name) for name in NAMES])
    # Rounding may leave the last end below one, and a part of size zero must stay empty.
    last = max(i for i, name in enumerate(NAMES) if getattr(fractions, name))
    return NAMES[min(int(np.searchsorted(ends, place, side="right")), last)]


def split(
    folder: Path, out: Path, fractions: Fractions, seed: int = 0, ending: str = ".parquet"
) -> dict[str, Part]:
    """Write the converged rows of a run as up to three files and `split.json`.

    Files of an earlier split there that this one does not write are removed: rows in them would be
    on two sides.

    Args:
        folder: the `--out` of a run.
        out: folder for the files, made if need be; those of an earlier split are replaced.
        fractions: expected parts of the molecules.
        seed: another seed gives another division.
        ending: `.parquet`, `.extxyz` or `.extxyz.gz`.

    Raises:
        UserError: no run there, a lost shard, wrong fractions or ending, or `out` cannot be
            written.
    """
    fractions.check()
    source = Folder(folder)
    completeness.notice(source)  # a lost shard ends it here
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"folder {out} cannot be made: {error.strerror}.") from None
    paths = {name: out / f"{name}{ending}" for name in NAMES if getattr(fractions, name)}
    for path in paths.values():
        check_target(path)
    _remove(_files_of_earlier(out) - set(paths.values()))
    parts = {name: _write(path, source, name, seed, fractions) for name, path in paths.items()}
    report = {
        "method": METHOD,
        "seed": seed,
        "fractions": asdict(fractions),
        "fingerprint": source.metadata["fingerprint"],
        "parts": {name: asdict(part) for name, part in parts.items()},
    }
    text = json.dumps(report, indent=2) + "\n"
    store.write_text(out / SPLIT_JSON, text)
    return parts


def _files_of_earlier(out: Path) -> set[Path]:
    """The files that the `split.json` of a folder names; none that a split does not write."""
    try:
        parts = json.loads((out / SPLIT_JSON).read_text())["parts"]
        named = {str(part["file"]) for part in parts.values()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return set()  # no split, or none of ours
    ours = {f"{name}{ending}" for name in NAMES for ending in ENDINGS}
    return {out / name for name in named & ours}


def _remove(paths: set[Path]) -> None:
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(
                f"{path} of an earlier split cannot be removed: {error.strerror}."
            ) from None


def _write(path: Path, source: Folder, name: str, seed: int, fractions: Fractions) -> Part:
    part = Part(path.name)
    seen = set[str]()  # frames of one molecule may lie in several shards

    def batches() -> Iterator[Batch]:
        for batch in source.batches():
            who, inverse = np.unique(molecules.names(batch).astype(str), return_inverse=True)
            ours = np.array([side(one, seed, fractions) == name for one in who], dtype=bool)
            keep = np.flatnonzero(ours[inverse] & is_good(batch))
            seen.update(who[np.unique(inverse[keep])].tolist())
            yield batch.take(keep)

    def write(stream: IO[bytes]) -> None:
        part.rows = write_rows(stream, path, batches(), source)

    store.atomic_write(path, write)
    part.molecules = len(seen)
    return part

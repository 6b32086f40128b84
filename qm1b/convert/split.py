"""Training, validation and test sets by molecule: all its conformers are on one side.

A hash of the seed and the molecule's name (`qm1b.rows.identity.name_of`) decides the side, which
depends on nothing else: not on the order of the rows nor on the other molecules, so a molecule
keeps its side when the dataset grows.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from qm1b.convert.export import check_target, is_good
from qm1b.convert.kinds import kind_of
from qm1b.errors import UserError
from qm1b.folder import completeness
from qm1b.folder.shard_folder import ShardFolder
from qm1b.formats import extxyz
from qm1b.process import files
from qm1b.rows import identity
from qm1b.rows.batch import Batch

NAMES = ("train", "valid", "test")
SPLIT_JSON = "split.json"
ENDINGS = (".parquet", *extxyz.ENDINGS)
METHOD = (
    "SHA-256 of seed and SMILES (without one, of the rows' seed, which stands for the bonds); all "
    "conformers of a molecule on one side"
)


@dataclass(frozen=True)
class Fractions:
    """Expected shares of the molecules; they add up to one."""

    train: float = 0.8
    valid: float = 0.1
    test: float = 0.1

    def check(self) -> None:
        """Raise UserError unless they are shares of a whole."""
        parts = (self.train, self.valid, self.test)
        # Written so that NaN, which fails every comparison, is refused.
        if not (all(0 <= part <= 1 for part in parts) and abs(sum(parts) - 1) <= 1e-9):
            raise UserError(
                f"the parts {', '.join(map(str, parts))} add up to {sum(parts):g}: give --train, "
                "--valid and --test that are not negative and add up to 1"
            )


@dataclass
class Part:
    """The file of one side."""

    file: str
    molecules: int = 0
    rows: int = 0


def side(molecule: str, seed: int, fractions: Fractions) -> str:
    """The side of a molecule, by its name (`identity.name_of`): train, valid or test."""
    digest = hashlib.sha256(f"{seed}\n{molecule}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    ends = np.cumsum([getattr(fractions, name) for name in NAMES])
    # Rounding may leave the last end below one, and a share of zero must stay empty.
    last = max(i for i, name in enumerate(NAMES) if getattr(fractions, name))
    return NAMES[min(int(np.searchsorted(ends, place, side="right")), last)]


def split(
    folder: Path, out: Path, fractions: Fractions, seed: int = 0, ending: str = ".parquet"
) -> dict[str, Part]:
    """Write the converged rows of a run as up to three files and `split.json`.

    Files of an earlier split that this one does not write are removed, because their rows would be
    on two sides.

    Args:
        folder: the `--out` of a run.
        out: folder for the files; it is made, or the files of an earlier split are replaced.
        fractions: expected shares of the molecules.
        seed: another seed gives another division.
        ending: `.parquet`, `.extxyz` or `.extxyz.gz`.

    Raises:
        UserError: no run there, a lost shard, wrong fractions or ending, or `out` cannot be
            written.
    """
    fractions.check()
    if ending not in ENDINGS:
        raise UserError(f"{ending} is of an unknown kind for a split: use {', '.join(ENDINGS)}")
    source = ShardFolder(folder)
    completeness.notice(source)  # raises if a shard is lost
    files.make_folder(out)
    paths = {name: out / f"{name}{ending}" for name in NAMES if getattr(fractions, name)}
    for path in paths.values():
        check_target(path)
    _remove_earlier(out, keep=set(paths.values()))
    parts = {name: _write(path, source, name, seed, fractions) for name, path in paths.items()}
    report = {
        "method": METHOD,
        "seed": seed,
        "fractions": asdict(fractions),
        "fingerprint": source.manifest.fingerprint,
        "parts": {name: asdict(part) for name, part in parts.items()},
    }
    files.write_json(out / SPLIT_JSON, report)
    return parts


def _remove_earlier(out: Path, keep: set[Path]) -> None:
    """Remove files that the `split.json` of a folder names, if a split writes files so named."""
    try:
        parts = json.loads((out / SPLIT_JSON).read_text())["parts"]
        named = {out / str(part["file"]) for part in parts.values()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return  # there is no split, or it is not ours
    for path in named & {out / f"{name}{ending}" for name in NAMES for ending in ENDINGS} - keep:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(
                f"{path} of an earlier split cannot be removed: {error.strerror}"
            ) from None


def _write(path: Path, source: ShardFolder, name: str, seed: int, fractions: Fractions) -> Part:
    part = Part(path.name)
    seen = set[str]()  # frames of one molecule may be in several shards

    def batches() -> Iterator[Batch]:
        for batch in source.batches():
            who, inverse = np.unique(identity.names(batch).astype(str), return_inverse=True)
            ours = np.array([side(one, seed, fractions) == name for one in who], dtype=bool)
            keep = np.flatnonzero(ours[inverse] & is_good(batch))
            seen.update(who[np.unique(inverse[keep])].tolist())
            part.rows += len(keep)
            yield batch.take(keep)

    kind_of(path).write(path, batches(), source)
    part.molecules = len(seen)
    return part

"""Training, validation and test sets by molecule: all its conformers are on one side.

A hash of the seed and the molecule's name (`qm1b.rows.identity.name_of`) decides the side, which
depends on nothing else: not on the order of the rows nor on the other molecules, so a molecule
keeps its side when the dataset grows.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import nullcontext
from copy import copy
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from qm1b.convert import hub
from qm1b.convert.export import check_target, is_good
from qm1b.convert.kinds import KINDS
from qm1b.errors import UserError
from qm1b.folder import completeness
from qm1b.folder.shard_folder import ShardFolder
from qm1b.rows import identity
from qm1b.rows.batch import Batch
from qm1b.rows.schema import Json
from qm1b.storage import files

NAMES = ("train", "valid", "test")
SPLIT_JSON = "split.json"
HUB = "hub"
FILES = {name: "{0}" + kind.endings[0] for name, kind in KINDS.items() if kind.endings}
FILES |= {"aselmdb": "{0}/{0}.aselmdb", HUB: "data/part-{0}-*.parquet"}
FILES["extxyz.gz"] = "{0}.extxyz.gz"
"""The file of a part, in each format. A database for fairchem has a folder of its own."""

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
    folder: Path, out: Path, fractions: Fractions, seed: int = 0, form: str = "parquet"
) -> dict[str, Part]:
    """Write the converged rows of a run as up to three files and `split.json`.

    Files of an earlier split that divided in another way are removed before one is written, because
    molecules would be on two sides if it ended halfway. Of extended XYZ only the training set has
    frames of free atoms, which MACE takes for rows elsewhere.

    Args:
        folder: the `--out` of a run.
        out: folder for the files; it is made, or the files of an earlier split are replaced.
        fractions: expected shares of the molecules.
        seed: another seed gives another division.
        form: one of FILES.

    Raises:
        UserError: no run there, a lost shard, wrong fractions or format, a run without what the
            format must have, or `out` cannot be written.
    """
    fractions.check()
    if form not in FILES:
        raise UserError(f"unknown format {form!r} for a split: use one of {', '.join(FILES)}")
    source = ShardFolder(folder)
    completeness.notice(source)  # raises if a shard is lost
    names = [name for name in NAMES if getattr(fractions, name)]
    parts = {name: Part(FILES[form].format(name)) for name in names}
    rows = {
        name: _rows(source, part, name, seed=seed, fractions=fractions)
        for name, part in parts.items()
    }
    division: Json = {
        "method": METHOD,
        "seed": seed,
        "fractions": asdict(fractions),
        "fingerprint": source.manifest.fingerprint,
    }
    files.make_folder(out)
    with hub.filling(out) if form == HUB else nullcontext():
        if form == HUB:
            hub.write_splits(out, rows, source)
        else:
            paths = {name: out / part.file for name, part in parts.items()}
            for path in paths.values():
                files.make_folder(path.parent)
                check_target(path, form.removesuffix(".gz"))
            _remove_earlier(out, keep={*paths.values()}, division=division)
            _write(form, paths, rows, source=source)
        report = division | {"parts": {name: asdict(part) for name, part in parts.items()}}
        files.write_json(out / SPLIT_JSON, report)
    return parts


def _remove_earlier(out: Path, keep: set[Path], division: Json) -> None:
    """Remove files that the `split.json` of a folder names, if a split writes files so named.

    Those to be written again stay until then if they were divided in the same way.
    """
    try:
        earlier = json.loads((out / SPLIT_JSON).read_text(encoding="utf-8"))
        named = {out / str(part["file"]) for part in earlier["parts"].values()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return  # there is no split, or it is not ours
    ours = {out / form.format(name) for name in NAMES for form in FILES.values()} & named
    same = all(earlier.get(key) == value for key, value in division.items())
    # Last the list of them: a kill before leaves it to the next one.
    for path in [*(ours - keep), *(() if same else (*(ours & keep), out / SPLIT_JSON))]:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(
                f"{path} of an earlier split cannot be removed: {error.strerror}"
            ) from None


def _write(
    form: str, paths: dict[str, Path], rows: dict[str, Iterator[Batch]], source: ShardFolder
) -> None:
    """Write a file per part."""
    kind = form.removesuffix(".gz")
    without_atoms = copy(source)
    without_atoms.free_atoms_of_rows = {}
    for name, path in paths.items():
        KINDS[kind].write(path, rows[name], source if name == "train" else without_atoms)


def _rows(
    source: ShardFolder, part: Part, name: str, seed: int, fractions: Fractions
) -> Iterator[Batch]:
    """The converged rows of a side, which are counted in `part` as they are read."""
    seen = set[str]()  # frames of one molecule may be in several shards
    for batch in source.batches():
        who, inverse = np.unique(identity.names(batch).astype(str), return_inverse=True)
        ours = np.array([side(one, seed, fractions) == name for one in who], dtype=bool)
        keep = np.flatnonzero(ours[inverse] & is_good(batch))
        seen.update(who[np.unique(inverse[keep])].tolist())
        part.rows += len(keep)
        part.molecules = len(seen)
        yield batch.take(keep)

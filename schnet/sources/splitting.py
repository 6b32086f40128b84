"""Training, validation and test rows, by molecule: all conformers of one are on one side.

Three ways. Fractions: a hash of seed and molecule decides about the side, as in `qm1b split`, row
by row while reading, and a molecule keeps its side when the data grows. Counts: this many molecules
per side, in the order of a seeded permutation; their names have to fit into memory. Files: each
side has its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Bool

from qm1b.convert.split import NAMES, Fractions, side
from schnet.errors import UserError
from schnet.samples.samples import Samples
from schnet.sources.base import Source

SIDES = NAMES
"""train, valid, test"""

Counts = tuple[int, int, int]
"""Molecules for training, validation and test."""


@dataclass(frozen=True)
class Division:
    """Decides on which side a row is."""

    side_of: Callable[[str], str | None]
    """The side of a molecule; None for one that is not used."""
    record: Mapping[str, object]
    """What run.json says of it."""

    def mask(self, samples: Samples, name: str) -> Bool[np.ndarray, " R"]:
        """Which rows are on the side of this name."""
        molecules = samples.molecules.tolist()
        ours = {m: self.side_of(m) == name for m in set(molecules)}
        return np.array([ours[m] for m in molecules], dtype=bool)


def whole(name: str) -> Division:
    """All rows are on one side, which has its own file."""
    return Division(lambda _: name, {"method": "files", "side": name})


def by_hash(fractions: Fractions, seed: int = 0) -> Division:
    """Expected fractions of the molecules, by `qm1b.convert.split.side`."""
    record = {"method": "hash", "seed": seed, "fractions": asdict(fractions)}
    return Division(lambda molecule: side(molecule, seed, fractions), record)


def by_count(source: Source, counts: Counts, seed: int = 0) -> Division:
    """Exact numbers of the molecules of a source, which is read once; the order of its rows does
    not matter. Raises UserError if there are fewer molecules."""
    names = {m for samples in source.parts() for m in samples.molecules.tolist()}
    if sum(counts) > len(names):
        raise UserError(
            f"--split asks for {' + '.join(map(str, counts))} = {sum(counts)} molecules, but "
            f"{source.path} has {len(names)}; ask for fewer"
        )
    ordered = np.random.default_rng(seed).permutation(np.array(sorted(names), dtype=object))
    sides = dict(zip(ordered.tolist(), np.repeat(SIDES, counts).tolist(), strict=False))
    numbers = dict(zip(SIDES, counts, strict=True))
    return Division(sides.get, {"method": "counts", "seed": seed, "counts": numbers})


def parse_split(text: str) -> Fractions | Counts:
    """Read three numbers with commas: fractions with the sum one, or numbers of molecules; raises
    UserError for anything else."""
    words = text.split(",")
    try:
        if len(words) == 3 and all(word.strip().isdecimal() for word in words):
            first, second, third = (int(word) for word in words)
            if first > 0 and first + second + third > 1:
                return first, second, third
        train, valid, test = (float(word) for word in words)
    except ValueError:
        train = valid = test = float("nan")
    if not (train > 0 and min(valid, test) >= 0 and abs(train + valid + test - 1) <= 1e-9):
        raise UserError(
            f"--split is {text!r}: give three numbers for training, validation and test, either "
            "fractions that add up to 1 (0.8,0.1,0.1) or molecules (2400,300,300), and some for "
            "training"
        )
    return Fractions(train, valid, test)


def without(parts: Fractions | Counts, elsewhere: tuple[str, ...]) -> Fractions | Counts:
    """The division when some sides have their own files: the other fractions, scaled up to one.
    Raises UserError for a count of a side that has a file."""
    if not elsewhere:
        return parts
    if isinstance(parts, tuple):
        for name, count in zip(SIDES, parts, strict=True):
            if count and name in elsewhere:
                raise UserError(
                    f"--split asks for {count} {name} molecules, but --{name}-data was given: give "
                    "0 there"
                )
        return parts
    shares = {name: 0.0 if name in elsewhere else getattr(parts, name) for name in SIDES}
    total = sum(shares.values())
    return Fractions(**{name: value / total for name, value in shares.items()})

"""Training, validation and test rows, by molecule: all conformers of one are on one side.

Three ways. Fractions: the side is read off a hash of seed and molecule, as in `qm1b split`, so it
is decided row by row while reading, and a molecule keeps its side when the data grows. Counts: so
many molecules a side, in the order of a seeded permutation; their names have to fit into memory.
Files: each side is a file of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool

from qm1b.split import NAMES, Fractions, side

from .errors import UserError
from .samples import Samples
from .sources import Source

SIDES = NAMES
"""train, valid, test"""

Counts = tuple[int, int, int]
"""Molecules for training, validation and test."""


class Split(ABC):
    """Decides on which side a row is."""

    @abstractmethod
    def mask(self, samples: Samples, name: str) -> Bool[np.ndarray, " R"]:
        """Which rows are on the side of this name."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """How it divides, for the record of a run."""


@dataclass(frozen=True)
class Whole(Split):
    """All rows are on one side: a file of its own."""

    side: str

    def mask(self, samples: Samples, name: str) -> Bool[np.ndarray, " R"]:
        """See `Split.mask`."""
        return np.full(len(samples), name == self.side)

    def describe(self) -> dict[str, Any]:
        """See `Split.describe`."""
        return {"method": "files", "side": self.side}


@dataclass(frozen=True)
class ByHash(Split):
    """Expected fractions of the molecules, by `qm1b.split.side`."""

    fractions: Fractions
    seed: int = 0

    def mask(self, samples: Samples, name: str) -> Bool[np.ndarray, " R"]:
        """See `Split.mask`."""
        molecules = samples.molecules.tolist()
        ours = {m: side(m, self.seed, self.fractions) == name for m in set(molecules)}
        return np.array([ours[m] for m in molecules], dtype=bool)

    def describe(self) -> dict[str, Any]:
        """See `Split.describe`."""
        return {"method": "hash", "seed": self.seed, "fractions": asdict(self.fractions)}


@dataclass(frozen=True)
class ByCount(Split):
    """Exact numbers of molecules; make one with `by_count`."""

    counts: Counts
    seed: int
    sides: Mapping[str, str]
    """Which side a molecule is on; those that are on none are not used."""

    def mask(self, samples: Samples, name: str) -> Bool[np.ndarray, " R"]:
        """See `Split.mask`."""
        found = [self.sides.get(m) == name for m in samples.molecules.tolist()]
        return np.array(found, dtype=bool)

    def describe(self) -> dict[str, Any]:
        """See `Split.describe`."""
        counts = dict(zip(SIDES, self.counts, strict=True))
        return {"method": "counts", "seed": self.seed, "counts": counts}


def by_count(source: Source, counts: Counts, seed: int = 0) -> ByCount:
    """Divide the molecules of a source, which is read once; the order of its rows does not matter.

    Raises:
        UserError: it has fewer molecules than are asked for.
    """
    names = set[str]()
    for samples in source.parts():
        names.update(samples.molecules.tolist())
    if sum(counts) > len(names):
        raise UserError(
            f"--split asks for {' + '.join(map(str, counts))} = {sum(counts)} molecules, but "
            f"{source.path} has {len(names)}; ask for fewer."
        )
    ordered = np.random.default_rng(seed).permutation(np.array(sorted(names), dtype=object))
    ends = np.cumsum(counts)
    sides = {
        molecule: name
        for name, part in zip(SIDES, np.split(ordered[: ends[-1]], ends[:-1]), strict=True)
        for molecule in part.tolist()
    }
    return ByCount(counts, seed, sides)


def parse_split(text: str) -> Fractions | Counts:
    """Three numbers with commas: fractions that add up to one, or whole numbers of molecules.

    Raises:
        UserError: neither.
    """
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
            "training."
        )
    return Fractions(train, valid, test)


def without(parts: Fractions | Counts, elsewhere: tuple[str, ...]) -> Fractions | Counts:
    """What is left to divide when some sides have files of their own: the other fractions, scaled
    up to one.

    Raises:
        UserError: a count was given for a side that has a file.
    """
    if not elsewhere:
        return parts
    if isinstance(parts, tuple):
        for name, count in zip(SIDES, parts, strict=True):
            if count and name in elsewhere:
                raise UserError(
                    f"--split asks for {count} {name} molecules, but --{name}-data was given: give "
                    "0 there."
                )
        return parts
    kept = {name: 0.0 if name in elsewhere else getattr(parts, name) for name in SIDES}
    total = sum(kept.values())
    return Fractions(**{name: value / total for name, value in kept.items()})

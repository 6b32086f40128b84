"""One side of a split, read part by part, and the function that makes the three of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .errors import UserError
from .samples import Samples
from .sources import Source, open_source
from .splitting import SIDES, ByHash, Counts, Fractions, Split, Whole, by_count, without

_DRAWS = 3
"""Last word of the seed, which keeps these numbers apart from `streaming`'s."""

Paths = str | Path | Sequence[str | Path]


@dataclass(frozen=True, eq=False)
class Subset:
    """Rows of a source that are on one side, and perhaps only some of them (`limited`)."""

    source: Source
    split: Split
    name: str
    """train, valid or test."""
    limit: int | None = None
    """How many rows there are, if only some are taken."""
    limit_seed: int = 0
    threshold: float = 1.0
    """Rows that draw a larger number are left out."""

    @property
    def sizes(self) -> list[int]:
        """How many rows each part has at most."""
        return self.source.sizes

    @property
    def bound(self) -> int:
        """How many rows there are at most."""
        return sum(self.sizes) if self.limit is None else min(self.limit, sum(self.sizes))

    def part(self, number: int) -> Samples:
        """This side's rows of a part of the source; raises as `Source.part`."""
        ours = self._side(number)
        if self.limit is None:
            return ours
        return ours.take(np.flatnonzero(self._draws(number, len(ours)) <= self.threshold))

    def parts(self) -> Iterator[Samples]:
        """All of them, one after another."""
        return map(self.part, range(len(self.sizes)))

    def limited(self, rows: int, seed: int = 0) -> Subset:
        """Only so many rows, chosen at random: those with the smallest of the numbers that all rows
        draw, so that fewer rows are a subset of more. Reads the source once, and holds one number
        for each row that is asked for.

        Raises:
            UserError: there are not so many.
        """
        everything = replace(self, limit=None, limit_seed=seed)
        smallest, total = np.zeros(0), 0
        for number in range(len(self.sizes)):
            drawn = everything._draws(number, len(everything._side(number)))
            total += len(drawn)
            smallest = np.concatenate([smallest, drawn])
            if len(smallest) > rows:
                smallest = np.partition(smallest, rows - 1)[:rows]
        if not 1 <= rows <= total:
            raise UserError(
                f"--limit is {rows}, but {self.source.path} has {total} {self.name} rows: give "
                f"1 to {total}."
            )
        return replace(everything, limit=rows, threshold=float(smallest.max()))

    def describe(self) -> dict[str, Any]:
        """What it is, for the record of a run."""
        limit = {} if self.limit is None else {"limit": self.limit, "limit_seed": self.limit_seed}
        return {
            "data": str(self.source.path),
            "fingerprint": self.source.fingerprint(),
            "units": self.source.units,
            "split": self.split.describe(),
            **limit,
        }

    def _side(self, number: int) -> Samples:
        samples = self.source.part(number)
        mask = self.split.mask(samples, self.name)
        return samples if mask.all() else samples.take(np.flatnonzero(mask))

    def _draws(self, number: int, rows: int) -> np.ndarray:
        """[R] in [0, 1), the same whatever the limit."""
        return np.random.default_rng((self.limit_seed, number, 0, _DRAWS)).random(rows)


def subsets(
    data: Paths,
    target: str,
    split: Fractions | Counts,
    seed: int = 0,
    *,
    valid_data: Paths | None = None,
    test_data: Paths | None = None,
    limit: int | None = None,
    key: str | None = None,
    unit: str | None = None,
) -> dict[str, Subset]:
    """Training, validation and test rows by name.

    Args:
        data: file, folder or several: all sides that have no files of their own come from it.
        target: name of what is to be learned.
        split: how `data` is divided (`splitting.parse_split`).
        seed: of the division and of the choice of training rows.
        valid_data: files for validation alone.
        test_data: files for the test alone.
        limit: how many training rows to use; the other sides stay as they are.
        key: as in `open_source`.
        unit: as in `open_source`.

    Raises:
        UserError: as `open_source`, or too few molecules or rows.
    """
    given = {"valid": valid_data, "test": test_data}
    own = {name: paths for name, paths in given.items() if paths is not None}
    source = open_source(data, target, key, unit)
    found: dict[str, Subset] = {}
    left = without(split, tuple(own))
    if isinstance(left, tuple):
        division: Split = by_count(source, left, seed)
    elif len(own) == len(given):
        division = Whole("train")
    else:
        division = ByHash(left, seed)
    for name in SIDES:
        if name in own:
            found[name] = Subset(open_source(own[name], target, key, unit), Whole(name), name)
        else:
            found[name] = Subset(source, division, name)
    if limit is not None:
        found["train"] = found["train"].limited(limit, seed)
    return found

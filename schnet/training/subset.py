"""One side of a split, read part by part, and the three sides of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from qm1b.rows.identity import draw_key
from schnet.errors import UserError
from schnet.runs.settings import Data
from schnet.samples.samples import Samples
from schnet.sources import Source, open_source
from schnet.sources.splitting import SIDES, Division, by_count, by_hash, parse_split, whole, without

_DRAWS = 3
"""Last word of the seed; `streaming` uses others, so that the numbers differ."""


@dataclass(frozen=True, eq=False)
class Subset:
    """The rows of a source that are on one side, or some of them (`limited`)."""

    source: Source
    split: Division
    name: str
    """train, valid or test."""
    limit: int | None = None
    """Number of rows, if only some are taken."""
    limit_seed: int = 0
    threshold: float = 1.0
    """Rows that draw a larger number are not taken."""
    each: int | None = None
    """Rows of a molecule at most, if not all are taken (`few_conformers`)."""
    chosen: tuple[np.ndarray, ...] | None = None
    """Which rows of each part are taken then."""

    @property
    def sizes(self) -> list[int]:
        """Upper bounds of the number of rows in each part."""
        return self.source.sizes

    @property
    def bound(self) -> int:
        """Upper bound of the number of rows."""
        if self.chosen is not None:
            return sum(int(mask.sum()) for mask in self.chosen)
        return sum(self.sizes) if self.limit is None else min(self.limit, sum(self.sizes))

    def part(self, number: int) -> Samples:
        """This side's rows of a part of the source; raises as `Source.part`."""
        ours = self._side(number)
        if self.chosen is not None:
            return ours.take(np.flatnonzero(self.chosen[number]))
        if self.limit is None:
            return ours
        return ours.take(np.flatnonzero(self._draws(number, len(ours)) <= self.threshold))

    def parts(self) -> Iterator[Samples]:
        """All parts one after another."""
        return map(self.part, range(len(self.sizes)))

    def limited(self, rows: int, seed: int = 0) -> Subset:
        """Take only this many rows, chosen at random; raises UserError if there are fewer.

        Each row draws a number, and those with the smallest numbers are taken, so that fewer rows
        are a subset of more. The source is read once, and one number per row is held in memory.
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
                f"1 to {total}"
            )
        return replace(everything, limit=rows, threshold=float(smallest.max()))

    def few_conformers(self, each: int, rows: int | None = None, seed: int = 0) -> Subset:
        """Take at most this many rows of each molecule, chosen at random; and with `rows` molecules
        in a random order until there are `rows` rows, the last molecule perhaps in part.

        More rows are a superset of fewer, and more of each molecule of fewer if `rows` is None. The
        source is read once, and two numbers per row are held in memory.

        Raises:
            UserError: there are fewer rows.
        """
        names, drawn = [], []
        for number in range(len(self.sizes)):
            ours = self._side(number)
            names.append(_places(ours, seed))
            drawn.append(replace(self, limit_seed=seed)._draws(number, len(ours)))
        place = np.concatenate([np.zeros(0, np.uint64), *names])
        order = np.lexsort((np.concatenate([np.zeros(0), *drawn]), place))
        first = np.r_[True, np.diff(place[order]) != 0][: len(order)]
        begins = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
        taken = order[np.arange(len(order)) - begins < each]
        if rows is not None and not 1 <= rows <= len(taken):
            raise UserError(
                f"--limit is {rows}, but with --conformers-per-molecule {each} {self.source.path} "
                f"has {len(taken)} {self.name} rows: give 1 to {len(taken)}"
            )
        mask = np.zeros(len(order), bool)
        mask[taken[:rows]] = True
        chosen = tuple(np.split(mask, np.cumsum([len(part) for part in names])[:-1]))
        return replace(self, limit=rows, limit_seed=seed, each=each, chosen=chosen)

    def describe(self) -> dict[str, object]:
        """The record of these rows in run.json."""
        limit = {} if self.limit is None else {"limit": self.limit, "limit_seed": self.limit_seed}
        return {
            "data": str(self.source.path),
            "fingerprint": self.source.fingerprint(),
            "units": self.source.units,
            "split": self.split.record,
            **limit,
            **({} if self.each is None else {"conformers_per_molecule": self.each}),
        }

    def _side(self, number: int) -> Samples:
        samples = self.source.part(number)
        mask = self.split.mask(samples, self.name)
        return samples if mask.all() else samples.take(np.flatnonzero(mask))

    def _draws(self, number: int, rows: int) -> np.ndarray:
        """[R] in [0, 1), the same for every limit."""
        return np.random.default_rng((self.limit_seed, number, 0, _DRAWS)).random(rows)


def _places(samples: Samples, seed: int) -> np.ndarray:
    """[R] For the molecule of each row a number that orders molecules at random."""
    names = samples.molecules.tolist()
    places = {name: draw_key(seed, name) for name in set(names)}
    return np.array([places[name] for name in names], np.uint64)


def subsets(rows: Data) -> dict[str, Subset]:
    """Training, validation and test rows by name; raises as `open_source` and `parse_split`, and
    UserError if there are too few molecules or rows."""
    given = {"valid": rows.valid_data, "test": rows.test_data}
    separate = {name: paths for name, paths in given.items() if paths}
    parts = parse_split(rows.split)
    source = open_source(rows.data, rows.target, rows.key, unit=rows.unit)
    left = without(parts, tuple(separate))
    if isinstance(left, tuple):
        division = by_count(source, left, rows.split_seed)
    elif len(separate) == len(given):
        division = whole("train")
    else:
        division = by_hash(left, rows.split_seed)
    sides = {name: Subset(source, division, name) for name in SIDES}
    for name, paths in separate.items():
        other = open_source(paths, rows.target, rows.key, unit=rows.unit)
        sides[name] = Subset(other, whole(name), name)
    if rows.conformers_per_molecule is not None:
        each = rows.conformers_per_molecule
        sides["train"] = sides["train"].few_conformers(each, rows.limit, rows.split_seed)
    elif rows.limit is not None:
        sides["train"] = sides["train"].limited(rows.limit, rows.split_seed)
    return sides

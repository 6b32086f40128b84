"""How the input is cut into work units, and which of them are one run's share.

A unit is a block of consecutive input lines and becomes one shard. A killed run loses what it has
of a unit, so one takes about UNIT_SECONDS: few lines where molecules are large.

A share i of n takes the units i, i + n, i + 2 n, ...: inputs are often sorted by size, and so every
share gets its part of the large molecules and takes about the same time.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby

from qm1b.errors import UserError


@dataclass(frozen=True)
class Share:
    """Part `index`, from 0, of `count` equal parts of a run."""

    index: int = 0
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Share:
        """From "i/n".

        Raises:
            UserError: not of that form, or not 0 <= i < n.
        """
        first, slash, second = text.partition("/")
        if slash and first.isdecimal() and second.isdecimal() and int(first) < int(second):
            return cls(int(first), int(second))
        raise UserError(f"--shard is {text!r}: it must be i/n with 0 <= i < n, as in 0/16")

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


WHOLE = Share()

UNIT_SECONDS = 120.0
"""What the rows of a unit take one core, about."""
MOST_ROWS = 1024
"""Rows of a unit, so that a shard is read at once."""
MOST_PARTS = 64
PART_UNITS = 8
"""Parts of an input at most; and units of a part, all of which have the same length, at least."""

Cut = tuple[tuple[int, int], ...]
"""Consecutive parts of an input: lines of the part, and lines of each of its units."""


def cut(line_seconds: Sequence[float], n_lines: int, conformers: int, stride: int = 1) -> Cut:
    """Parts whose units take about UNIT_SECONDS each.

    Args:
        line_seconds: what the rows of lines at equal distances take one core.
        n_lines: of the input.
        conformers: rows of a line.
        stride: the lines of units are multiples of it.
    """
    n_sample = len(line_seconds)
    seconds = n_lines * sum(line_seconds) / n_sample
    n_parts = max(1, min(MOST_PARTS, n_sample, int(seconds / (PART_UNITS * UNIT_SECONDS))))
    starts = [k * n_lines // n_parts // stride * stride for k in range(n_parts)] + [n_lines]
    parts = []
    for k in range(n_parts):
        some = line_seconds[k * n_sample // n_parts : (k + 1) * n_sample // n_parts]
        wanted = UNIT_SECONDS * len(some) / max(sum(some), 1e-9)
        lines = min(2 ** round(math.log2(max(1.0, wanted))), MOST_ROWS // conformers)
        parts.append((starts[k + 1] - starts[k], max(stride, lines // stride * stride)))
    alike = groupby((part for part in parts if part[0]), key=lambda part: part[1])
    return tuple((sum(lines for lines, _ in group), unit_lines) for unit_lines, group in alike)


@dataclass(frozen=True)
class WorkPlan:
    """The units of an input of `n_lines` lines, and those of one share.

    Args:
        n_lines: of the input.
        unit_lines: lines of every unit, or of those of each part.
        share: whose units `units` are.
    """

    n_lines: int
    unit_lines: int | Cut
    share: Share = WHOLE

    @property
    def units(self) -> range:
        """The share's units, in the order of the input."""
        n_units = self.unit_of(self.n_lines) + 1 if self.n_lines else 0
        return range(self.share.index, n_units, self.share.count)

    @property
    def lines(self) -> int:
        """Input lines in the share's units."""
        return self.n_lines if self.share.count == 1 else sum(map(self.lines_of, self.units))

    def unit_of(self, line: int) -> int:
        """The unit of a line number (from 1)."""
        k = bisect_right(self._starts, line - 1) - 1
        return self._first_units[k] + (line - 1 - self._starts[k]) // self._cut[k][1]

    def last_line(self, unit: int) -> int:
        """The number of a unit's last line."""
        k = bisect_right(self._first_units, unit) - 1
        end = self._starts[k] + (unit - self._first_units[k] + 1) * self._cut[k][1]
        return min(end, self.n_lines, *self._starts[k + 1 : k + 2])

    def lines_of(self, unit: int) -> int:
        """How many input lines a unit has: the last one of a part may have fewer."""
        return self.last_line(unit) - (self.last_line(unit - 1) if unit else 0)

    @cached_property
    def _cut(self) -> Cut:
        of_all = self.unit_lines
        return ((self.n_lines, of_all),) if isinstance(of_all, int) else of_all

    @cached_property
    def _starts(self) -> list[int]:
        """Lines before each part; the last part is as long as it has to be."""
        return [0, *accumulate(lines for lines, _ in self._cut[:-1])]

    @cached_property
    def _first_units(self) -> list[int]:
        return [0, *accumulate(math.ceil(lines / each) for lines, each in self._cut[:-1])]

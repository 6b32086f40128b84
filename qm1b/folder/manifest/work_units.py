"""How the input is cut into work units, and which of them are one run's share.

A unit is a block of consecutive input lines and becomes one shard. A share i of n takes the units
i, i + n, i + 2 n, ...: inputs are often sorted by size, and so every share gets its part of the
large molecules and takes about the same time.
"""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class WorkPlan:
    """The units of an input of `n_lines` lines, and those of one share."""

    n_lines: int
    unit_lines: int
    share: Share = WHOLE

    @property
    def units(self) -> range:
        """The share's units, in the order of the input."""
        n_units = -(-self.n_lines // self.unit_lines)
        return range(self.share.index, n_units, self.share.count)

    @property
    def lines(self) -> int:
        """Input lines in the share's units."""
        units = self.units
        return sum(self.lines_of(u) for u in units[-1:]) + self.unit_lines * len(units[:-1])

    def unit_of(self, line: int) -> int:
        """The unit of a line number (from 1)."""
        return (line - 1) // self.unit_lines

    def lines_of(self, unit: int) -> int:
        """How many input lines a unit has: only the input's last may have fewer."""
        return min(self.unit_lines, self.n_lines - unit * self.unit_lines)

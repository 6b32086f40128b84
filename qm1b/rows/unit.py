"""A finished work unit, and one of which some lines were computed again."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from qm1b.rows.schema import Drop, Row
from qm1b.rows.suspects import flagged


@dataclass
class Unit:
    """The rows and dropped lines of one shard."""

    index: int
    begun: int = 0
    """Position of the unit in the order in which the units were begun."""
    rows: list[Row] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    open: dict[int, int | None] = field(default_factory=dict)
    """Unfinished lines: conformers still to come, or None while it is not known how many."""
    before: dict[tuple[int, int], Row] = field(default_factory=dict)
    """By place, the earlier rows of conformers that were computed once more."""

    def sort(self) -> None:
        """Restore the order of the input, whatever the order of arrival."""
        self.rows.sort(key=lambda row: row.place)
        self.drops.sort(key=lambda drop: drop.line)

    def only(self, lines: Collection[int]) -> Unit:
        """What it has of some lines."""
        rows = [row for row in self.rows if row.conformer.line in lines]
        return Unit(self.index, rows=rows, drops=[d for d in self.drops if d.line in lines])

    def without(self, lines: Collection[int]) -> Unit:
        """What it has of the other lines."""
        return self.only({*self.lines} - {*lines})

    @property
    def lines(self) -> set[int]:
        """The lines with rows or drops."""
        return {r.conformer.line for r in self.rows} | {d.line for d in self.drops}

    def renewed(self, again: Unit) -> Unit:
        """With some lines as another try gave them, unless the earlier one gave more conformers.

        Rows are flagged anew, since the conformers of a molecule may come from several lines.
        """
        better = {line for line in again.lines if _n_rows(again, line) >= _n_rows(self, line)}
        old, new = self.without(better), again.only(better)
        unit = Unit(self.index, rows=[*old.rows, *new.rows], drops=[*old.drops, *new.drops])
        unit.sort()
        unit.rows = flagged(unit.rows)
        return unit


def _n_rows(unit: Unit, line: int) -> int:
    return sum(row.conformer.line == line for row in unit.rows)

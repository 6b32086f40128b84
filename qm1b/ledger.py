"""Who has finished: every input line ends as rows or as a drop, and nothing else can happen to it.

The input is cut into work units of consecutive lines. A unit is closed, and becomes one shard, when
all its lines are read and finished; so a shard that exists is complete, and what a run still has to
do can be read off the names of its shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .schema import Drop, Row


@dataclass
class Unit:
    """The lines of one shard, and what has become of them."""

    index: int
    rows: list[Row] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    open: dict[int, int | None] = field(default_factory=dict)
    """Unfinished lines: conformers still to come, or None while it is not known how many."""
    complete: bool = True

    def sort(self) -> None:
        """Order of the input, whatever the order of arrival."""
        self.rows.sort(key=lambda row: (row.conformer.line, row.conformer.conformer))
        self.drops.sort(key=lambda drop: drop.line)


class Ledger:
    """The open work units of a run."""

    def __init__(self, unit_lines: int) -> None:
        self._unit_lines = unit_lines
        self._units: dict[int, Unit] = {}
        self._smiles: dict[int, str] = {}
        self._read = 0

    def unit_of(self, line: int) -> int:
        """The work unit of a line number (from 1)."""
        return (line - 1) // self._unit_lines

    @property
    def newest(self) -> int:
        """The unit of the last line read."""
        return self.unit_of(max(self._read, 1))

    @property
    def unfinished(self) -> int:
        """Lines that were read and are not finished."""
        return len(self._smiles)

    def opened(self, line: int, smiles: str) -> None:
        """A line was read and is being worked on."""
        self._read = line
        self._unit(line).open[line] = None
        self._smiles[line] = smiles

    def dropped(self, drop: Drop) -> None:
        """A line was read and left out at once."""
        self._read = drop.line
        self._unit(drop.line).drops.append(drop)

    def embedded(self, line: int, conformers: int, drop: Drop | None) -> None:
        """An open line has so many conformers to compute, and perhaps something to report."""
        unit = self._unit(line)
        if drop is not None:
            unit.drops.append(drop)
        unit.open[line] = conformers
        if conformers == 0:
            self._finish(unit, line)

    def computed(self, row: Row) -> None:
        """One conformer of an open line has its result, good or bad."""
        line = row.conformer.line
        unit = self._unit(line)
        unit.rows.append(row)
        left = (unit.open[line] or 0) - 1
        unit.open[line] = left
        if left == 0:
            self._finish(unit, line)

    def closed(self, at_end: bool) -> Iterator[Unit]:
        """Units that are finished; `at_end` says that no further line will be read."""
        for index in sorted(self._units):
            is_read = at_end or self._read >= (index + 1) * self._unit_lines
            if is_read and not self._units[index].open:
                unit = self._units.pop(index)
                unit.sort()
                yield unit

    def interrupted(self) -> Iterator[Unit]:
        """Close all units as they are; unfinished lines are recorded as such."""
        for index in sorted(self._units):
            unit = self._units.pop(index)
            unit.complete = False
            for line, left in unit.open.items():
                detail = "no conformers yet" if left is None else f"{left} conformers not computed"
                unit.drops.append(Drop(line, self._smiles.pop(line), "interrupted", detail))
            unit.sort()
            yield unit

    def _unit(self, line: int) -> Unit:
        index = self.unit_of(line)
        return self._units.setdefault(index, Unit(index))

    def _finish(self, unit: Unit, line: int) -> None:
        del unit.open[line]
        del self._smiles[line]

"""The lines under way: every input line ends as rows or as a drop.

A work unit is closed, and becomes one shard, when all its lines are read and finished. So a shard
that exists is complete, and the names of the shards tell what is left to do.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from qm1b.folder.manifest.work_units import WorkPlan
from qm1b.rows.schema import CONVERGED, TOO_LARGE, Drop, Row
from qm1b.rows.suspects import flagged
from qm1b.rows.unit import Unit


class Ledger:
    """The open work units of a run."""

    def __init__(self, plan: WorkPlan) -> None:
        self._plan = plan
        self._units: dict[int, Unit] = {}
        self._begun = 0
        self._read = 0

    @property
    def unfinished(self) -> int:
        """Lines that were read and are not finished."""
        return sum(len(unit.open) for unit in self._units.values())

    def begun_since(self, line: int) -> int:
        """Units that were begun after that of an open line."""
        return self._begun - 1 - self._unit(line).begun

    def opened(self, line: int) -> None:
        """A line was read and is being worked on."""
        self._read = line
        self._unit(line).open[line] = None

    def dropped(self, drop: Drop) -> None:
        """A line was read and left out at once."""
        self._read = drop.line
        self._unit(drop.line).drops.append(drop)

    def embedded(self, line: int, conformers: int, drop: Drop | None) -> None:
        """An open line has this many conformers to compute, and perhaps a drop to report."""
        unit = self._unit(line)
        if drop is not None:
            unit.drops.append(drop)
        unit.open[line] = conformers
        if conformers == 0:
            del unit.open[line]

    def computed(self, row: Row) -> Row:
        """One conformer of an open line has its result, good or bad; returns the row that stays.

        Of a conformer that was computed once more, the earlier row stays unless the new one
        converged.
        """
        line = row.conformer.line
        unit = self._unit(line)
        if row.status != CONVERGED and (before := unit.before.get(row.place)):
            ended = f"the search for a lower state ended as {row.status.split(':')[0]}"
            troubles = (*before.troubles, *row.troubles, ended)
            row = replace(before, troubles=troubles)
        unit.rows.append(row)
        self._one_less(unit, line)
        return row

    def refused(self, row: Row) -> tuple[Drop, list[Drop]] | None:
        """One conformer of an open line is too large for the machine.

        All conformers of a line have one shape, so none of them becomes a row.

        Returns:
            Once for each line: its drop, and those that it had before, which are void.
        """
        conformer = row.conformer
        unit = self._unit(conformer.line)
        self._one_less(unit, conformer.line)
        others = [drop for drop in unit.drops if drop.line != conformer.line]
        void = [drop for drop in unit.drops if drop.line == conformer.line]
        if any(drop.reason == TOO_LARGE for drop in void):
            return None
        detail = row.status.partition(": ")[2]
        drop = Drop(conformer.line, conformer.smiles, TOO_LARGE, detail=detail, id=conformer.id)
        unit.drops = [*others, drop]
        return drop, void

    def _one_less(self, unit: Unit, line: int) -> None:
        """One conformer of an open line is done."""
        left = (unit.open[line] or 0) - 1
        unit.open[line] = left
        if left == 0:
            del unit.open[line]

    def reopened(self, unit: Unit, again: Sequence[Row]) -> None:
        """Take rows of a closed unit out of it: they are computed once more."""
        self._units[unit.index] = unit
        taken = {row.place: row for row in again}
        unit.before |= taken
        unit.rows = [row for row in unit.rows if row.place not in taken]
        for line, count in Counter(row.conformer.line for row in again).items():
            unit.open[line] = count

    def closed(self, at_end: bool) -> Iterator[Unit]:
        """Units that are finished; `at_end` says that no further line will be read."""
        for index in sorted(self._units):
            is_read = at_end or self._read >= self._plan.last_line(index)
            if is_read and not self._units[index].open:
                unit = self._units.pop(index)
                unit.sort()
                unit.rows = flagged(unit.rows)
                yield unit

    def _unit(self, line: int) -> Unit:
        index = self._plan.unit_of(line)
        if index not in self._units:
            self._units[index] = Unit(index, self._begun)
            self._begun += 1
        return self._units[index]

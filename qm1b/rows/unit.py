"""A finished work unit."""

from dataclasses import dataclass, field

from qm1b.rows.schema import Drop, Row


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

    def sort(self) -> None:
        """Restore the order of the input, whatever the order of arrival."""
        self.rows.sort(key=lambda row: (row.conformer.line, row.conformer.conformer))
        self.drops.sort(key=lambda drop: drop.line)

"""Counts of input lines and rows, of what is in a folder (`Tally`) or of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from copy import copy
from dataclasses import dataclass, field, fields

from pyscf_ipu.base.terminal import counted
from qm1b.rows.schema import CONVERGED, Json
from qm1b.rows.unit import Unit


@dataclass
class Counts:
    """Input lines, and what has become of them."""

    lines: int = 0
    """Input lines that are read."""
    kept_lines: int = 0
    """Input lines with rows."""
    rows: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    """Rows by the first word of their status."""
    drops: Counter[str] = field(default_factory=Counter)
    """Lines left out, by reason."""

    def add(
        self, lines: int, row_lines: Iterable[int], statuses: Iterable[str], reasons: Iterable[str]
    ) -> None:
        """Count one unit.

        Args:
            lines: its input lines.
            row_lines: the line of each row.
            statuses: the status of each row.
            reasons: the reason of each dropped line.
        """
        self.lines += lines
        self.kept_lines += len(set(row_lines))
        kinds = Counter(status.split(":")[0] for status in statuses)
        self.rows += kinds.total()
        self.statuses += kinds
        self.drops.update(reasons)

    def add_unit(self, unit: Unit, lines: int) -> None:
        """Count a unit of `lines` input lines."""
        rows = [(row.conformer.line, row.status) for row in unit.rows]
        reasons = (drop.reason for drop in unit.drops)
        self.add(lines, (line for line, _ in rows), (status for _, status in rows), reasons=reasons)

    def so_far(self) -> Json:
        """A copy of the counts, by name."""
        return {f.name: copy(getattr(self, f.name)) for f in fields(Counts)}

    @property
    def not_converged(self) -> int:
        """Rows with any status but converged."""
        return self.rows - self.statuses[CONVERGED]


@dataclass
class Tally(Counts):
    """Counts of what a folder holds."""

    lines_are_molecules: bool = False
    """Whether no two lines are of one molecule, as with SMILES; geometries may be."""
    units: int = 0
    molecules: int = 0
    """Molecules with rows, counted in each unit: with geometries, several lines may be of one."""

    def add_molecules(self, molecules: Iterable[Hashable]) -> None:
        """Count the molecules of one unit; each row names its own."""
        self.units += 1
        self.molecules += len(set(molecules))

    def replace(self, old: Tally, new: Tally) -> None:
        """Count something as it is now, no longer as it was."""
        for name in ("lines", "kept_lines", "rows", "units", "molecules"):
            setattr(self, name, getattr(self, name) - getattr(old, name) + getattr(new, name))
        self.statuses = self.statuses - old.statuses + new.statuses
        self.drops = self.drops - old.drops + new.drops

    @property
    def kept(self) -> str:
        """What the rows are of, in words: a molecule may be in several units, a line is in one."""
        if self.lines_are_molecules or self.units == 1:
            return counted(self.molecules, "molecule")
        return counted(self.kept_lines, "input line")

    @classmethod
    def from_dict(cls, values: Json) -> Tally:
        """The counts in a manifest that has been checked (`manifest_schema`)."""
        return cls(
            units=values["units"],
            lines=values["lines_read"],
            molecules=values["molecules"],
            rows=values["rows"],
            statuses=Counter(values["statuses"]),
            drops=Counter(values["dropped"]),
        )

    def to_dict(self) -> Json:
        """The counts for a manifest."""
        return {
            "units": self.units,
            "lines_read": self.lines,
            "molecules": self.molecules,
            "rows": self.rows,
            "statuses": dict(sorted(self.statuses.items())),
            "dropped": dict(sorted(self.drops.items())),
        }

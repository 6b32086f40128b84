"""Counts of what lies in a folder, as opposed to what a run has under way (`progress.Stats`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .schema import CONVERGED


@dataclass
class Tally:
    """Units, and what is in them."""

    lines_are_molecules: bool = False
    """No two lines are of one molecule, as with SMILES; geometries may be."""
    units: int = 0
    lines: int = 0
    """Input lines that have become rows or drops."""
    kept_lines: int = 0
    """Input lines with rows."""
    molecules: int = 0
    """Molecules with rows, counted in each unit: with geometries, several lines may be of one."""
    rows: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    drops: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        lines: int,
        row_lines: Iterable[int],
        molecules: Iterable[Hashable],
        statuses: Iterable[str],
        reasons: Iterable[str],
    ) -> None:
        """Count one unit of `lines` input lines: of each row its line, what tells its molecule, and
        its status; of each drop its reason. A status counts by its first word."""
        self.units += 1
        self.lines += lines
        self.kept_lines += len(set(row_lines))
        self.molecules += len(set(molecules))
        kinds = Counter(status.split(":")[0] for status in statuses)
        self.rows += kinds.total()
        self.statuses += kinds
        self.drops.update(reasons)

    @property
    def kept(self) -> str:
        """What the rows are of, in words: a molecule may be in several units, a line is in one."""
        if self.lines_are_molecules or self.units == 1:
            return f"{self.molecules} molecules"
        return f"{self.kept_lines} input lines"

    @property
    def not_converged(self) -> int:
        """Rows with any status but converged."""
        return self.rows - self.statuses[CONVERGED]

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "units": self.units,
            "lines_read": self.lines,
            "molecules": self.molecules,
            "rows": self.rows,
            "statuses": dict(sorted(self.statuses.items())),
            "dropped": dict(sorted(self.drops.items())),
        }

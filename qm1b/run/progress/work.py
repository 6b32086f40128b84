"""The priced work of a run: done, begun and to come."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import SupportsInt

from pyscf_ipu.shapes.shape import Shape
from qm1b.rows.schema import Conformer, Row
from qm1b.rows.unit import Unit
from qm1b.run.progress.preview import Preview
from qm1b.screening.screen import Candidate


@dataclass
class PricedWork:
    """The price of what a run has done, of what it has begun, and of what is ahead."""

    preview: Preview | None = None
    """The whole input; None where nobody has looked at it, and every row counts alike."""
    done: float = 0.0
    """Priced seconds of the rows of this run."""
    pending: float = 0.0
    """Priced seconds of lines that were read and have no rows yet."""
    position: int = 0
    """The last line that was read, or passed over."""
    _embedding: dict[int, float] = field(default_factory=dict, init=False)
    _met: set[Shape | None] = field(default_factory=set, init=False)

    def read(self, candidate: Candidate, conformers: int) -> None:
        """A line is kept, and RDKit begins."""
        numbers = candidate.numbers
        if self.preview is not None:
            self._met.add(self.preview.prices.shape(numbers))
        self._embedding[candidate.line] = conformers * self._price(numbers)
        self.pending += self._embedding[candidate.line]

    def embedded(self, line: int, conformers: Sequence[Conformer]) -> None:
        """The conformers of a line are there."""
        self.pending -= self._embedding.pop(line, 0.0)
        self.pending += sum(self._price(conformer.numbers) for conformer in conformers)

    def computed(self, row: Row) -> None:
        """A row is there."""
        price = self._price(row.conformer.numbers)
        self.done += price
        self.pending -= price

    def refused(self, row: Row) -> None:
        """A row will not come."""
        self.pending -= self._price(row.conformer.numbers)

    def again(self, row: Row) -> None:
        """A row is to be computed once more."""
        self.pending += self._price(row.conformer.numbers)

    def elsewhere(self, unit: Unit) -> None:
        """A unit is computed, of which nothing was pending here."""
        self.done += sum(self._price(row.conformer.numbers) for row in unit.rows)
        self.position = max(self.position, *unit.lines)

    def left(self, n_lines: int, rows: int) -> float:
        """Price of the rows to come.

        Args:
            n_lines: lines that are not read yet.
            rows: how many they are, which counts without a preview.
        """
        if self.preview is None:
            return float(rows)
        return max(0.0, self.pending) + self.preview.seconds_of(n_lines, self.position)

    @property
    def programs_ahead(self) -> int:
        """Shapes of lines that are not read yet, as far as the sample shows them."""
        if self.preview is None:
            return 0
        return len({line.shape for line in self.preview.after(self.position)} - self._met - {None})

    def _price(self, numbers: Iterable[SupportsInt]) -> float:
        return self.preview.prices.seconds(numbers) if self.preview is not None else 1.0

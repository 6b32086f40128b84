"""Tables with a SMILES column: CSV, TSV, and what spreadsheets make of them."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import deque
from collections.abc import Iterator

from ..errors import UserError
from .lines import bounded_lines
from .records import Entry, smiles_of

SMILES_NAMES = frozenset(
    "smiles smile cansmiles canonicalsmiles smilescanonical isosmiles isomericsmiles "
    "absolutesmiles connectivitysmiles cxsmiles rdkitsmiles openeyesmiles inputsmiles molsmiles "
    "smilesstring ligandsmiles structuresmiles".split()
)
"""Names of a SMILES column, in small letters and without anything else."""

MAX_LINE = 1 << 15
"""Characters of one line of a table; what is beyond is not read."""

QUOTED_LINES = 50
"""Lines that a quoted cell may run over, before its quote is taken for a mistake."""

QUOTED_CHARACTERS = 100_000
"""As many characters at most; the csv module takes 131,072."""


def delimiter_of(header: str) -> str:
    """The delimiter of a header line that names a SMILES column; '' if it names none."""
    for delimiter in _by_cells(header, ",\t;|"):
        if any(_plain(cell) in SMILES_NAMES for cell in _cells(header, delimiter)):
            return delimiter
    # Spaces: only where the column comes first, since any line of SMILES may have remarks.
    return " " if _plain(header.split(" ")[0]) in SMILES_NAMES else ""


def entries(text: io.TextIOWrapper, smiles_column: str | None = None) -> Iterator[Entry]:
    """An entry a row below the header. A number as `smiles_column` says that there is no header.

    Raises:
        UserError: no such column, or several that could be meant.
    """
    lines = bounded_lines(text, MAX_LINE)
    first = next(lines, None)
    if first is None:
        return
    if smiles_column is not None and smiles_column.isdecimal() and int(smiles_column):
        delimiter, column = _by_cells(first, ",\t;|")[0], int(smiles_column) - 1
        lines = itertools.chain([first], lines)
    else:
        delimiter = delimiter_of(first) or _by_cells(first, ",\t;|")[0]
        column = _column(_cells(first, delimiter), smiles_column)
    for cells in _rows(lines, delimiter):
        yield _entry(cells, column)


def _entry(cells: list[str] | None, column: int) -> Entry:
    if cells is None:
        return Entry(reason="unparsable", detail="a quoted cell of this row does not end")
    if column >= len(cells):
        what = f"{len(cells)} cells" if cells else "no cells"
        return Entry(reason="empty", detail=f"{what}; the SMILES are in number {column + 1}")
    return Entry(smiles_of(cells[column]))


def _rows(lines: Iterator[str], delimiter: str) -> Iterator[list[str] | None]:
    """The cells of each row; None for a row whose quote never ends, which costs that line only."""
    waiting: deque[str] = deque()
    while True:
        row = _Row(lines, waiting)
        try:
            cells = next(csv.reader(row, delimiter=delimiter), None)
        except csv.Error:
            cells, row.is_open = None, True
        if not row.taken:
            return
        if row.is_open:
            waiting.extendleft(reversed(row.taken[1:]))
        yield None if row.is_open else cells


class _Row:
    """Lines for one row: the csv reader asks for a second one only when a quote is open."""

    def __init__(self, lines: Iterator[str], waiting: deque[str]) -> None:
        self._lines, self._waiting = lines, waiting
        self.taken: list[str] = []
        self.is_open = False
        """Whether more was asked for than there is, or than a row may have."""

    def __iter__(self) -> _Row:
        return self

    def __next__(self) -> str:
        line = None
        if len(self.taken) < QUOTED_LINES and sum(map(len, self.taken)) < QUOTED_CHARACTERS:
            line = self._waiting.popleft() if self._waiting else next(self._lines, None)
        if line is None:
            self.is_open = bool(self.taken)
            raise StopIteration
        self.taken.append(line)
        return line + "\n"


def _column(header: list[str], asked: str | None) -> int:
    """The column of the SMILES."""
    names = ", ".join(cell.strip() for cell in header[:20])
    if asked is not None:
        found = [i for i, cell in enumerate(header) if cell.strip() == asked.strip()]
        found = found or [i for i, c in enumerate(header) if _plain(c) == _plain(asked)]
        if not found:
            raise UserError(f"no column {asked!r} in the table; --smiles-column may be: {names}.")
        return found[0]
    exact = [i for i, cell in enumerate(header) if _plain(cell) == "smiles"]
    found = exact or [i for i, cell in enumerate(header) if _plain(cell) in SMILES_NAMES]
    if not found:
        raise UserError(
            f"no column of the table is called smiles; name one with --smiles-column (or give its "
            f"number, if there is no header): {names}."
        )
    if len(found) > 1:
        several = ", ".join(header[i].strip() for i in found)
        raise UserError(f"the table has several columns of SMILES; --smiles-column: {several}.")
    return found[0]


def _by_cells(line: str, delimiters: str) -> list[str]:
    """Delimiters, the one that makes most cells first."""
    return sorted(delimiters, key=lambda d: -len(_cells(line, d)))


def _cells(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line[:QUOTED_CHARACTERS]], delimiter=delimiter), [])


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())

"""Tables with a SMILES column: CSV, TSV, and their variants from spreadsheets."""

from __future__ import annotations

import csv
import io
import itertools
from collections import deque
from collections.abc import Iterator

from pyscf_ipu.molecule.files.opening import Truncated, bounded_lines
from qm1b.errors import UserError
from qm1b.inputs import ids
from qm1b.inputs.ids import plain
from qm1b.inputs.records import TOO_LONG, Record, smiles_of

SMILES_NAMES = frozenset(
    "smiles smile cansmiles canonicalsmiles smilescanonical isosmiles isomericsmiles "
    "absolutesmiles connectivitysmiles cxsmiles rdkitsmiles openeyesmiles inputsmiles molsmiles "
    "smilesstring ligandsmiles structuresmiles".split()
)
"""Names of a SMILES column, in lower case without any other character."""

QUOTED_LINES = 50
"""Lines that a quoted cell may span before its quote is taken for a mistake."""

QUOTED_CHARACTERS = 100_000
"""Characters that a quoted cell may have; the csv module accepts 131,072."""

NEVER_CLOSED = Record(
    reason="unparsable", detail="a quote in this row is never closed, or a cell is too long"
)


def delimiter_of(header: str) -> str:
    """The delimiter of a header line that names a SMILES column; '' if it names none."""
    for delimiter in _by_cells(header, ",\t;|"):
        if any(plain(cell) in SMILES_NAMES for cell in _cells(header, delimiter)):
            return delimiter
    # Spaces: only if the column is the first, since any line of SMILES may have remarks.
    return " " if plain(header.split(" ")[0]) in SMILES_NAMES else ""


def entries(
    text: io.TextIOWrapper, smiles_column: str | None = None, id_column: str | None = None
) -> Iterator[Record]:
    """A record per row below the header. If `smiles_column` is a number, there is no header.

    Raises:
        UserError: there is no such column, or several match.
    """
    lines = bounded_lines(text)
    first = next(lines, None)
    if first is None:
        return
    if smiles_column is not None and smiles_column.isdecimal() and int(smiles_column):
        delimiter, column = _by_cells(first, ",\t;|")[0], int(smiles_column) - 1
        named = [cell for cell in _cells(first, delimiter) if plain(cell) in SMILES_NAMES]
        if named:
            raise UserError(
                f"the table has a header: give --smiles-column {named[0].strip()}, as numbers are "
                "for tables without one"
            )
        name = ids.of_column_number(id_column)
        lines = itertools.chain([first], lines)
    else:
        delimiter = delimiter_of(first) or _by_cells(first, ",\t;|")[0]
        header = _cells(first, delimiter)
        column, name = _column(header, smiles_column), ids.of_column(header, id_column)
    for row in _rows(lines, delimiter):
        yield row if isinstance(row, Record) else _record(row, column, name)


def _record(cells: list[str], column: int, id_column: int | None) -> Record:
    name = "" if id_column is None else ids.id_of("".join(cells[id_column : id_column + 1]))
    if column >= len(cells):
        what = f"{len(cells)} cells" if cells else "no cells"
        return Record(
            reason="empty", detail=f"{what}; the SMILES are in cell {column + 1}", id=name
        )
    return Record(smiles=smiles_of(cells[column]), id=name)


def _rows(lines: Iterator[str], delimiter: str) -> Iterator[list[str] | Record]:
    """The cells of each row, or why it has none: only that line is lost."""
    waiting: deque[str] = deque()
    while True:
        row = _Row(lines, waiting)
        try:
            cells = next(csv.reader(row, delimiter=delimiter), [])
        except csv.Error:
            cells, row.is_open = [], True
        if not row.taken:
            return
        if row.is_open:
            waiting.extendleft(reversed(row.taken[1:]))
        cut = any(isinstance(line, Truncated) for line in row.taken[: 1 if row.is_open else None])
        yield TOO_LONG if cut else NEVER_CLOSED if row.is_open else cells


class _Row:
    """Lines of one row: the csv reader asks for a second line only while a quote is open."""

    def __init__(self, lines: Iterator[str], waiting: deque[str]) -> None:
        self._lines, self._waiting = lines, waiting
        self.taken: list[str] = []
        self.is_open = False
        """Whether the reader asked for more lines than there are, or than a row may have."""

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
    bare = [plain(cell) for cell in header]
    if asked is not None:
        columns = [i for i, cell in enumerate(header) if cell.strip() == asked.strip()]
        columns = columns or [i for i, cell in enumerate(bare) if cell == plain(asked)]
        if not columns:
            raise UserError(f"the table has no column {asked!r}; --smiles-column may be: {names}")
        return columns[0]
    columns = [i for i, cell in enumerate(bare) if cell == "smiles"]
    columns = columns or [i for i, cell in enumerate(bare) if cell in SMILES_NAMES]
    if not columns:
        raise UserError(
            f"no column of the table is called smiles; name one with --smiles-column, or give its "
            f"number if there is no header: {names}"
        )
    if len(columns) > 1:
        several = ", ".join(header[i].strip() for i in columns)
        raise UserError(
            f"the table has several columns of SMILES; choose with --smiles-column: {several}"
        )
    return columns[0]


def _by_cells(line: str, delimiters: str) -> list[str]:
    """Delimiters, the one that makes the most cells first."""
    return sorted(delimiters, key=lambda d: -len(_cells(line, d)))


def _cells(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line[:QUOTED_CHARACTERS]], delimiter=delimiter), [])

"""Dropped lines as CSV: in a run's folder, and beside an exported file, which cannot hold them.

The lines are somebody else's text, and a spreadsheet runs a cell that begins with = as a formula.
So a text that begins with one of FORMULA has an apostrophe before it in the file, and so has a text
that is only told apart from such a one by the apostrophes before it. `read` takes it away again.

`qm1b.folder.shards` writes the files.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from qm1b.errors import UserError
from qm1b.rows.schema import DROP_FIELDS, Drop

FORMULA = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
"""What a formula may begin with in a spreadsheet; the last four are wide forms of the first."""

_NAMES = [f.name for f in DROP_FIELDS]
_EARLIER = [f.name for f in DROP_FIELDS if f.earlier is None]
_FORMULA = re.compile(f"'*[{re.escape(FORMULA)}]")


def beside(path: Path) -> Path:
    """The file with the dropped lines of an exported file."""
    return path.with_name(f"{path.name}.dropped.csv")


def as_csv(drops: Iterable[Drop], header: bool = True) -> bytes:
    """Dropped lines as CSV in UTF-8, which cannot hold lone surrogates: they become "?"."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    if header:
        writer.writerow(_NAMES)
    for drop in drops:
        texts = (drop.smiles, drop.reason, drop.detail, drop.id)
        writer.writerow([drop.line, *map(guarded, texts)])
    return text.getvalue().encode("utf-8", errors="replace")


def read(path: Path) -> Iterator[Drop]:
    """Dropped lines in the order of the file; raises UserError if `as_csv` did not make it."""
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            rows = csv.reader(stream, strict=True)
            if (names := next(rows, None)) not in (_NAMES, _EARLIER):
                raise ValueError(f"it lacks the columns {', '.join(_NAMES)}")
            for row in rows:
                if len(row) != len(names) or not row[0].isdecimal() or int(row[0]) < 1:
                    what = f"{','.join(row)[:40]!r} in line {rows.line_num} is not a dropped line"
                    raise ValueError(what)
                texts = dict(zip(_NAMES[1:], map(unguarded, row[1:]), strict=False))
                yield Drop(int(row[0]), **texts)
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"{path} cannot be read ({error}); export again") from None


def guarded(text: str) -> str:
    """A text as a cell that no spreadsheet runs."""
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(cell: str) -> str:
    """The text of a cell, also of one that an earlier version wrote without an apostrophe."""
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell

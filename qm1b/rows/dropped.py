"""Dropped lines as CSV: in a run's folder, and beside an exported file, which cannot hold them.

`qm1b.folder.shards` writes the files.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from qm1b.errors import UserError
from qm1b.rows.schema import DROP_FIELDS, Drop

_NAMES = [f.name for f in DROP_FIELDS]


def beside(path: Path) -> Path:
    """The file with the dropped lines of an exported file."""
    return path.with_name(f"{path.name}.dropped.csv")


def as_csv(drops: Iterable[Drop], header: bool = True) -> bytes:
    """Dropped lines as CSV in UTF-8, which cannot hold lone surrogates: they become "?"."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    if header:
        writer.writerow(_NAMES)
    writer.writerows([getattr(drop, name) for name in _NAMES] for drop in drops)
    return text.getvalue().encode("utf-8", errors="replace")


def read(path: Path) -> Iterator[Drop]:
    """Dropped lines in the order of the file; raises UserError if `as_csv` did not make it."""
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            rows = csv.DictReader(stream)
            if rows.fieldnames != _NAMES:
                raise UserError(f"{path} lacks the columns {', '.join(_NAMES)}; export again")
            for row in rows:
                yield Drop(int(row["line"]), row["smiles"], row["reason"], row["detail"])
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"{path} cannot be read ({error}); export again") from None

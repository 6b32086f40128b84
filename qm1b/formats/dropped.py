"""The dropped lines of a run as CSV: in its folder, and beside a file that has no place for them.

`qm1b.store` writes them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import UserError
from ..schema import DROP_FIELDS, Drop

_NAMES = [f.name for f in DROP_FIELDS]


def beside(path: Path) -> Path:
    """Where the dropped lines of an exported file lie."""
    return path.with_name(f"{path.name}.dropped.csv")


def as_csv(drops: Iterable[Drop], header: bool = True) -> bytes:
    """Dropped lines as CSV in UTF-8; what that cannot hold (lone surrogates) becomes "?"."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    if header:
        writer.writerow(_NAMES)
    writer.writerows([getattr(drop, name) for name in _NAMES] for drop in drops)
    return text.getvalue().encode("utf-8", errors="replace")


def read(path: Path) -> Iterator[Drop]:
    """Dropped lines, as they were written; raises UserError if the file is none of ours."""
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            rows = csv.DictReader(stream)
            if rows.fieldnames != _NAMES:
                raise UserError(f"{path} has not the columns {', '.join(_NAMES)}; export again.")
            for row in rows:
                yield Drop(int(row["line"]), row["smiles"], row["reason"], row["detail"])
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"{path} cannot be read ({error}); export again.") from None

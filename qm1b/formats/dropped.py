"""The dropped lines of a run as CSV, beside a file whose format has no place for them.

They are written by `store.write_drops`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from ..errors import UserError
from ..schema import DROP_FIELDS, Drop

_NAMES = [f.name for f in DROP_FIELDS]


def beside(path: Path) -> Path:
    """Where the dropped lines of an exported file lie."""
    return path.with_name(f"{path.name}.dropped.csv")


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

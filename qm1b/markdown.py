"""What all parts of a dataset card are written with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

NOT_STATED = "not stated"


def table(header: tuple[str, ...], rows: Iterable[Iterable[Any]]) -> str:
    """A table in Markdown."""

    def line(cells: Iterable[Any]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(header), "|" + "---|" * len(header), *map(line, rows)])

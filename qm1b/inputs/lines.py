"""SMILES, one a line, with or without trailing columns (GDB: tabs)."""

from __future__ import annotations

import io
from collections.abc import Iterator

from .records import MAX_CHARACTERS, Entry, smiles_of


def entries(text: io.TextIOWrapper) -> Iterator[Entry]:
    """An entry a line. An endless line is cut after MAX_CHARACTERS and never held in memory."""
    for line in bounded_lines(text, MAX_CHARACTERS + 200):
        yield Entry(smiles_of(line))


def bounded_lines(text: io.TextIOWrapper, most: int) -> Iterator[str]:
    """The lines of a text without their ends, each cut after `most` characters."""
    while line := text.readline(most):
        if not line.endswith("\n"):
            while (rest := text.readline(1 << 16)) and not rest.endswith("\n"):
                pass
        yield line.removesuffix("\n")

"""SDF: entries as text, cut at $$$$. What they mean is decided in `qm1b.given`."""

from __future__ import annotations

import io
from collections.abc import Iterator

from .lines import bounded_lines
from .records import MAX_BLOCK_CHARACTERS, Entry

END = "$$$$"

MAX_LINE = 1 << 12


def entries(text: io.TextIOWrapper) -> Iterator[Entry]:
    """An entry for each text between $$$$; blank lines after the last one are none."""
    parts: list[str] = []
    size = 0
    for line in bounded_lines(text, MAX_LINE):
        if line.startswith(END):
            yield _entry(parts, size)
            parts, size = [], 0
            continue
        size += len(line) + 1
        if size <= MAX_BLOCK_CHARACTERS:
            parts.append(line)
    if any(part.strip() for part in parts):
        yield _entry(parts, size)


def _entry(parts: list[str], size: int) -> Entry:
    if size > MAX_BLOCK_CHARACTERS:
        return Entry(reason="too_long", detail=f"more than {MAX_BLOCK_CHARACTERS} characters")
    return Entry(block="\n".join(parts) + "\n")

"""Formats that are cut at lines: SMILES, one per line, and SDF, whose entries end with $$$$."""

import io
from collections.abc import Iterator

from qm1b.inputs import ids
from qm1b.inputs.records import (
    MAX_BLOCK_CHARACTERS,
    MAX_CHARACTERS,
    Record,
    smiles_and_rest,
)

SDF_END = "$$$$"
MAX_SDF_LINE = 1 << 12


def entries(text: io.TextIOWrapper) -> Iterator[Record]:
    """A record per line of SMILES, with or without an id and further columns (GDB: tabs).

    An endless line is cut after MAX_CHARACTERS and never kept in memory.
    """
    for line in bounded_lines(text, MAX_CHARACTERS + 200):
        smiles, rest = smiles_and_rest(line)
        yield Record(smiles=smiles, id=ids.after_smiles(rest))


def sdf_entries(text: io.TextIOWrapper, id_field: str | None = None) -> Iterator[Record]:
    """A record per SDF entry; blank lines after the last one do not count as an entry.

    `qm1b.screening.geometries` reads the text of an entry. Its id is its title, or a data field.
    """
    parts: list[str] = []
    size = 0
    for line in bounded_lines(text, MAX_SDF_LINE):
        if line.startswith(SDF_END):
            yield _sdf(parts, size, id_field)
            parts, size = [], 0
            continue
        size += len(line) + 1
        if size <= MAX_BLOCK_CHARACTERS:
            parts.append(line)
    if any(part.strip() for part in parts):
        yield _sdf(parts, size, id_field)


def bounded_lines(text: io.TextIOWrapper, most: int) -> Iterator[str]:
    """The lines of a text without their ends, each cut after `most` characters."""
    while line := text.readline(most):
        if not line.endswith("\n"):
            while (rest := text.readline(1 << 16)) and not rest.endswith("\n"):
                pass
        yield line.removesuffix("\n")


def _sdf(parts: list[str], size: int, id_field: str | None) -> Record:
    name = ids.of_sdf(parts, id_field)
    if size > MAX_BLOCK_CHARACTERS:
        what = f"more than {MAX_BLOCK_CHARACTERS} characters"
        return Record(reason="too_long", detail=what, id=name)
    return Record(block="\n".join(parts) + "\n", id=name)

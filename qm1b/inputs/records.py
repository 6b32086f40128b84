"""What every input format gives: records, numbered from 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MAX_CHARACTERS = 2000
"""A molecule of 128 AOs has some 25 heavy atoms; a SMILES spends a few characters on each."""

MAX_BLOCK_CHARACTERS = 1 << 18
"""Of an SDF entry or an XYZ frame: some 3,000 atoms. Longer ones are not held in memory."""


class Entry(NamedTuple):
    """A record without its number; `reason` and `detail` are set when it cannot be a molecule."""

    smiles: str = ""
    """As it stands there; '' if there is none."""
    block: str = ""
    """The whole text of an SDF entry or an XYZ frame."""
    reason: str = ""
    detail: str = ""


class Record(NamedTuple):
    """One molecule of the input, or what stands in its place: a line, a row, an entry, a frame."""

    number: int
    """From 1, through all members of an archive."""
    smiles: str = ""
    block: str = ""
    reason: str = ""
    detail: str = ""
    format: str = "smiles"


class InputSummary(NamedTuple):
    """What a first pass over the input learned."""

    n_lines: int
    """Records."""
    sha256: str
    """Of the bytes, unpacked."""
    format: str = "smiles"
    skipped: tuple[str, ...] = ()
    """Members of an archive that are no molecules by their name."""
    checks: Sequence[int] = ()
    """Of the records of each work unit; see `checks`."""


def smiles_of(text: str) -> str:
    """The SMILES of a line or cell: its first word, with its CXSMILES extension if there is one.

    The extension may say that an atom is a radical, so leaving it out would change the molecule.
    """
    columns = text.split(None, 1)
    if not columns:
        return ""
    rest = columns[1] if len(columns) > 1 else ""
    extension = rest[: rest.find("|", 1) + 1] if rest.startswith("|") else ""
    return f"{columns[0]} {extension}" if extension else columns[0]

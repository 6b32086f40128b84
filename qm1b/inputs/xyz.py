"""XYZ and extended XYZ: frames as text.  `pyscf_ipu.molecule.xyz` reads what a frame says."""

import io
from collections.abc import Iterator

from pyscf_ipu.molecule.xyz import is_free_atom
from qm1b.inputs import ids
from qm1b.inputs.lines import bounded_lines
from qm1b.inputs.records import Record

MAX_LINE = 1 << 12

MAX_ATOMS = 2000
"""Larger frames are not kept in memory."""


def entries(text: io.TextIOWrapper, id_key: str | None = None) -> Iterator[Record]:
    """A record per frame. Anything else up to the next number of atoms becomes one record.

    Frames of free atoms, which an exported file begins with, do not count.
    """
    lines = bounded_lines(text, MAX_LINE)
    line = next(lines, None)
    while line is not None:
        if not line.strip():
            line = next(lines, None)
        elif not _is_count(line):
            detail = f"{line.strip()[:40]!r} stands where a number of atoms should"
            while (line := next(lines, None)) is not None and not _is_count(line):
                pass
            yield Record(reason="unparsable", detail=detail)
        else:
            entry, comment, line = _frame(line, lines)
            if not is_free_atom(comment):
                yield entry._replace(id=ids.of_comment(comment, id_key))


def _frame(count: str, lines: Iterator[str]) -> tuple[Record, str, str | None]:
    """The frame below its number of atoms, its comment, and the line after it."""
    n_atoms = int(count)
    comment = next(lines, None)
    said = comment or ""
    atoms: list[str] = []
    n = 0
    while n < n_atoms and (line := next(lines, None)) is not None:
        if _is_count(line):
            what = f"the frame has {n} of {n_atoms} atoms"
            return Record(reason="unparsable", detail=what), said, line
        n += 1
        if n <= MAX_ATOMS:
            atoms.append(line)
    if comment is None or n < n_atoms:
        what = f"the file ends after {n} of {n_atoms} atoms"
        return Record(reason="unparsable", detail=what), said, None
    after = next(lines, None)
    if n_atoms > MAX_ATOMS:
        return Record(reason="too_large", detail=f"{n_atoms} atoms"), said, after
    return Record(block="\n".join([count.strip(), comment, *atoms])), said, after


def _is_count(line: str) -> bool:
    text = line.strip()
    return text.isascii() and text.isdecimal() and 0 < len(text) < 10

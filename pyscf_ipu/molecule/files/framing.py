"""XYZ as frames: where each begins and ends, and what people write between them.

A frame is a number of atoms, a comment, and a line per atom.  Between two frames may stand blank
lines, or a title; QM9's files have three lines below each frame.  What is none of these becomes a
piece with the reason why it is no frame, so that nothing is passed over.
"""

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from pyscf_ipu.molecule.files.opening import bounded_lines
from pyscf_ipu.molecule.files.stated import Reason
from pyscf_ipu.molecule.files.xyz import is_free_atom, number_of

MAX_ATOMS = 2000
"""Larger frames are not kept in memory, and no engine here computes them."""

MAX_CHARACTERS = 1 << 20
"""Of a frame; a comment has at most MAX_LINE."""

MAX_LINE = 1 << 16
LONGEST_COUNT = 24
"""Lines of this length, with all blanks, are no number of atoms."""

CHUNK = 4096
SHOWN = 40
BLANK = " \t\r\n\v\f"
"""Not other spaces: bytes must mean the same in every encoding."""


class Piece(NamedTuple):
    """A frame, or what stands where one should: then `trouble` says why it is none."""

    line: int
    """Number of its first line, from 1."""
    at: int
    """Characters before its first line."""
    first_atom: int = 0
    """Number of the line of its first atom."""
    comment: str = ""
    atoms: tuple[str, ...] = ()
    trouble: str = ""
    reason: Reason = "unparsable"

    @property
    def block(self) -> str:
        """The text of the frame."""
        return "\n".join((str(len(self.atoms)), self.comment, *self.atoms))


def frames_of(text: io.TextIOBase) -> Iterator[Piece]:
    """The frames of a text, one at a time in memory, however long its lines are."""
    return frames(bounded_lines(text, MAX_LINE))


def frames(lines: Iterable[str], line: int = 1, max_atoms: int = MAX_ATOMS) -> Iterator[Piece]:
    """The frames of some lines, with or without their ends; frames of free atoms are left out.

    Args:
        lines: the text.
        line: the number of the first one.
        max_atoms: larger frames are pieces without atoms.
    """
    reader = _Lines(lines, line)
    while (first := reader.next_text()) is not None:
        start, at, title = reader.line - 1, reader.at - len(first), ""
        if not is_count(first):
            if reader.pass_over() or not reader.ahead:
                shown = f"{first.strip()[:SHOWN]!r} stands where a number of atoms should"
                yield Piece(start, at, trouble=f"line {start}: {shown}")
                continue
            title, first = first.strip(), "".join(reader.take(1))
        first_atom = reader.line + 1
        comment = "".join(reader.take(1)).rstrip("\r\n")
        said = f"{comment} {title}" if "=" in title else comment
        atoms, (trouble, reason) = _atoms(reader, int(first), len(comment), max_atoms)
        if not is_free_atom(said):
            if trouble:
                trouble = trouble.replace("the frame", f"line {first_atom - 2}: the frame", 1)
            yield Piece(start, at, first_atom, said, tuple(atoms), trouble, reason)


def is_count(line: str) -> bool:
    """Whether a line is a number of atoms, of fewer than ten digits, and nothing else."""
    text = line.strip(BLANK)
    return text.isdecimal() and text.isascii() and len(text) < 10 and len(line) < LONGEST_COUNT


def is_atom(line: str) -> bool:
    """Whether a line holds the coordinates of an atom, perhaps between other columns."""
    words = line.split()[:5]
    numbers = 0
    for word in words:
        with suppress(ValueError):
            number_of(word)
            numbers += 1
    return numbers >= 3 and numbers >= len(words) - 1


class _Lines:
    """Lines that can be given back."""

    def __init__(self, lines: Iterable[str], line: int) -> None:
        self._lines = iter(lines)
        self.ahead: list[str] = []
        """Lines that were given back, the next one last."""
        self.line, self.at = line, 0

    def take(self, count: int) -> list[str]:
        """The next lines, fewer at the end."""
        taken = [self.ahead.pop() for _ in range(min(count, len(self.ahead)))]
        if len(taken) < count:
            taken += islice(self._lines, count - len(taken))
        self.line += len(taken)
        self.at += sum(map(len, taken))
        return taken

    def give_back(self, lines: Sequence[str]) -> None:
        """Let these be the next lines again."""
        self.ahead += reversed(lines)
        self.line -= len(lines)
        self.at -= sum(map(len, lines))

    def next_text(self) -> str | None:
        """The next line that is not blank; None at the end."""
        while line := self.take(1):
            if line[0].strip(BLANK):
                return line[0]
        return None

    def pass_over(self) -> int:
        """Go to the next number of atoms, or the end; returns how many lines were not blank."""
        passed = 0
        while (line := self.next_text()) is not None:
            if is_count(line):
                self.give_back([line])
                break
            passed += 1
        return passed


Trouble = tuple[str, Reason]
_NONE: Trouble = ("", "unparsable")


def _atoms(lines: _Lines, count: int, of_comment: int, kept: int) -> tuple[list[str], Trouble]:
    """The atoms of a frame, and why it is none if so; takes what belongs to it below them."""
    atoms, there = _taken(lines, count, kept)
    if there < count:
        return [], (f"the frame ends after {there} of {count} atoms", "unparsable")
    left = _left_over(lines)
    if left:
        what = "the number of atoms is too small, or a line too many stands above them"
        return [], (f"the frame has {count} atoms, and {left} is left over: {what}", "unparsable")
    if count > kept:
        return [], (f"the frame has {count} atoms: at most {kept} are read", "too_large")
    if not count:
        return [], ("the frame has no atoms", "unparsable")
    if kept == MAX_ATOMS and max(of_comment - MAX_LINE, sum(map(len, atoms)) - MAX_CHARACTERS) >= 0:
        return [], ("the frame has lines that are too long", "too_long")
    return atoms, _NONE


def _taken(lines: _Lines, count: int, kept: int) -> tuple[list[str], int]:
    """The lines of the atoms, if they are no more than `kept`, and how many are there."""
    atoms: list[str] = []
    there = 0
    is_torn = False
    while there < count and not is_torn and (chunk := lines.take(min(CHUNK, count - there))):
        if min(map(len, chunk)) < LONGEST_COUNT:  # there may be blank lines, and another frame
            end = next((i for i, line in enumerate(chunk) if is_count(line)), len(chunk))
            is_torn = end < len(chunk)
            lines.give_back(chunk[end:])
            chunk = [line for line in chunk[:end] if line.strip(BLANK)]
        there += len(chunk)
        if count <= kept:
            atoms += chunk
    return atoms, there


def _left_over(lines: _Lines) -> str:
    """The line and text of an atom beyond the last, "" if there is none.

    QM9's three lines below a frame are passed over: frequencies, SMILES, InChI.
    """
    below = lines.next_text()
    if below is None or is_count(below):
        lines.give_back([below] if below else [])
        return ""
    line, more = lines.line - 1, lines.take(2)
    if len(more) == 2 and more[1].startswith("InChI="):
        return ""
    lines.give_back([below, *more])
    if not is_atom(below):
        return ""
    lines.pass_over()
    return f"line {line} ({below.strip()[:SHOWN]!r})"

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
from pyscf_ipu.molecule.files.stated import Reason, Refused
from pyscf_ipu.molecule.files.xyz import is_free_atom, number_of

MAX_ATOMS = 2000
"""Larger frames are not kept in memory, and no engine here computes them."""

CHARACTERS_PER_ATOM = 128
"""At most, in a frame of MAX_ATOMS; smaller ones may have longer lines."""

LONGEST_COUNT = 24
"""Lines of this length, with all blanks, are no number of atoms."""

BLANK = " \t\r\n\v\f"
"""Not other spaces: bytes must mean the same in every encoding."""

CHUNK = 256
SHOWN = 40


class Piece(NamedTuple):
    """A frame, or what stands where one should: then `trouble` says why it is none."""

    line: int
    """Number of its first line, from 1, with the title."""
    at: int
    """Characters before that line."""
    count_line: int = 0
    """Number of the line that states the number of atoms."""
    comment: str = ""
    atoms: Sequence[str] = ()
    trouble: Refused | None = None

    @property
    def block(self) -> str:
        """The text of the frame."""
        return "\n".join((str(len(self.atoms)), self.comment, *self.atoms))


def frames_of(text: io.TextIOBase) -> Iterator[Piece]:
    """The frames of a text, one at a time in memory, however long its lines are."""
    return frames(bounded_lines(text))


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
                yield Piece(start, at, trouble=_refused(start, shown))
                continue
            title, first = first.strip(), reader.take(1)[0]
        count_line, count = reader.line - 1, int(first)
        comment = "".join(reader.take(1)).rstrip("\r\n")
        if "=" in title or not comment.strip():
            comment = f"{comment} {title}".lstrip()
        atoms, there = _atoms(reader, count, max_atoms)
        trouble = None
        if there < count or not count:
            end = f"ends after {there} of {count} atoms" if count else "has no atoms"
            trouble = _refused(count_line, f"the frame {end}")
        elif left := _left_over(reader):
            above = f"line {count_line + 2} ({atoms[0].strip()[:SHOWN]!r}) is no atom, or " * bool(
                atoms and not is_atom(atoms[0])
            )
            trouble = _refused(count_line, f"{above}the number {count} is too small: {left}")
        elif count > max_atoms:
            trouble = _refused(count_line, f"{count} atoms: {max_atoms} at most", "too_large")
        elif reader.at - at >= max_atoms * CHARACTERS_PER_ATOM:
            trouble = _refused(count_line, "the frame has endless lines", "too_long")
        if not is_free_atom(comment):
            atoms = () if trouble else atoms
            yield Piece(start, at, count_line, comment=comment, atoms=atoms, trouble=trouble)


def is_count(line: str) -> bool:
    """Whether a line is a number of atoms, of fewer than ten digits, and nothing else."""
    text = line.strip(BLANK)
    return text.isdecimal() and text.isascii() and len(text) < 10 and len(line) < LONGEST_COUNT


def is_atom(line: str) -> bool:
    """Whether a line holds the coordinates of an atom, perhaps between other columns."""
    words, numbers = line.split()[:5], 0
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
        taken: list[str] = []
        while self.ahead and len(taken) < count:
            taken.append(self.ahead.pop())
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


def _refused(line: int, what: str, reason: Reason = "unparsable") -> Refused:
    return Refused(reason, what, f"line {line}: {what}")


def _atoms(lines: _Lines, count: int, kept: int) -> tuple[list[str], int]:
    """The lines of the atoms, if they are no more than `kept`, and how many are there."""
    atoms: list[str] = []
    there, start, is_torn = 0, lines.at, False
    while there < count and not is_torn and (chunk := lines.take(min(CHUNK, count - there))):
        if min(map(len, chunk)) < LONGEST_COUNT:  # there may be blank lines, and another frame
            end = next((i for i, line in enumerate(chunk) if is_count(line)), len(chunk))
            is_torn = end < len(chunk)
            lines.give_back(chunk[end:])
            chunk = [line for line in chunk[:end] if line.strip(BLANK)]
        there += len(chunk)
        if count <= kept and lines.at - start < kept * CHARACTERS_PER_ATOM:
            atoms += chunk
    return atoms, there


def _left_over(lines: _Lines) -> str:
    """The atom beyond the last, as the end of a sentence; "" if there is none.

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
    return f"line {line} ({below.strip()[:SHOWN]!r}) is left over"

"""XYZ and extended XYZ: frames as text, and what a frame says. Angstrom."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from pyscf_ipu.molecule import ATOMIC_NUMBERS

from .lines import bounded_lines
from .records import Entry

MAX_LINE = 1 << 12

MAX_ATOMS = 2000
"""Frames of more are not held in memory."""

HYDROGENS = {"D": 1, "T": 1}
"""Electronic energies know nothing of nuclear masses."""

_KEY = re.compile(r"""([^\s="']+)\s*=\s*("(?:[^"\\]|\\.)*"|'[^']*'|\{[^}]*\}|\S+)""")


_JSON = "_JSON "
"""With which ASE begins a value that it would else misread: the SMILES F, or none at all."""


class Unreadable(ValueError):
    """A frame is not XYZ; the message says where and why."""


@dataclass(frozen=True)
class Frame:
    """What a frame says. A atoms, in its own order."""

    numbers: Int[np.ndarray, " A"]
    positions_angstrom: Float[np.ndarray, "A 3"]
    keys: dict[str, str]
    """Keys of the comment, in small letters, and their values without quotes and ASE's _JSON."""


def entries(text: io.TextIOWrapper) -> Iterator[Entry]:
    """An entry a frame. What is no frame is one entry up to the next number of atoms."""
    lines = bounded_lines(text, MAX_LINE)
    line = next(lines, None)
    while line is not None:
        if not line.strip():
            line = next(lines, None)
        elif not _is_count(line):
            detail = f"{line.strip()[:40]!r} stands where a number of atoms should"
            while (line := next(lines, None)) is not None and not _is_count(line):
                pass
            yield Entry(reason="unparsable", detail=detail)
        else:
            entry, line = _frame(line, lines)
            yield entry


def _frame(count: str, lines: Iterator[str]) -> tuple[Entry, str | None]:
    """The frame below its number of atoms, and the line after it."""
    n_atoms = int(count)
    comment = next(lines, None)
    atoms: list[str] = []
    n = 0
    while n < n_atoms and (line := next(lines, None)) is not None:
        if _is_count(line):
            what = f"the frame has {n} of {n_atoms} atoms"
            return Entry(reason="unparsable", detail=what), line
        n += 1
        if n <= MAX_ATOMS:
            atoms.append(line)
    if comment is None or n < n_atoms:
        what = f"the file ends after {n} of {n_atoms} atoms"
        return Entry(reason="unparsable", detail=what), None
    after = next(lines, None)
    if n_atoms > MAX_ATOMS:
        return Entry(reason="too_large", detail=f"{n_atoms} atoms"), after
    return Entry(block="\n".join([count.strip(), comment, *atoms])), after


def parse(block: str) -> Frame:
    """Read a frame.

    Raises:
        Unreadable: an atom without an element or three coordinates.
    """
    _, comment, *atoms = block.split("\n")
    keys = {name.lower(): _value(text) for name, text in _KEY.findall(comment)}
    element, at = _columns(keys.get("properties", ""))
    numbers, positions = [], []
    for i, line in enumerate(atoms):
        fields = line.split()
        try:
            numbers.append(_number(fields[element]))
            x, y, z = (float(text) for text in fields[at : at + 3])
        except (IndexError, KeyError, ValueError):
            needed = "an element and x, y, z in Angstrom are needed"
            raise Unreadable(f"atom {i + 1} is {line.strip()[:60]!r}: {needed}") from None
        positions.append((x, y, z))
    return Frame(
        np.array(numbers, dtype=np.int64), np.array(positions, dtype=float).reshape(-1, 3), keys
    )


def _value(text: str) -> str:
    """What a value says: without its quotes, and what ASE has put into JSON taken out of it."""
    plain = text.strip("\"'{}")
    if not plain.startswith(_JSON):
        return plain
    # Only a value in JSON holds quotes of its own, so only there do escapes matter: a SMILES in
    # quotes has backslashes that not every program doubles.
    inner = re.sub(r"\\(.)", r"\1", text[1:-1])
    try:
        words = _words(json.loads(inner.removeprefix(_JSON)))
    except (ValueError, RecursionError):
        return plain
    return words.encode("utf-8", errors="replace").decode()  # JSON can say half a character


def _words(value: Any) -> str:
    """A value from JSON as the comment of a frame would say it plainly."""
    if isinstance(value, list):
        return " ".join(map(_words, value))
    if isinstance(value, bool):
        return "T" if value else "F"
    return "" if value is None else str(value)


def _columns(properties: str) -> tuple[int, int]:
    """Columns of the element and of x, from the value of Properties; 0 and 1 without it."""
    columns: dict[str, int] = {}
    at = 0
    parts = properties.split(":")
    for name, width in zip(parts[0::3], parts[2::3], strict=False):
        columns[name.lower()] = at
        at += int(width) if width.isdecimal() and len(width) < 4 else 1
    return columns.get("species", columns.get("z", 0)), columns.get("pos", 1)


def _number(element: str) -> int:
    """Atomic number of a symbol in any case, with or without a label (C1), or of a number."""
    if element.isdecimal():
        number = int(element)
        if not 1 <= number < len(ATOMIC_NUMBERS):
            raise KeyError(element)
        return number
    letters = re.match(r"[A-Za-z]+", element)
    symbol = letters.group().capitalize() if letters else element
    return HYDROGENS.get(symbol) or ATOMIC_NUMBERS[symbol]


def _is_count(line: str) -> bool:
    text = line.strip()
    return text.isascii() and text.isdecimal() and 0 < len(text) < 10

"""SDF and MOL files: where an entry ends, and what it states of charge and spin."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pyscf_ipu.molecule.files.stated import (
    CHARGES,
    MULTIPLICITIES,
    charge_of,
    check_closed_shell,
    multiplicity_of,
)

END = "$$$$"

MAX_CHARACTERS = 1 << 18
"""Of an entry: some 3,000 atoms. Longer ones, and longer lines, are not kept in memory."""

_FIELD = re.compile(r"^>[^<\n]*<([^>\n]*)>[^\n]*\n([^\n]*)", re.MULTILINE)
_STATED = (*CHARGES[:2], *MULTIPLICITIES[:2])
"""Data fields of molecules; others of those names in XYZ mean anything here."""
_RADICALS = re.compile(
    r"^M  RAD +\d+((?: +\d+ +[123])+) *$|^M  V30 .*\bRAD=([123])\b", re.MULTILINE
)
"""The radicals of a V2000 and of a V3000 block: 1 for a singlet, 2 a doublet, 3 a triplet."""


class Entry(NamedTuple):
    """An entry; cut if it is longer than MAX_CHARACTERS."""

    lines: list[str]
    is_cut: bool
    line: int
    """Number of its first line, from 1."""

    @property
    def block(self) -> str:
        """The text of the entry."""
        return "\n".join(self.lines) + "\n"


def entries(lines: Iterable[str]) -> Iterator[Entry]:
    """The entries of some lines; blank lines after the last one do not count as an entry."""
    kept: list[str] = []
    size, first = 0, 1
    for number, line in enumerate(lines, 1):
        if line.startswith(END):
            yield Entry(kept, size > MAX_CHARACTERS, first)
            kept, size, first = [], 0, number + 1
            continue
        size += len(line) + 1
        if size <= MAX_CHARACTERS:
            kept.append(line)
    if any(line.strip() for line in kept):
        yield Entry(kept, size > MAX_CHARACTERS, first)


def stated_charge(block: str, open_shell: bool = False) -> int | None:
    """The charge that data fields state, in e; None if they state none.

    Raises:
        Refused: it is no whole number, or a field states an open shell, which may not be one.
    """
    known = _stated(block)
    if not open_shell:
        check_closed_shell(known)
    return charge_of(known)


def stated_multiplicity(block: str) -> int | None:
    """The multiplicity that data fields state, or else the atoms' radicals; None if none does.

    Radicals are parallel to each other, and one that is a singlet has no unpaired electrons.

    Raises:
        Refused: it is no positive whole number.
    """
    stated = multiplicity_of(_stated(block), ())
    radicals = [
        int(one)
        for listed, single in _RADICALS.findall(block)
        for one in single or listed.split()[1::2]
    ]
    if stated is None and radicals:
        return 1 + sum(radicals) - len(radicals)
    return stated


def _stated(block: str) -> dict[str, str]:
    keys = {name.lower(): value for name, value in _FIELD.findall(block)}
    return {key: value for key, value in keys.items() if key in _STATED}

"""XYZ and extended XYZ: what a frame says.  The one reader of frames for all three packages.

Positions are in Angstrom, or in the unit that the comment states.  Extended XYZ puts `key=value`
pairs into the comment line; a value may stand in quotes or braces, and ASE writes what it would
otherwise misread as JSON behind `_JSON`.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from pyscf_ipu.elements.spellings import ATOMIC_NUMBERS
from pyscf_ipu.errors import InvalidMolecule
from pyscf_ipu.molecule.stated import (
    MOMENTS,
    Refused,
    angstrom_per_unit,
    charge_of,
    check_closed_shell,
    check_stated_once,
    is_periodic,
)

HYDROGENS = {"D": 1, "T": 1}
"""Isotopes with a symbol of their own; electronic energies do not depend on nuclear masses."""

FREE_ATOM = "IsolatedAtom"
"""The `config_type` of a frame that gives the energy of a free atom, and is not a molecule."""

_PAIR = re.compile(r"""(?<![^\s="'}])([^\s="']+)\s*=\s*("(?:[^"\\]|\\.)*"|'[^']*'|\{[^}]*\}|\S+)""")
_QUOTES = {'"': '"', "'": "'", "{": "}"}
_JSON = "_JSON "
_FIRST = slice(0, 1)


class Unreadable(ValueError):
    """An atom of a frame cannot be read; `atom` is its number from 0."""

    def __init__(
        self, atom: int, line: str, needed: str = "an element and x, y, z in Angstrom are needed"
    ) -> None:
        super().__init__(f"atom {atom + 1} is {line.strip()[:60]!r}: {needed}")
        self.atom = atom


@dataclass(frozen=True)
class Frame:
    """What a frame says. A atoms, in its own order."""

    numbers: Int[np.ndarray, " A"]
    positions_angstrom: Float[np.ndarray, "A 3"]
    keys: dict[str, str]
    """Keys of the comment in lower case, and their values as `comment_keys` gives them."""
    moments: tuple[str, ...] = ()
    """Magnetic moments, if the atoms have a column of them."""
    vectors: Float[np.ndarray, "A 3"] | None = None
    """The column that was asked for, in its own unit; None if the atoms do not have it."""

    def check(self) -> None:
        """Raise Refused if the frame is periodic, or states that it is not a closed shell."""
        if is_periodic(self.keys):
            what = "the frame is periodic (pbc or a lattice): only molecules are computed"
            raise Refused("periodic", "periodic", what)
        check_closed_shell(self.keys, self.moments)

    @property
    def charge(self) -> int | None:
        """The stated charge in e, if there is one; raises Refused if it cannot be understood."""
        return charge_of(self.keys)


def parse_frame(block: str, vectors: str | None = None) -> Frame:
    """Read a frame: the number of atoms, the comment, and one line per atom.

    `Frame.check` says whether what it states can be computed.

    Args:
        block: the text of the frame.
        vectors: a further column of three numbers per atom, such as forces, in lower case.

    Raises:
        Unreadable: an atom without an element or three coordinates, or with a vector that is not
            three numbers.
        Refused: an unknown unit, or a key that is stated twice.
    """
    _, comment, *atoms = block.split("\n")
    pairs = [(name.lower(), _value(text)) for name, text in _PAIR.findall(comment)]
    check_stated_once(pairs)
    keys = dict(pairs)
    unit = angstrom_per_unit(keys)
    columns = columns_of(keys.get("properties", ""))
    element, at = columns.get("species", columns.get("z", _FIRST)).start, columns["pos"].start
    numbers, positions, moments = [], [], []
    for i, line in enumerate(atoms):
        fields = line.split()
        try:
            numbers.append(_number(fields[element]))
            x, y, z = (float(text) for text in fields[at : at + 3])
        except (IndexError, KeyError, ValueError):
            raise Unreadable(i, line) from None
        positions.append((x, y, z))
        moments += fields[columns[MOMENTS]] if MOMENTS in columns else []
    angstrom = np.array(positions, dtype=float).reshape(-1, 3) * unit
    found = _vectors(atoms, columns[vectors]) if vectors in columns else None
    return Frame(
        np.array(numbers, dtype=np.int64), angstrom, keys, moments=tuple(moments), vectors=found
    )


def comment_keys(comment: str) -> dict[str, str]:
    """The keys of a comment line and their values, without quotes, escapes and ASE's `_JSON`."""
    return {key: _value(text) for key, text in _PAIR.findall(comment)}


def is_free_atom(comment: str) -> bool:
    """Whether the comment of a frame says `config_type=IsolatedAtom`, as MACE wants it.

    Such a frame gives an energy to subtract; readers of molecules skip it.
    """
    if FREE_ATOM not in comment:
        return False
    keys = {key.lower(): value for key, value in comment_keys(comment).items()}
    return keys.get("config_type") == FREE_ATOM


def first_frame(path: Path) -> Frame:
    """The first frame of a file that is not a free atom's.

    Raises:
        FileNotFoundError: there is no such file.
        InvalidMolecule: the file is not XYZ (the message names the line), or states what cannot be
            computed: a lattice, an open shell, an unknown unit.
    """
    if not path.is_file():
        raise FileNotFoundError(f"XYZ file {path} does not exist or is not a file; check the path.")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    skipped = 0
    while lines[3:] and is_free_atom(lines[1]):
        lines, skipped = lines[3:], skipped + 3
    first = lines[0].strip() if lines else ""
    if not first.isdecimal() or int(first) < 1:
        raise _not_xyz(path, skipped + 1, f"is {first[:40]!r}", needed="the number of atoms")
    n_atoms = int(first)
    rows = lines[2 : 2 + n_atoms]
    try:
        frame = parse_frame("\n".join([first, *lines[1:2], *rows] if rows else [first, ""]))
        if len(rows) == n_atoms:
            frame.check()
    except Refused as error:
        raise InvalidMolecule(f"{path}: {error}") from error
    except Unreadable as error:
        needed = "an element symbol and x, y, z in Angstrom"
        line = rows[error.atom].strip()[:60]
        raise _not_xyz(path, skipped + error.atom + 3, f"is {line!r}", needed=needed) from error
    if len(rows) < n_atoms:
        what = f"is missing: the file ends after {len(rows)} of {n_atoms} atoms"
        raise _not_xyz(path, skipped + len(rows) + 3, what, needed="an atom")
    return frame


def stated_charge(frame: Frame, path: Path, charge: int | None) -> int:
    """The charge of a frame: that of its comment or the given one, which must not contradict it.

    Raises:
        InvalidMolecule: the comment's charge is not a whole number, or another one than given.
    """
    try:
        stated = frame.charge
    except Refused as error:
        raise InvalidMolecule(f"{path}: {error}") from error
    if stated is not None and charge is not None and stated != charge:
        raise InvalidMolecule(
            f"{path} states charge {stated:+d}, which contradicts charge={charge}: leave one out"
        )
    return (stated or 0) if charge is None else charge


def _value(text: str) -> str:
    closing = _QUOTES.get(text[0])
    if closing is None:
        return text
    plain = text[1:-1] if len(text) > 1 and text[-1] == closing else text.strip("\"'{}")
    if text[0] == '"':
        # Only \\ and \" are escapes: the backslash of an unescaped SMILES is part of it.
        plain = re.sub(r'\\([\\"])', r"\1", plain)
    if not plain.startswith(_JSON):
        return plain
    try:
        words = _words(json.loads(plain.removeprefix(_JSON)))
    except (ValueError, RecursionError):
        return plain
    return words.encode("utf-8", errors="replace").decode()  # JSON can state half a character


def _words(value: object) -> str:
    """A value from JSON as the comment of a frame would state it plainly."""
    if isinstance(value, list):
        return " ".join(map(_words, value))
    if isinstance(value, bool):
        return "T" if value else "F"
    return "" if value is None else str(value)


def _vectors(atoms: list[str], column: slice) -> Float[np.ndarray, "A 3"]:
    """Three numbers of every atom; raises Unreadable."""
    found = []
    for i, line in enumerate(atoms):
        try:
            x, y, z = (float(text) for text in line.split()[column])
        except ValueError:
            needed = f"three numbers are needed in columns {column.start + 1} to {column.stop}"
            raise Unreadable(i, line, needed) from None
        found.append((x, y, z))
    return np.array(found, dtype=float).reshape(-1, 3)


def columns_of(properties: str) -> dict[str, slice]:
    """Columns of the atoms by name in lower case, from the value of Properties."""
    columns: dict[str, slice] = {}
    at = 0
    parts = properties.split(":")
    for name, width in zip(parts[0::3], parts[2::3], strict=False):
        start, at = at, at + (int(width) if width.isdecimal() and len(width) < 4 else 1)
        columns[name.lower()] = slice(start, at)
    return {"pos": slice(1, 4)} | columns


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


def _not_xyz(path: Path, line: int, what: str, needed: str) -> InvalidMolecule:
    return InvalidMolecule(
        f"line {line} of XYZ file {path} {what}: {needed} is needed there; an XYZ file has the "
        "number of atoms, a comment, then one line per atom"
    )

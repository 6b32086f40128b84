"""XYZ and extended XYZ: what a frame says.  The one reader of frames for all three packages.

Positions are in Angstrom, or in the unit that the comment states.  Extended XYZ puts `key=value`
pairs into the comment line; a value may stand in quotes or braces, and ASE writes what it would
otherwise misread as JSON behind `_JSON`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int

from pyscf_ipu.molecule.files.labels import Unknown, atomic_numbers
from pyscf_ipu.molecule.files.stated import (
    ANGSTROM_PER_UNIT,
    MOMENTS,
    Refused,
    angstrom_per_unit,
    charge_of,
    check_closed_shell,
    check_stated_once,
    is_periodic,
    multiplicity_of,
)
from pyscf_ipu.molecule.files.two_integers import charge_and_multiplicity

FREE_ATOM = "IsolatedAtom"
"""The `config_type` of a frame that gives the energy of a free atom, and is not a molecule."""

_PAIR = re.compile(r"""(?<![^\s="'}])([^\s="']+)\s*=\s*("(?:[^"\\]|\\.)*"|'[^']*'|\{[^}]*\}|\S+)""")
_QUOTES = {'"': '"', "'": "'", "{": "}"}
_JSON = "_JSON "
_UNITS = {unit for unit in ANGSTROM_PER_UNIT if len(unit) > 1}
_PLAIN = {"species": slice(0, 1), "pos": slice(1, 4)}
_SPECIES = ("species", "z", "numbers")
"""Columns that name elements; several of them must agree."""
_WORDS = re.compile(r"\b(charge|multiplicity|mult)\s*(?::\s*|\s)([-+]?\d+)(?![\w.])", re.IGNORECASE)
_NOTHING = re.compile(r"(?<!\S)(\w+)\s*=\s*$")
MAX_PROPERTIES = 1024
_PROPERTY = re.compile(r"([^:].*?):([SRIL]):(\d{1,3})(?::|$)", re.IGNORECASE)
_FOREIGN = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+))(?:[dD]|\*\^)([-+]?\d{1,4})")


class Unreadable(Refused):
    """An atom of a frame cannot be read; `atom` is its number from 0."""

    def __init__(
        self, atom: int, line: str, needed: str = "an element and x, y, z in Angstrom are needed"
    ) -> None:
        what = f"atom {atom + 1} is {line.strip()[:60]!r}: {needed}"
        super().__init__("unparsable", "unreadable atom", what)
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
    pair: str = ""
    """The comment, if its two integers were read as charge and multiplicity of an ion."""

    def check(self, open_shell: bool = False) -> None:
        """Raise Refused if the frame is periodic, or states that it is not a closed shell.

        Args:
            open_shell: whether it need not be one.
        """
        if is_periodic(self.keys):
            what = "the frame is periodic (pbc or a lattice): only molecules are computed"
            raise Refused("periodic", "periodic", what)
        if not open_shell:
            check_closed_shell(self.keys, self.moments)

    @property
    def charge(self) -> int | None:
        """The stated charge in e, if there is one; raises Refused if it cannot be understood."""
        return charge_of(self.keys)

    @property
    def multiplicity(self) -> int | None:
        """The stated one, 2S + 1, if there is one; raises Refused if it cannot be understood."""
        return multiplicity_of(self.keys, self.moments)


def parse_frame(block: str, vectors: str | None = None) -> Frame:
    """Read the text of a frame; see `frame_of`."""
    _, comment, *atoms = block.split("\n")
    return frame_of(comment, atoms, vectors)


def frame_of(
    comment: str, atoms: Sequence[str], vectors: str | None = None, charge: int | None = None
) -> Frame:
    """Read a frame: its comment, and one line per atom.

    `Frame.check` says whether what it states can be computed.

    Args:
        comment: the line above the atoms.
        atoms: their lines.
        vectors: a further column of three numbers per atom, such as forces, in lower case.
        charge: in e, if it was given elsewhere.

    Raises:
        Unreadable: an atom without an element or three coordinates, or with a vector that is not
            three numbers.
        Refused: an unknown unit, a key that is stated twice, a ghost atom, a label or two integers
            in the comment that may mean several things.
    """
    pairs = [(name.lower(), _value(text)) for name, text in _PAIR.findall(comment)]
    pairs += [(name.lower(), text) for name, text in _in_words(comment)]
    check_stated_once(pairs)
    keys = dict(pairs)
    if comment.strip().lower() in _UNITS:
        keys["units"] = comment.strip()
    columns = _checked_columns(keys.get("properties", ""))
    rows = [line.split() for line in atoms]
    positions = _numbers(atoms, rows, columns["pos"]) * angstrom_per_unit(keys)
    places = [columns[name].start for name in _SPECIES if name in columns]
    numbers, *others = [_elements(atoms, rows, place, angstrom=positions) for place in places]
    if not all(np.array_equal(numbers, other) for other in others):
        what = "the columns species and Z name different elements: keep one of them"
        raise Refused("mismatch", "contradictory elements", what)
    if columns == _PLAIN:
        _check_no_code(rows, numbers)
    protons = int(numbers.sum())
    more = charge_and_multiplicity(_without_keys(comment), keys, protons, charge=charge)
    pair = comment.strip() if int(more.get("charge", 0)) else ""
    moments = [w for name in MOMENTS if name in columns for row in rows for w in row[columns[name]]]
    asked = columns.get(vectors) if vectors else None
    others = _numbers(atoms, rows, asked) if asked else None
    keys |= more
    return Frame(numbers, positions, keys, moments=tuple(moments), vectors=others, pair=pair)


def _in_words(comment: str) -> list[tuple[str, str]]:
    """What a comment states as `charge: 2` or `charge 2`, and a key with nothing behind it."""
    empty = [(name, "") for name in _NOTHING.findall(comment)]
    lower = comment.lower()
    if "charge" not in lower and "mult" not in lower:
        return empty
    return empty + _WORDS.findall(_PAIR.sub(" ", comment))


def _elements(
    atoms: Sequence[str], rows: Sequence[Sequence[str]], place: int, angstrom: np.ndarray
) -> Int[np.ndarray, " A"]:
    """The atomic numbers of a column; raises Unreadable."""
    labels = [row[place] if place < len(row) else "" for row in rows]
    try:
        return atomic_numbers(labels, angstrom)
    except Unknown as error:
        i = labels.index(error.args[0])
        raise Unreadable(i, atoms[i]) from None


def _check_no_code(rows: Sequence[Sequence[str]], numbers: Int[np.ndarray, " A"]) -> None:
    """Refuse atoms whose second or third column is no coordinate.

    GAMESS puts nuclear charges before x, Molden a count and atomic numbers, Gaussian -1 and 0 for
    atoms that are frozen or not.
    """
    if not all(len(row) >= 5 for row in rows):
        return
    second, third = ([row[i] for row in rows] for i in (1, 2))
    charges = [str(z) for z in numbers]
    counts = [str(i + 1) for i in range(len(rows))]
    plain = [text.removesuffix(".0") for text in second]
    is_code = plain == charges or (second == counts and third == charges)
    if is_code or set(second) <= {"0", "-1"}:
        what = "the second column holds codes or atomic numbers, not x: an element and x, y, z are"
        raise Refused("ambiguous", "columns before x", f"{what} needed; leave out that column")


def _without_keys(comment: str) -> str:
    """What a comment says besides its keys, unless it neither begins nor ends with an integer."""
    if "=" not in comment:
        return comment
    words = comment.split()
    states = words[0].strip("+-,").isdigit() or words[-1].isdigit()
    return _PAIR.sub(" ", comment) if states else ""


@lru_cache(maxsize=64)
def _checked_columns(properties: str) -> Mapping[str, slice]:
    """The columns of the atoms; raises Refused if the value of Properties cannot be read."""
    columns = columns_of(properties)
    if not properties:
        return columns
    names = [name.lower() for name, _, _ in _PROPERTY.findall(properties[:MAX_PROPERTIES])]
    is_whole = len(properties) <= MAX_PROPERTIES and not _PROPERTY.sub("", properties)
    if is_whole and names.count("pos") == 1 and not columns.keys().isdisjoint(_SPECIES):
        return columns
    what = f"Properties={properties[:60]}: name:type:width, such as species:S:1:pos:R:3, are needed"
    raise Refused("unparsable", "unreadable Properties", what)


def number_of(text: str) -> float:
    """A number, also with an exponent of Fortran (1D-3) or Mathematica (1*^-3).

    Raises:
        ValueError: it is none.
    """
    foreign = _FOREIGN.fullmatch(text)
    if "_" in text or not text.isascii():  # which Python reads
        raise ValueError(text)
    return float(f"{foreign[1]}e{foreign[2]}" if foreign else text)


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


def _numbers(
    atoms: Sequence[str], rows: Sequence[Sequence[str]], column: slice
) -> Float[np.ndarray, "A 3"]:
    """Three numbers of every atom; raises Unreadable."""
    try:
        values = [float(text) for row in rows for text in row[column]]
        if any("_" in line or not line.isascii() for line in atoms):
            raise ValueError("digits that only Python reads")
        return np.array(values, dtype=float).reshape(len(rows), 3)
    except ValueError:
        return np.array([_three(i, line, column) for i, line in enumerate(atoms)], dtype=float)


def _three(atom: int, line: str, column: slice) -> tuple[float, float, float]:
    try:
        x, y, z = map(number_of, line.split()[column])
    except ValueError:
        where = f"in columns {column.start + 1} to {column.stop}"
        plain = "an element and x, y, z in Angstrom are needed"
        needed = plain if column == _PLAIN["pos"] else f"three numbers are needed {where}"
        raise Unreadable(atom, line, needed) from None
    return x, y, z


def columns_of(properties: str) -> dict[str, slice]:
    """Columns of the atoms by name in lower case, from the value of Properties."""
    if not properties:
        return dict(_PLAIN)
    columns: dict[str, slice] = {}
    at = 0
    for name, _, width in _PROPERTY.findall(properties[:MAX_PROPERTIES]):
        start, at = at, at + int(width)
        columns[name.lower()] = slice(start, at)
    return columns

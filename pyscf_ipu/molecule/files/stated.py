"""What the comment of a frame states about the molecule: charge, spin, unit, periodicity.

Programs use one word for several things: PySCF's `spin` is the number of unpaired electrons, others
mean by it 2S + 1, as here.  A number that is the other one does not go with the number of
electrons, which is refused later.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeVar

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM

Reason = Literal[
    "periodic", "radical", "mismatch", "unparsable", "ghost", "ambiguous", "too_large", "too_long"
]
"""Keys of qm1b's table of reasons."""

Value = TypeVar("Value", int, float)

CHARGES = (
    *("charge", "total_charge", "molecular_charge", "net_charge", "q"),
    *("chg", "chrg", "tot_charge", "mol_charge", "formal_charge"),
)
MULTIPLICITIES = (
    *("multiplicity", "spin_multiplicity", "molecular_multiplicity", "mult"),
    *("spin", "total_spin", "spinmult", "spin_mult"),
)
"""Keys that state 2S + 1."""

UNPAIRED = ("uhf", "unpaired", "2s")
"""Keys that state 2S."""

TOTAL_SPIN = "s"
"""The key that states S."""

SPINS = (*MULTIPLICITIES, *UNPAIRED, TOTAL_SPIN)
"""Keys from which the multiplicity follows."""

UNITS = ("units", "unit", "coordinates_units", "coordinates_unit")
"""Keys that state the unit of the positions."""

MOMENTS = ("initial_magmoms", "initial_magmom", "magmoms", "magmom")
"""ASE's magnetic moments, given or computed, in the comment or as a column of the atoms."""

STATED = (*CHARGES, *SPINS, *UNITS, *MOMENTS, "pbc", "lattice")
"""Keys that are read here; one that a comment has twice must have one value."""

ANGSTROM_PER_UNIT = {
    **dict.fromkeys(("angstrom", "angstroms", "angstroem", "ang", "ang.", "a"), 1.0),
    **dict.fromkeys(("ångström", "ångströms", "ångstrom", "angström", "å"), 1.0),
    **dict.fromkeys(("bohr", "bohrs", "a0", "au", "a.u.", "b"), BOHR_TO_ANGSTROM),
}
"""Spellings in lower case; `a` and `b` are PySCF's."""

_NOT_PERIODIC = ("f", "false", "0", "no", "none", "fff")

MAX_STATED_CHARGE = 1000

MOMENT_ROUNDING = 0.01
"""Smaller moments, in Bohr magnetons, are noise of the program that computed them."""


class Refused(InvalidMolecule):
    """A frame states what cannot be computed or understood; `short` is why, in a few words."""

    def __init__(self, reason: Reason, short: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.short = short


def is_periodic(keys: Mapping[str, str]) -> bool:
    """Whether the keys of a frame say that it is periodic; a lattice alone says so too."""
    lower = {key.lower(): value for key, value in keys.items()}
    stated = re.findall(r"[^\s,.;\[\](){}\"']+", lower.get("pbc", "").lower())
    if not stated:
        return "lattice" in lower
    return not all(word in _NOT_PERIODIC for word in stated)


def whole_number(text: str) -> int | None:
    """A number as a comment states it ("1", "-1.0"); None if it is not a whole number."""
    try:
        value = float(text) if text.isascii() and "_" not in text else None
        return int(value) if value is not None and value == int(value) else None
    except (ValueError, OverflowError):
        return None


def charge_of(keys: Mapping[str, str]) -> int | None:
    """The charge that the keys (in lower case) state, in e; None if they state none.

    Raises:
        Refused: it is not a whole number, or two keys disagree.
    """

    def value_of(key: str) -> int:
        charge = whole_number(keys[key])
        if charge is not None and abs(charge) <= MAX_STATED_CHARGE:
            return charge
        what = f"{key}={keys[key].strip()[:40]!r}: it must be a whole number, in e"
        raise Refused("unparsable", "unreadable charge", what)

    return _agreed(keys, CHARGES, value_of, what="charges")


def check_closed_shell(keys: Mapping[str, str], moments: Sequence[str] = ()) -> None:
    """Refuse what is not a singlet.

    Args:
        keys: those of the comment, in lower case.
        moments: magnetic moments from a column of the atoms, as text.

    Raises:
        Refused: a multiplicity other than 1, a magnetic moment, or one that cannot be read.
    """
    if any(abs(moment) >= MOMENT_ROUNDING for one in _moments(keys, moments) for moment in one):
        raise Refused(
            "radical",
            "magnetic moments",
            "magnetic moments (magmoms) are not zero, which means an open shell: the calculation "
            "is restricted (closed shell); if a singlet is meant, remove them",
        )
    multiplicity = multiplicity_of(keys)
    if multiplicity not in (None, 1):
        shown = " and ".join(_shown(key, keys[key]) for key in SPINS if key in keys)
        raise Refused(
            "radical",
            "open shell",
            f"{shown} is an open shell (the multiplicity 2S + 1 is {multiplicity}): the "
            "calculation is restricted (closed shell); leave this molecule out",
        )


def multiplicity_of(keys: Mapping[str, str], moments: Sequence[str] = ()) -> int | None:
    """The multiplicity 2S + 1 that the keys state, or magnetic moments; None if none does.

    Args:
        keys: those of the comment, in lower case.
        moments: magnetic moments from a column of the atoms, as text.

    Raises:
        Refused: it cannot be read, or two keys disagree.
    """
    stated = _agreed(keys, SPINS, lambda key: _multiplicity(key, keys[key]), what="multiplicities")
    # A file of ASE's may have the moment of the molecule beside those of its atoms.
    totals = {abs(sum(one)) for one in _moments(keys, moments)}
    total = max(totals, default=0.0)
    if stated is not None and total >= MOMENT_ROUNDING and round(total) + 1 != stated:
        what = f"multiplicity {stated} and magnetic moments (magmoms) that add up to {total:.3g}"
        raise Refused("mismatch", "contradictory spins", f"{what} contradict each other: keep one")
    if stated is not None or total < MOMENT_ROUNDING:
        return stated
    if total - min(totals) >= MOMENT_ROUNDING or abs(total - round(total)) >= MOMENT_ROUNDING:
        shown = " and ".join(f"{one:.3g}" for one in sorted(totals))
        what = f"magnetic moments (magmoms) add up to {shown}: one whole number is needed"
        raise Refused("unparsable", "unreadable magnetic moments", what)
    return round(total) + 1


def angstrom_per_unit(keys: Mapping[str, str]) -> float:
    """The unit of the positions in Angstrom; 1 if the keys (in lower case) do not state it.

    Raises:
        Refused: it is no known unit, or two keys disagree.
    """

    def value_of(key: str) -> float:
        unit = keys[key].strip()
        if unit.lower() in ANGSTROM_PER_UNIT:
            return ANGSTROM_PER_UNIT[unit.lower()]
        what = f"{key}={unit[:40]!r}: the positions must be in Angstrom or Bohr"
        raise Refused("unparsable", "unknown unit", what)

    return _agreed(keys, UNITS, value_of, what="units") or 1.0


def _agreed(
    keys: Mapping[str, str], names: Sequence[str], value_of: Callable[[str], Value], what: str
) -> Value | None:
    """The one value that these keys state; None if there is none of them."""
    values = {key: value_of(key) for key in names if key in keys}
    if len(set(values.values())) > 1:
        all_of_them = " and ".join(f"{key}={keys[key].strip()}" for key in values)
        message = f"{all_of_them} contradict each other: keep one"
        raise Refused("mismatch", f"contradictory {what}", message)
    return next(iter(values.values()), None)


def check_stated_once(pairs: Sequence[tuple[str, str]]) -> None:
    """Refuse a comment that states something of `STATED` twice, with different values.

    Args:
        pairs: keys in lower case and their values.

    Raises:
        Refused: a key has two values.
    """
    first: dict[str, str] = {}
    for key, value in pairs:
        if key in STATED and first.setdefault(key, value) != value:
            what = f"{key} is stated twice, as {first[key][:40]!r} and {value[:40]!r}: keep one"
            raise Refused("mismatch", f"contradictory {key}", what)


def _multiplicity(key: str, text: str) -> int:
    """The multiplicity that a key states: itself, the number of unpaired electrons, or the spin."""
    shown, singlet = _shown(key, text), _shown(key, str(int(key in MULTIPLICITIES)))
    if key == TOTAL_SPIN:
        multiplicity = _from_spin(text.strip())
    else:
        number = whole_number(text)
        multiplicity = number if number is None or key in MULTIPLICITIES else number + 1
    if multiplicity is None:
        what = f"{shown}: it must be a whole number, the multiplicity 2S + 1"
        raise Refused("unparsable", "unreadable multiplicity", what)
    if multiplicity < 1:
        raise Refused(
            "radical",
            f"{key} below 1",
            f"{shown}: it means the multiplicity 2S + 1, which is 1 for a closed shell, and not "
            f"the number of unpaired electrons as in PySCF; write {singlet} or leave it out",
        )
    return multiplicity


def _shown(key: str, text: str) -> str:
    """A key and its value as they are written."""
    return f"{'S' if key == TOTAL_SPIN else key}={text.strip()[:40]}"


def _from_spin(text: str) -> int | None:
    """The multiplicity of a spin such as 0, 0.5 or 1/2; None if it is none."""
    try:
        doubled = float(text.removesuffix("/2")) if text.endswith("/2") else 2 * float(text)
    except ValueError:
        return None
    return whole_number(str(doubled + 1))


def _moments(keys: Mapping[str, str], of_atoms: Sequence[str]) -> list[list[float]]:
    """Magnetic moments of each key and of a column of the atoms."""
    stated = [keys[key].replace(",", " ").split() for key in MOMENTS if key in keys]
    return [[_moment(word) for word in words] for words in (*stated, of_atoms) if words]


def _moment(word: str) -> float:
    """One magnetic moment; raises Refused unless it is a finite number."""
    try:
        moment = float(word)
    except ValueError:
        moment = math.nan
    if math.isfinite(moment):
        return moment
    what = f"magnetic moment {word[:40]!r}: magnetic moments must be numbers"
    raise Refused("unparsable", "unreadable magnetic moments", what)

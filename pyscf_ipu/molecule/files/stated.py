"""What the comment of a frame states about the molecule: charge, spin, unit, periodicity.

A comment of two integers, perhaps with the formula behind them, states charge and multiplicity.
The engine is restricted (closed shell), so a spin can only be agreed to or refused.  Programs use
one word for several things: PySCF's `spin` is the number of unpaired electrons, others mean by it
2S + 1, as here.  Only what is a closed shell in both meanings passes.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from pyscf_ipu.elements.spellings import ATOMIC_NUMBERS
from pyscf_ipu.errors import InvalidMolecule
from pyscf_ipu.units import BOHR_TO_ANGSTROM

Reason = Literal[
    "periodic", "radical", "mismatch", "unparsable", "ghost", "ambiguous", "too_large", "too_long"
]
"""Keys of qm1b's table of reasons."""

CHARGES = ("charge", "total_charge", "molecular_charge", "net_charge", "q")
MULTIPLICITIES = (
    *("multiplicity", "spin_multiplicity", "molecular_multiplicity", "mult"),
    *("spin", "total_spin"),
)
"""Keys that state 2S + 1."""

TOTAL_SPIN = "s"
"""The key that states S."""

UNITS = ("units", "unit", "coordinates_units", "coordinates_unit")
"""Keys that state the unit of the positions."""

MOMENTS = ("initial_magmoms", "initial_magmom", "magmoms", "magmom")
"""ASE's magnetic moments, given or computed, in the comment or as a column of the atoms."""

STATED = (*CHARGES, *MULTIPLICITIES, TOTAL_SPIN, *UNITS, *MOMENTS, "pbc", "lattice")
"""Keys that are read here; one that a comment has twice must have one value."""

ANGSTROM_PER_UNIT = {
    **dict.fromkeys(("angstrom", "angstroms", "angstroem", "ang", "ang.", "a"), 1.0),
    **dict.fromkeys(("ångström", "ångströms", "ångstrom", "angström", "å"), 1.0),
    **dict.fromkeys(("bohr", "bohrs", "a0", "au", "a.u.", "b"), BOHR_TO_ANGSTROM),
}
"""Spellings in lower case; `a` and `b` are PySCF's."""

MAX_STATED_CHARGE = 1000

MAX_PAIR_CHARGE = 8
"""Two integers of which the first is larger are no charge and multiplicity."""

MOMENT_ROUNDING = 0.01
"""Smaller moments, in Bohr magnetons, are noise of the program that computed them."""

_TWO_INTEGERS = re.compile(
    r"([-+]?\d{1,9})[\s,]+([-+]?\d{1,9})(?:\s+((?:[A-Z][a-z]?\d{0,4}){1,40}))?"
)
_OF_FORMULA = re.compile(r"([A-Z][a-z]?)(\d*)")


class Refused(InvalidMolecule):
    """A frame states what cannot be computed or understood; `short` is why, in a few words."""

    def __init__(self, reason: Reason, short: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.short = short


def is_periodic(keys: Mapping[str, str]) -> bool:
    """Whether the keys of a frame say that it is periodic; a lattice alone says so too."""
    lower = {key.lower(): value for key, value in keys.items()}
    periodic = lower.get("pbc", "T T T" if "lattice" in lower else "")
    return any(word[:1] in "Tt1" for word in periodic.replace(",", " ").split())


def whole_number(text: str) -> int | None:
    """A number as a comment states it ("1", "-1.0"); None if it is not a whole number."""
    try:
        value = float(text)
        return int(value) if value == int(value) else None
    except (ValueError, OverflowError):
        return None


def charge_of(keys: Mapping[str, str]) -> int | None:
    """The charge that the keys (in lower case) state, in e; None if they state none.

    Raises:
        Refused: it is not a whole number, or two keys disagree.
    """
    found: dict[str, int] = {}
    for key in CHARGES:
        if key not in keys:
            continue
        charge = whole_number(keys[key])
        if charge is None or abs(charge) > MAX_STATED_CHARGE:
            what = f"{key}={keys[key].strip()[:40]!r}: it must be a whole number, in e"
            raise Refused("unparsable", "unreadable charge", what)
        found[key] = charge
    if len(set(found.values())) > 1:
        both = " and ".join(f"{key}={charge:+d}" for key, charge in found.items())
        raise Refused(
            "mismatch", "contradictory charges", f"{both} contradict each other: keep one"
        )
    return next(iter(found.values()), None)


def check_closed_shell(keys: Mapping[str, str], moments: Sequence[str] = ()) -> None:
    """Refuse what is not a singlet.

    Args:
        keys: those of the comment, in lower case.
        moments: magnetic moments from a column of the atoms, as text.

    Raises:
        Refused: a multiplicity other than 1, a magnetic moment, or one that cannot be read.
    """
    for key in MULTIPLICITIES:
        if key in keys:
            _check_multiplicity(key, keys[key])
    if TOTAL_SPIN in keys:
        _check_multiplicity("S", keys[TOTAL_SPIN])
    stated = [word for key in MOMENTS for word in keys.get(key, "").replace(",", " ").split()]
    _check_moments([*stated, *moments])


def charge_and_multiplicity(
    text: str, keys: Mapping[str, str], protons: int, charge: int | None
) -> dict[str, str]:
    """What a comment of two integers states, as keys; nothing for any other comment.

    Args:
        text: the comment without its keys.
        keys: those keys, in lower case.
        protons: the sum of the atomic numbers.
        charge: the charge that was given otherwise, which makes another one here meaningless.

    Raises:
        Refused: there are two integers, which cannot be these, and no charge is given.
    """
    pair = _TWO_INTEGERS.fullmatch(text.strip())
    if pair is None or (pair[3] and _protons(pair[3]) != protons):
        return {}
    given = charge_of(keys) if charge is None else charge
    stated, multiplicity = int(pair[1]), int(pair[2])
    electrons, unpaired = protons - stated, multiplicity - 1
    fit = 0 <= unpaired <= electrons and (electrons - unpaired) % 2 == 0
    if fit and abs(stated) <= MAX_PAIR_CHARGE and given in (None, stated):
        of_spin = any(key in keys for key in (*MULTIPLICITIES, TOTAL_SPIN))
        spin = {} if of_spin else {"multiplicity": str(multiplicity)}
        return {"charge": str(stated)} | spin
    if given is None:
        raise Refused(
            "ambiguous",
            "ambiguous comment",
            f"the comment {text.strip()!r} might be charge and multiplicity, which do not fit "
            f"nuclei of {protons} protons: state the charge as charge=, such as charge=0",
        )
    return {}


def angstrom_per_unit(keys: Mapping[str, str]) -> float:
    """The unit of the positions in Angstrom; 1 if the keys (in lower case) do not state it.

    Raises:
        Refused: it is no known unit, or two keys disagree.
    """
    found: dict[str, float] = {}
    for key in UNITS:
        if key not in keys:
            continue
        text = keys[key].strip()
        if text.lower() not in ANGSTROM_PER_UNIT:
            what = f"{key}={text[:40]!r}: the positions must be in Angstrom or Bohr"
            raise Refused("unparsable", "unknown unit", what)
        found[key] = ANGSTROM_PER_UNIT[text.lower()]
    if len(set(found.values())) > 1:
        both = " and ".join(f"{key}={keys[key].strip()}" for key in found)
        raise Refused("mismatch", "contradictory units", f"{both} contradict each other: keep one")
    return next(iter(found.values()), 1.0)


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


def _protons(formula: str) -> int:
    parts = _OF_FORMULA.findall(formula)
    return sum(ATOMIC_NUMBERS.get(symbol, 0) * int(count or 1) for symbol, count in parts)


def _check_multiplicity(key: str, text: str) -> None:
    """Refuse another multiplicity than 1; the key S states the spin, from which it follows."""
    shown, singlet = f"{key}={text.strip()[:40]}", f"{key}={0 if key == 'S' else 1}"
    multiplicity = _from_spin(text.strip()) if key == "S" else whole_number(text)
    if multiplicity == 1:
        return
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
    raise Refused(
        "radical",
        "open shell",
        f"{shown} is an open shell (the multiplicity 2S + 1 is {multiplicity}): the calculation is "
        f"restricted (closed shell) and computes only {singlet}; leave this molecule out",
    )


def _from_spin(text: str) -> int | None:
    """The multiplicity of a spin such as 0, 0.5 or 1/2; None if it is none."""
    try:
        doubled = float(text.removesuffix("/2")) if text.endswith("/2") else 2 * float(text)
    except ValueError:
        return None
    return whole_number(str(doubled + 1))


def _check_moments(words: Sequence[str]) -> None:
    for word in words:
        try:
            moment = float(word)
        except ValueError:
            what = f"magnetic moment {word[:40]!r}: magnetic moments must be numbers"
            raise Refused("unparsable", "unreadable magnetic moments", what) from None
        if abs(moment) >= MOMENT_ROUNDING or moment != moment:
            raise Refused(
                "radical",
                "magnetic moments",
                f"magnetic moments (magmoms) are not zero ({word[:40]}), which means an open "
                "shell: the calculation is restricted (closed shell); if a singlet is meant, "
                "remove them",
            )

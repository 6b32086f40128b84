"""Where in a frame of extended XYZ the target stands, and in which unit: said, never guessed.

The keys that are looked for are the target's names followed by a unit (`gap_au`, `gap_eV`,
`U0_hartree`, `dipole_debye`). A bare name (`gap`) says nothing of its unit, so `--unit` has to;
`energy` alone may be in eV (ASE) or not. A dipole moment may be its length or the vector. Without a
gap, homo and lumo give it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..errors import UserError
from ..targets import UNITS, Target, canonical_unit, target_of


@dataclass(frozen=True)
class Term:
    """A key of a frame, with its unit."""

    key: str
    unit: str
    per_atomic: float
    sign: float = 1.0
    vector: bool = False
    """Whether it may be a vector, whose length is meant."""

    def of(self, text: str) -> float:
        """The value in atomic units.

        Raises:
            ValueError: it is not a number, nor three of a vector.
        """
        values = [float(word) for word in text.replace(",", " ").split()]
        if len(values) != 1 and not (self.vector and len(values) == 3):
            raise ValueError(f"{len(values)} numbers")
        value = values[0] if len(values) == 1 else math.hypot(*values)
        return self.sign * value / self.per_atomic


@dataclass(frozen=True)
class Lookup:
    """The keys whose sum is the target."""

    terms: tuple[Term, ...]

    @property
    def units(self) -> dict[str, str]:
        """The unit of each key, as the file has it."""
        return {term.key: term.unit for term in self.terms}

    def missing(self, comment: Mapping[str, str]) -> list[str]:
        """The keys that a frame lacks."""
        return [term.key for term in self.terms if term.key not in comment]

    def value(self, comment: Mapping[str, str], where: str) -> float:
        """The target of a frame in its atomic unit; `where` names the frame in messages.

        Raises:
            UserError: a value is no number.
        """
        total = 0.0
        for term in self.terms:
            try:
                total += term.of(comment[term.key])
            except ValueError:
                raise UserError(
                    f"{where}: {term.key} is {comment[term.key][:40]!r}; it must be a "
                    f"number{' or a vector of three' * term.vector}."
                ) from None
        return total


def lookup(
    target: Target, names: Iterable[str], key: str | None, unit: str | None, where: str
) -> Lookup:
    """Find the target among the keys of a file's first frame.

    Args:
        target: what is looked for.
        names: the keys of the frame.
        key: the key to take, if the user gave it (`--key`).
        unit: the unit, if the user gave it (`--unit`).
        where: the file, for messages.

    Returns:
        The `Lookup`.

    Raises:
        UserError: no such key, no unit, or a unit that contradicts the key's.
    """
    there = list(names)
    if unit is not None:
        target.per_atomic(unit)  # an unknown unit is said before anything is looked for
    if key is not None:
        if key not in there:
            raise UserError(f"{where} has no key {key!r}; its first frame has {_listed(there)}.")
        return Lookup((_term(target, key, unit, where),))
    found = _find(target, there, unit, where)
    if found is not None:
        return Lookup((found,))
    if target.name == "gap":
        lumo, homo = (_find(target_of(name), there, unit, where) for name in ("lumo", "homo"))
        if lumo is not None and homo is not None:
            return Lookup((lumo, replace(homo, sign=-1.0)))
    looked = ", ".join(f"{stem}_UNIT or {stem}" for stem in target.stems)
    raise UserError(
        f"{where} has no {target.name} (looked for {looked}, in small or capital letters); its "
        f"first frame has {_listed(there)}: name one with --key."
    )


def _find(target: Target, there: list[str], unit: str | None, where: str) -> Term | None:
    """The key with a unit in its name, else the bare one; None if there is neither."""
    named = {stem: _named(target, stem, there) for stem in target.stems}
    named = {stem: keys for stem, keys in named.items() if keys}
    if not named:
        bare = [name for name in there if name.lower() in target.stems]
        if len(bare) > 1:
            raise UserError(f"{where} has {_listed(bare)}: say which is meant with --key.")
        return _term(target, bare[0], unit, where) if bare else None
    if len(named) > 1:
        several = [keys[0] for keys in named.values()]
        raise UserError(f"{where} has {_listed(several)}: say which is meant with --key.")
    (keys,) = named.values()
    if unit is not None:
        fits = [key for key in keys if target.same_unit(suffix_unit(target, key) or "", unit)]
        keys = fits or keys
    return _term(target, keys[0], unit, where)


def _named(target: Target, stem: str, there: list[str]) -> list[str]:
    """Keys of a stem with a unit, atomic units first."""
    wanted = [f"{stem}_{unit}" for unit in UNITS[target.quantity]]
    return [name for text in wanted for name in there if name.lower() == text]


def suffix_unit(target: Target, key: str) -> str | None:
    """The unit that a key's name ends in, None if it has none."""
    units = UNITS[target.quantity]
    # The longest first: e_angstrom before angstrom, mev before ev.
    ends = sorted(units, key=len, reverse=True)
    return next((unit for unit in ends if key.lower().endswith(f"_{unit}")), None)


def _term(target: Target, key: str, unit: str | None, where: str) -> Term:
    said = suffix_unit(target, key)
    if said is None and unit is None:
        raise UserError(
            f"{where}: the key {key!r} does not say its unit; give --unit, one of "
            f"{target.allowed_units}."
        )
    if said is not None and unit is not None and not target.same_unit(said, unit):
        raise UserError(
            f"{where}: --unit is {unit!r}, but the key {key!r} says {said}; leave --unit out, or "
            "name another key with --key."
        )
    per_atomic = target.per_atomic(said or unit or "")
    used = target.unit if per_atomic == 1 else canonical_unit(said or unit or "")
    return Term(key, used, per_atomic, vector=target.quantity == "dipole")


def _listed(names: list[str]) -> str:
    return ", ".join(names) if names else "none"

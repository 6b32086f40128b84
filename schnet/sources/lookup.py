"""Which keys of extended XYZ hold the target, and in which unit: stated in the file or by the user.

The keys of a target are its names followed by a unit (`gap_au`, `gap_eV`, `U0_hartree`,
`dipole_debye`). A bare name (`gap`) has no unit, so it needs `--unit`: `energy` alone is in eV if
ASE wrote it, but others use other units. A dipole moment may be its length or the vector. Without a
gap, homo and lumo give it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from schnet.errors import UserError
from schnet.samples.targets import UNITS, Target, canonical_unit, target_of


@dataclass(frozen=True)
class Term:
    """A key of a frame, with its unit."""

    key: str
    unit: str
    per_atomic: float
    sign: float = 1.0
    vector: bool = False
    """Whether it may be a vector; then its length is the value."""

    def of(self, text: str) -> float:
        """The value in atomic units; raises ValueError for anything but a number or a vector."""
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
        """Unit of each key in the file."""
        return {term.key: term.unit for term in self.terms}

    def missing(self, comment: Mapping[str, str]) -> list[str]:
        """The keys that a frame lacks."""
        return [term.key for term in self.terms if term.key not in comment]

    def value(self, comment: Mapping[str, str], where: str) -> float:
        """The target of a frame in its atomic unit; raises UserError, with `where` as the name of
        the frame, if a value is not a number."""
        total = 0.0
        for term in self.terms:
            try:
                total += term.of(comment[term.key])
            except ValueError:
                raise UserError(
                    f"{where}: {term.key} is {comment[term.key][:40]!r}; it must be a "
                    f"number{' or a vector of three' * term.vector}"
                ) from None
        return total


def lookup(
    target: Target, names: Iterable[str], key: str | None, unit: str | None, where: str
) -> Lookup:
    """Find the target among the keys of a file's first frame.

    Args:
        target: the property to find.
        names: the keys of the frame.
        key: the key to take, if the user gave it (`--key`).
        unit: the unit, if the user gave it (`--unit`).
        where: the file, for messages.

    Raises:
        UserError: no such key, no unit, or a unit that contradicts the key's.
    """
    first = _FirstFrame(list(names), unit, where)
    if unit is not None:
        target.per_atomic(unit)  # refuse an unknown unit before a missing key
    if key is not None:
        if key not in first.names:
            raise UserError(f"{where} has no key {key!r}; its first frame has {first.listed()}")
        return Lookup((first.term(target, key),))
    found = first.find(target)
    if found is not None:
        return Lookup((found,))
    if target.name == "gap":
        lumo, homo = (first.find(target_of(name)) for name in ("lumo", "homo"))
        if lumo is not None and homo is not None:
            return Lookup((lumo, replace(homo, sign=-1.0)))
    looked = ", ".join(f"{stem}_UNIT or {stem}" for stem in target.stems)
    raise UserError(
        f"{where} has no {target.name} (looked for {looked}, in small or capital letters); its "
        f"first frame has {first.listed()}: name one with --key"
    )


@dataclass(frozen=True)
class _FirstFrame:
    """The keys of a file's first frame, and the unit that the user gave."""

    names: list[str]
    unit: str | None
    where: str

    def listed(self) -> str:
        return ", ".join(self.names) or "none"

    def find(self, target: Target) -> Term | None:
        """The key with a unit in its name, else the bare one; None if there is neither."""
        by_stem = [keys for stem in target.stems if (keys := self._with_unit(target, stem))]
        if by_stem:
            first = self._only_one([keys[0] for keys in by_stem])
            if self.unit is not None:
                same = (k for k in by_stem[0] if target.same_unit(_said(target, k), self.unit))
                first = next(same, first)
            return self.term(target, first)
        bare = [name for name in self.names if name.lower() in target.stems]
        return self.term(target, self._only_one(bare)) if bare else None

    def term(self, target: Target, key: str) -> Term:
        """A key with the unit of its name, or the user's; raises UserError if they differ."""
        said = _said(target, key)
        unit = said or self.unit
        if unit is None:
            raise UserError(
                f"{self.where}: the key {key!r} does not say its unit; give --unit, one of "
                f"{target.allowed_units}"
            )
        if said and self.unit is not None and not target.same_unit(said, self.unit):
            raise UserError(
                f"{self.where}: --unit is {self.unit!r}, but the key {key!r} says {said}; leave "
                "--unit out, or name another key with --key"
            )
        per_atomic = target.per_atomic(unit)
        used = target.unit if per_atomic == 1 else canonical_unit(unit)
        return Term(key, used, per_atomic, vector=target.quantity == "dipole")

    def _with_unit(self, target: Target, stem: str) -> list[str]:
        """Keys of a stem with a unit, atomic units first."""
        wanted = [f"{stem}_{unit}" for unit in UNITS[target.quantity]]
        return [name for text in wanted for name in self.names if name.lower() == text]

    def _only_one(self, keys: list[str]) -> str:
        if len(keys) > 1:
            raise UserError(f"{self.where} has {', '.join(keys)}: say which is meant with --key")
        return keys[0]


def _said(target: Target, key: str) -> str:
    """The unit at the end of a key; '' if there is none."""
    # The longest first: e_angstrom before angstrom, mev before ev.
    units = sorted(UNITS[target.quantity], key=len, reverse=True)
    return next((unit for unit in units if key.lower().endswith(f"_{unit}")), "")

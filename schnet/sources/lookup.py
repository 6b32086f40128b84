"""Which keys of extended XYZ hold the target, and in which unit: stated in the file or by the user.

The keys of a target are its names followed by a unit (`gap_au`, `gap_eV`, `U0_hartree`,
`dipole_debye`). A bare name (`gap`) has no unit, so it needs `--unit`: `energy` alone is in eV if
ASE wrote it, but others use other units. A dipole moment may be its length or the vector. Without a
gap, homo and lumo give it.

Forces are a column of the atoms: `forces` or `REF_forces`, followed by a unit
(`forces_ev_angstrom`), or else in the unit of the energy per Angstrom.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Float32

from pyscf_ipu.molecule.files.xyz import columns_of
from schnet.errors import UserError
from schnet.samples.targets import FORCES, UNITS, Target, canonical_unit, target_of


@dataclass(frozen=True)
class FrameKey:
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

    terms: tuple[FrameKey, ...]
    forces: FrameKey | None = None
    """The column of the forces, if the target has them; its key is in lower case."""

    @property
    def forces_column(self) -> str | None:
        """The name of the forces, if the target has them."""
        return self.forces.key if self.forces else None

    @property
    def units(self) -> dict[str, str]:
        """Unit of each key in the file."""
        terms = self.terms if self.forces is None else (*self.terms, self.forces)
        return {term.key: term.unit for term in terms}

    def missing(self, comment: Mapping[str, str]) -> list[str]:
        """The keys, and the column of forces, that a frame lacks."""
        keys = [term.key for term in self.terms if term.key not in comment]
        if self.forces and self.forces.key not in _columns(comment):
            keys.append(self.forces.key)
        return keys

    def atomic_forces(
        self, column: Float[np.ndarray, "A 3"] | None
    ) -> Float32[np.ndarray, "A 3"] | None:
        """The forces in hartree/bohr from the column of a frame; None if the target has none."""
        if self.forces is None or column is None:
            return None
        return (column / self.forces.per_atomic).astype(np.float32)

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
    target: Target, comment: Mapping[str, str], key: str | None, unit: str | None, where: str
) -> Lookup:
    """Find the target among the keys of a file's first frame, and the forces among its columns.

    Args:
        target: the property to find.
        comment: the keys of the frame.
        key: the key to take, if the user gave it (`--key`).
        unit: the unit, if the user gave it (`--unit`).
        where: the file, for messages.

    Raises:
        UserError: no such key or column, no unit, or a unit that contradicts the key's.
    """
    terms = _terms(target, _FirstFrame(list(comment), unit, where), key)
    if not target.has_forces:
        return Lookup(terms)
    return Lookup(terms, _forces(_columns(comment), terms[0], where))


def _terms(target: Target, first: _FirstFrame, key: str | None) -> tuple[FrameKey, ...]:
    """The keys whose sum is the target; raises as `lookup`."""
    unit, where = first.unit, first.where
    if unit is not None:
        target.per_atomic(unit)  # refuse an unknown unit before a missing key
    if key is not None:
        if key not in first.names:
            raise UserError(f"{where} has no key {key!r}; its first frame has {first.listed()}")
        return (first.term(target, key),)
    term = first.find(target)
    if term is not None:
        return (term,)
    if target.name == "gap":
        lumo, homo = (first.find(target_of(name)) for name in ("lumo", "homo"))
        if lumo is not None and homo is not None:
            return lumo, replace(homo, sign=-1.0)
    looked = ", ".join(f"{stem}_UNIT or {stem}" for stem in target.stems)
    raise UserError(
        f"{where} has no {target.number} (looked for {looked}, in small or capital letters); its "
        f"first frame has {first.listed()}: name one with --key"
    )


def _columns(comment: Mapping[str, str]) -> list[str]:
    """The columns of a frame's atoms, in lower case."""
    properties = (value for key, value in comment.items() if key.lower() == "properties")
    return [*columns_of(next(properties, ""))]


def _forces(columns: list[str], energy: FrameKey, where: str) -> FrameKey:
    """The column of the forces that belong to an energy; raises as `lookup`."""
    stems = [FORCES, f"ref_{FORCES}"]
    if energy.key.lower().startswith("ref_"):
        stems.reverse()
    units = UNITS["force"]
    names = [name for stem in stems for name in (*(f"{stem}_{u}" for u in units), stem)]
    bare = next((name for name in names if name in columns), None)
    unit = (bare or "").removeprefix("ref_").removeprefix(f"{FORCES}_")
    if bare is not None and unit in units:
        return FrameKey(bare, unit, units[unit])
    if bare is None:
        raise UserError(
            f"{where} has no forces (looked for columns {FORCES} and REF_{FORCES}, in small or "
            f"capital letters); its first frame has {', '.join(columns)}: train on the energy "
            "alone with --target energy, or compute forces with `qm1b generate --forces`"
        )
    unit = f"{energy.unit}_angstrom"
    if energy.per_atomic == 1.0:
        raise UserError(
            f"{where}: the column {bare!r} does not say its unit, and with an energy in hartree "
            f"({energy.key}) it may be per Bohr or per Angstrom: name it {bare}_hartree_bohr, "
            f"{bare}_hartree_angstrom or {bare}_ev_angstrom"
        )
    return FrameKey(bare, unit, UNITS["force"][unit])


@dataclass(frozen=True)
class _FirstFrame:
    """The keys of a file's first frame, and the unit that the user gave."""

    names: list[str]
    unit: str | None
    where: str

    def listed(self) -> str:
        return ", ".join(self.names) or "none"

    def find(self, target: Target) -> FrameKey | None:
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

    def term(self, target: Target, key: str) -> FrameKey:
        """A key with the unit of its name, or the user's; raises UserError if they differ."""
        stated = _said(target, key)
        unit = stated or self.unit
        if unit is None:
            raise UserError(
                f"{self.where}: the key {key!r} does not say its unit; give --unit, one of "
                f"{target.allowed_units}"
            )
        if stated and self.unit is not None and not target.same_unit(stated, self.unit):
            raise UserError(
                f"{self.where}: --unit is {self.unit!r}, but the key {key!r} says {stated}; leave "
                "--unit out, or name another key with --key"
            )
        per_atomic = target.per_atomic(unit)
        used = target.unit if per_atomic == 1 else canonical_unit(unit)
        return FrameKey(key, used, per_atomic, vector=target.quantity == "dipole")

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

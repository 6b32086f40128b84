"""Where auxiliary functions lie: groups of shells of one kind, one after another.

They follow from the shape and the level, as the AOs do.  A shell that an element lacks, and every
shell of an empty slot, has zero coefficients: its functions take part in nothing.
"""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from pyscf_ipu.elements.auxiliary.choice import auxiliary_shells
from pyscf_ipu.elements.auxiliary.common import (
    AuxiliaryKind,
    AuxiliaryLevel,
    common_kinds,
    hermite_coefficients,
    in_common,
)
from pyscf_ipu.numerics.hermite import n_hermite
from pyscf_ipu.numerics.two_words import Pair, split
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.shape import Shape, SlotClass, class_members
from pyscf_ipu.xc.registry import functional


class AuxiliaryTable(NamedTuple):
    """One auxiliary shell of a slot class: a row for each of E elements, and one for padding."""

    exponents: Pair  # [E+1, K], 1/Bohr^2
    hermite: Pair  # [E+1, K, f, h], see `common.hermite_coefficients`


@dataclass(frozen=True)
class AuxiliaryGroup:
    """All n auxiliary shells of one kind; their functions lie one after another."""

    kind: AuxiliaryKind
    source: tuple[tuple[int, int], ...]
    """(slot class, shell of the class) per run of shells."""
    atom: Int[np.ndarray, " n"]  # slot of each shell
    first: int
    """Number of the first function."""

    @property
    def n_shells(self) -> int:
        return len(self.atom)

    @property
    def n_functions(self) -> int:
        return self.n_shells * self.kind.n_functions


@dataclass(frozen=True)
class AuxiliaryLayout:
    """The auxiliary functions of a shape."""

    groups: tuple[AuxiliaryGroup, ...]

    @property
    def n_functions(self) -> int:
        return sum(group.n_functions for group in self.groups)

    @property
    def order(self) -> int:
        """Highest Hermite order of a function."""
        return max(group.kind.l for group in self.groups)


def auxiliary_level(settings: Settings) -> AuxiliaryLevel:
    """What decides the auxiliary basis of a calculation."""
    return AuxiliaryLevel(settings.basis, settings.cart, functional(settings.xc).pyscf_name)


def check_auxiliary(numbers: np.ndarray, settings: Settings) -> None:
    """Whether every element of a molecule has auxiliary functions.

    Raises:
        InvalidMolecule: one has none, or beyond i shells.
    """
    level = auxiliary_level(settings)
    for z in sorted(set(map(int, numbers))):
        auxiliary_shells(z, level.basis, level.xc)


@functools.lru_cache(maxsize=256)
def auxiliary_layout(shape: Shape, level: AuxiliaryLevel) -> AuxiliaryLayout:
    """Lay the auxiliary functions of a shape out; cached."""
    owner = shape.slot_class()
    by_kind: dict[AuxiliaryKind, list] = {}
    for c, slot in enumerate(shape.classes):
        atoms = np.flatnonzero(owner == c).astype(np.int32)
        for s, kind in enumerate(slot_kinds(slot, level)):
            by_kind.setdefault(kind, []).append(((c, s), atoms))
    groups: list[AuxiliaryGroup] = []
    for kind, runs in sorted(by_kind.items(), key=lambda item: (item[0].l, -item[0].n_prim)):
        first = groups[-1].first + groups[-1].n_functions if groups else 0
        source = tuple(source for source, _ in runs)
        groups.append(
            AuxiliaryGroup(kind, source, np.concatenate([a for _, a in runs]), first=first)
        )
    return AuxiliaryLayout(tuple(groups))


def slot_kinds(slot: SlotClass, level: AuxiliaryLevel) -> tuple[AuxiliaryKind, ...]:
    """The auxiliary shells of a slot, which hold those of every element that it may hold."""
    members = class_members(slot.family, slot.kinds, level.basis, cart=level.cart)
    return common_kinds(members, level)


def auxiliary_tables(
    slot: SlotClass, level: AuxiliaryLevel, dtype: str
) -> tuple[AuxiliaryTable, ...]:
    """Tables of a slot class, one per shell."""
    members = class_members(slot.family, slot.kinds, level.basis, cart=level.cart)
    kinds = slot_kinds(slot, level)
    rows = [in_common(z, kinds, level) for z in members]
    tables = []
    for s, kind in enumerate(kinds):
        exponents = [row[s].exponents for row in rows] + [np.ones(kind.n_prim)]
        hermite = [hermite_coefficients(row[s], kind.cart) for row in rows]
        nothing = np.zeros((kind.n_prim, kind.n_functions, n_hermite(kind.l)))
        tables.append(
            AuxiliaryTable(
                split(np.stack(exponents), dtype), split(np.stack([*hermite, nothing]), dtype)
            )
        )
    return tuple(tables)

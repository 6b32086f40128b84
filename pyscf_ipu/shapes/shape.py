"""The shape of a molecule: everything a compiled program depends on, and nothing else.

Elements, exponents, charges, electron number and geometry are data.  A shape counts *slots*: an
atom slot of a class holds any element whose shells look alike (C, N, O and F in most bases).
Hydrogens are rounded up to fixed limits, so that a few programs serve a whole chemical space.
"""

import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.elements.atomic_grid import Grid, atomic_grid
from pyscf_ipu.elements.basis import ElementBasis, ShellKind, element_basis
from pyscf_ipu.elements.cartesian import Cart

# Elements of one family share a slot class when their shells look alike.  Noble gases stand apart
# because their atomic grids are smaller: a hydrogen slot must not pay for helium.
FAMILIES = (
    *((1,), (2,), tuple(range(3, 10)), (10,), tuple(range(11, 18)), (18,)),
    *(tuple(range(19, 36)), (36,), tuple(range(37, 54)), (54,), tuple(range(55, 86)), (86,)),
)

FEW = 10
"""An element may share a slot if it lacks at most one in FEW of the slot's functions, as C and N
beside O and F in def2-TZVPD, where these have one p shell more."""


@dataclass(frozen=True)
class SlotClass:
    """A kind of atom: its family of elements, its shells and the points of its atomic grid."""

    family: tuple[int, ...]
    kinds: tuple[ShellKind, ...]
    n_grid: int

    @property
    def n_ao(self) -> int:
        return sum(kind.n_functions for kind in self.kinds)

    @property
    def is_hydrogen(self) -> bool:
        return self.family == (1,)


@dataclass(frozen=True)
class Shape:
    """Slots per class, heavy classes first: the key of a compiled program."""

    classes: tuple[SlotClass, ...]
    counts: tuple[int, ...]

    @property
    def n_atoms(self) -> int:
        return sum(self.counts)

    @property
    def n_hydrogen(self) -> int:
        return sum(n for c, n in zip(self.classes, self.counts, strict=True) if c.is_hydrogen)

    @property
    def n_heavy(self) -> int:
        return self.n_atoms - self.n_hydrogen

    @property
    def n_ao(self) -> int:
        return sum(c.n_ao * n for c, n in zip(self.classes, self.counts, strict=True))

    @property
    def n_pairs(self) -> int:
        return self.n_ao * (self.n_ao + 1) // 2

    @property
    def n_grid(self) -> int:
        return sum(c.n_grid * n for c, n in zip(self.classes, self.counts, strict=True))

    @property
    def label(self) -> str:
        return (
            f"{self.n_heavy} heavy + {self.n_hydrogen} H "
            f"({self.n_ao} AOs, {self.n_grid} grid points)"
        )

    def slot_class(self) -> Int[np.ndarray, " A"]:
        """Class index of every atom slot."""
        return np.repeat(np.arange(len(self.classes), dtype=np.int32), self.counts)


HEAVY_LIMITS = (9, 13, 18, 25, 36)
"""The numbers of slots for atoms other than hydrogen in the coarsest shapes."""


def padded_heavy(n_heavy: int, coarse: int = 0) -> int:
    """Slots for atoms other than hydrogen: their number but in the coarsest shapes."""
    limits = HEAVY_LIMITS if coarse > 1 and n_heavy else ()
    return next((n for n in limits if n >= n_heavy), n_heavy)


def hydrogen_limits(n_heavy: int, coarse: int = 0) -> tuple[int, ...]:
    """The numbers of hydrogen slots offered beside `n_heavy` other atoms, ascending.

    Fixed fractions of the saturated count 2 n + 2, chosen from the hydrogen histograms of GDB-11:
    finer where a slot costs more time, coarser where it would only cost compilations.

    Args:
        n_heavy: atoms other than hydrogen.
        coarse: 1 for only the largest one, or from seven heavy atoms on the largest two: half as
            many programs, and a fifth more time for a molecule.  2 for only the largest one.
    """
    saturated = 2 * n_heavy + 2
    if n_heavy <= 4:
        fractions: tuple[float, ...] = (1.0,)
    elif n_heavy <= 6:
        fractions = (0.58, 1.0)
    elif n_heavy == 7:
        fractions = (0.43, 0.62, 1.0)
    else:
        fractions = (0.4, 0.55, 0.7, 1.0)
    if coarse:
        fractions = fractions[-2:] if n_heavy >= 7 and coarse == 1 else fractions[-1:]
    return tuple(math.ceil(f * saturated - 1e-9) for f in fractions)


def padded_hydrogens(n_heavy: int, n_hydrogen: int, coarse: int = 0) -> int:
    """Hydrogen slots for a molecule; beyond saturation (H2, ions) the exact number."""
    if n_heavy == 0:
        return n_hydrogen
    return next((n for n in hydrogen_limits(n_heavy, coarse) if n >= n_hydrogen), n_hydrogen)


@functools.cache
def slot_class(number: int, basis: str, cart: Cart, grid: Grid | int) -> SlotClass:
    """The class of slots that an element occupies."""
    element_basis(number, basis, cart)  # raises InvalidMolecule
    family = family_of(number)
    kinds = slot_kinds(number, basis, cart)
    members = class_members(family, kinds, basis, cart=cart)
    points = max(len(atomic_grid(z, grid).weights) for z in members)
    return SlotClass(family, kinds, points)


@functools.cache
def class_members(
    family: tuple[int, ...], kinds: tuple[ShellKind, ...], basis: str, cart: Cart
) -> tuple[int, ...]:
    """Elements of a family whose slots have shells of these kinds, ascending."""
    return tuple(z for z in family if slot_kinds(z, basis, cart) == kinds)


def family_of(number: int) -> tuple[int, ...]:
    """The elements among which a slot may be shared."""
    return next(f for f in FAMILIES if number in f)


@functools.cache
def slot_kinds(number: int, basis: str, cart: Cart) -> tuple[ShellKind, ...]:
    """The shells of an element's slot; none if the basis lacks the element.

    Its own, or those of an element of its family that has them all and few more.
    """
    own = _kinds(number, basis, cart)
    if own is None:
        return ()
    others = (_kinds(z, basis, cart) for z in family_of(number))
    kinds = [own, *(k for k in others if k and _lacks_little(own, k))]
    return max(kinds, key=_functions)


def slot_shells(own: tuple[ShellKind, ...], kinds: tuple[ShellKind, ...]) -> list[int] | None:
    """The shell of a slot in which each own shell goes, in order; None if one has no place."""
    places, place = [], 0
    for kind in own:
        while place < len(kinds) and kinds[place] != kind:
            place += 1
        places.append(place)
        place += 1
    return places if place <= len(kinds) else None


def slot_places(
    number: int, kinds: tuple[ShellKind, ...], basis: str, cart: Cart
) -> Int[np.ndarray, " n"]:
    """Place of every AO of an element among those of its slot."""
    shells = slot_shells(element_basis(number, basis, cart).kinds, kinds)
    assert shells is not None
    first = np.cumsum([0, *(kind.n_functions for kind in kinds)])
    return np.concatenate([np.arange(first[s], first[s + 1]) for s in shells])


def _lacks_little(own: tuple[ShellKind, ...], kinds: tuple[ShellKind, ...]) -> bool:
    lacking = _functions(kinds) - _functions(own)
    return slot_shells(own, kinds) is not None and lacking * FEW <= _functions(kinds)


def _functions(kinds: tuple[ShellKind, ...]) -> int:
    return sum(kind.n_functions for kind in kinds)


def _kinds(number: int, basis: str, cart: Cart) -> tuple[ShellKind, ...] | None:
    try:
        return element_basis(number, basis, cart).kinds
    except InvalidMolecule:  # the family has elements that this basis lacks
        return None


def shape_of(
    numbers: Sequence[int] | np.ndarray,
    basis: str,
    cart: Cart,
    grid: Grid | int,
    pad: bool = True,
    coarse: int = 0,
) -> Shape:
    """The shape of a molecule from its atomic numbers.

    Args:
        numbers: atomic numbers, in any order.
        basis, cart, grid: as in `Settings`.
        pad: False keeps the exact number of hydrogens, to measure what padding costs.
        coarse: 1 takes the coarse limits for the number of hydrogens; 2 the largest one, and rounds
            up the number of other atoms too, by slots of the lightest row that there is.

    Raises:
        InvalidMolecule: the basis lacks an element.
    """
    counts = Counter(slot_class(int(z), basis, cart, grid=grid) for z in numbers)
    n_hydrogen = sum(n for c, n in counts.items() if c.is_hydrogen)
    n_heavy = len(numbers) - n_hydrogen
    pad = pad and _kinds(1, basis, cart) is not None  # a basis may have no hydrogen
    if pad and n_heavy:
        spare = padded_heavy(n_heavy, coarse) - n_heavy
        heavy = (c for c in counts if not c.is_hydrogen)
        counts[min(heavy, key=lambda c: (c.family[0], -counts[c], repr(c)))] += spare
        n_heavy += spare
    target = padded_hydrogens(n_heavy, n_hydrogen, coarse) if pad else n_hydrogen
    if target:
        counts[slot_class(1, basis, cart, grid=grid)] = target
    ordered = sorted(counts.items(), key=lambda item: (-item[0].family[0], repr(item[0])))
    return Shape(tuple(c for c, _ in ordered), tuple(n for _, n in ordered))


def count_ao(numbers: Sequence[int] | np.ndarray, basis: str, cart: Cart = False) -> int:
    """Number of AOs of a molecule, without padding."""
    counts = Counter(int(z) for z in numbers)
    tables: dict[int, ElementBasis] = {z: element_basis(z, basis, cart) for z in counts}
    return sum(tables[z].n_ao * n for z, n in counts.items())

"""What a compiled program reads: tables per slot class (shared by a batch) and one conformer.

Tables hold every element that a slot class may hold, plus a last row for a padded slot whose
functions, charge and grid weights are zero.  Shells that an element lacks are zero in its row, too.
A conformer is then only element indices, coordinates and an electron count.
"""

import functools
from typing import NamedTuple, cast

import numpy as np
from jax import Array
from jaxtyping import Float

from pyscf_ipu.elements.atomic_grid import Grid, atomic_grid, cell_sizes, coarse_grid
from pyscf_ipu.elements.basis import ElementBasis, element_basis
from pyscf_ipu.elements.basis_sets import core_electrons
from pyscf_ipu.elements.cartesian import Cart
from pyscf_ipu.elements.free_atom import atomic_density, one_centre_integrals
from pyscf_ipu.numerics.two_words import Pair, split
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.auxiliary import AuxiliaryTable, auxiliary_level, auxiliary_tables
from pyscf_ipu.shapes.shape import Shape, SlotClass, class_members, slot_places, slot_shells


class OneCentre(NamedTuple):
    """Integrals of one atom in the field of its own nucleus: constants of an element.

    They are the largest one-electron integrals of a molecule and the same for each atom of an
    element, so that computing them in float32 would give every molecule a bias; tabulated in
    float64 they cost nothing.
    """

    overlap: Pair
    kinetic: Pair
    nuclear: Pair


class SideGrid(NamedTuple):
    """Points beside those of the semilocal energy."""

    points: Pair  # [E+1, g, 3] Bohr, relative to the nucleus
    weights: Pair  # [E+1, g] Bohr^3


class ClassTable(NamedTuple):
    """Per slot class: a row for each of E elements, and one for padding."""

    exponents: tuple[Pair, ...]  # per shell [E+1, K], 1/Bohr^2
    coefficients: tuple[Pair, ...]  # per shell [E+1, K, contractions], normalised
    points: Pair  # [E+1, G, 3] Bohr, relative to the nucleus
    weights: Pair  # [E+1, G] Bohr^3, of the atomic quadrature; 0 where padded
    charge: Float[Array, " E+1"]  # of the nucleus without core; 0 is padding
    radius: Float[Array, " E+1"]  # sqrt(Bohr), atomic size in the Becke partition
    guess: Float[Array, "E+1 n n"]  # spherically averaged density matrix of the free atom
    one_centre: OneCentre  # [E+1, n, n] each
    coarse: SideGrid | None = None
    """Few points, which stand for all in most cycles (`elements.atomic_grid.coarse_grid`); None if
    all count in every cycle."""
    auxiliary: tuple[AuxiliaryTable, ...] = ()
    """For density fitting, per shell."""
    vv10: SideGrid | None = None
    """For the nonlocal correlation; None without it."""


def shape_tables(shape: Shape, settings: Settings) -> tuple[ClassTable, ...]:
    """Tables for every class of a shape, as NumPy arrays in the words of the SCF dtype."""
    dtype = np.dtype(settings.numerics.scf_dtype).name
    tables = tuple(
        _class_table(c, settings.basis, settings.cart, grid=settings.grid, dtype=dtype)
        for c in shape.classes
    )
    side = functools.partial(_side_grid, basis=settings.basis, cart=settings.cart, dtype=dtype)
    more = {"coarse": coarse_grid(settings.grid)} if settings.has_coarse_cycles else {}
    more |= {"vv10": settings.vv10_grid} if settings.vv10_grid else {}
    tables = tuple(
        table._replace(**{name: side(c, grid) for name, grid in more.items()})
        for c, table in zip(shape.classes, tables, strict=True)
    )
    if settings.form(shape.n_ao) == "exact":
        return tables
    level = auxiliary_level(settings)
    return tuple(
        table._replace(auxiliary=auxiliary_tables(c, level, dtype))
        for c, table in zip(shape.classes, tables, strict=True)
    )


@functools.cache
def _class_table(slot: SlotClass, basis: str, cart: Cart, grid: Grid, dtype: str) -> ClassTable:
    members = class_members(slot.family, slot.kinds, basis, cart=cart)
    bases = [element_basis(z, basis, cart) for z in members]
    places = [slot_places(z, slot.kinds, basis, cart=cart) for z in members]
    radial = [_in_slot(b, slot) for b in bases]
    grids = [atomic_grid(z, grid) for z in members]

    stack = functools.partial(_stack, dtype)

    def spread(matrix: np.ndarray, place: np.ndarray) -> np.ndarray:
        out = np.zeros((slot.n_ao, slot.n_ao))
        out[np.ix_(place, place)] = matrix
        return out

    shells = range(len(slot.kinds))
    charges = [z - core_electrons(basis, z) for z in members]
    densities = [
        spread(atomic_density(z, basis, cart), p) for z, p in zip(members, places, strict=True)
    ]
    integrals = [
        [spread(x, p) for x in one_centre_integrals(z, basis, cart)]
        for z, p in zip(members, places, strict=True)
    ]
    return ClassTable(
        exponents=tuple(stack([r[s][0] for r in radial], 1.0) for s in shells),
        coefficients=tuple(stack([r[s][1] for r in radial], 0.0) for s in shells),
        points=stack([_filled(g.points, slot.n_grid) for g in grids], 0.0),
        weights=stack([_filled(g.weights, slot.n_grid) for g in grids], 0.0),
        charge=cast(Array, np.array([*charges, 0], dtype)),
        radius=cast(Array, cell_sizes(np.array([*members, 0]), grid).astype(dtype)),
        guess=cast(Array, np.stack([*densities, np.zeros((slot.n_ao, slot.n_ao))]).astype(dtype)),
        one_centre=OneCentre(*(stack(list(x), 0.0) for x in zip(*integrals, strict=True))),
    )


@functools.cache
def _side_grid(slot: SlotClass, grid: Grid, basis: str, cart: Cart, dtype: str) -> SideGrid:
    members = class_members(slot.family, slot.kinds, basis, cart=cart)
    grids = [atomic_grid(z, grid) for z in members]
    size = max(map(len, grids))
    return SideGrid(
        points=_stack(dtype, [_filled(g.points, size) for g in grids], 0.0),
        weights=_stack(dtype, [_filled(g.weights, size) for g in grids], 0.0),
    )


def _filled(a: np.ndarray, size: int) -> np.ndarray:
    """The array with zeros behind it."""
    return np.concatenate([a, np.zeros((size - len(a), *a.shape[1:]))])


def _stack(dtype: str, rows: list[np.ndarray], pad_value: float) -> Pair:
    """A row per element, and one of padding."""
    return split(np.stack([*rows, np.full_like(rows[0], pad_value)]), dtype)


def _in_slot(basis: ElementBasis, slot: SlotClass) -> list[tuple[np.ndarray, np.ndarray]]:
    """Exponents and coefficients of every shell of a slot; these are 0 where there is none."""
    shells = []
    for kind in slot.kinds:
        columns = sum(n for _, n in kind.parts)
        shells.append((np.ones(kind.n_prim), np.zeros((kind.n_prim, columns))))
    places = slot_shells(basis.kinds, slot.kinds)
    assert places is not None
    for place, a, c in zip(places, basis.exponents, basis.coefficients, strict=True):
        shells[place] = (a, c)
    return shells

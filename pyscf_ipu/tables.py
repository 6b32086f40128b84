"""What a compiled program reads: tables per slot class (shared by a batch) and one conformer.

Tables hold every element that a slot class may hold, plus a last row for a padded slot whose
functions, charge and grid weights are zero.  A conformer is then only element indices,
coordinates and an electron count.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jax import Array
from pyscf import gto, scf

from pyscf_ipu.basis import element_basis, symbol
from pyscf_ipu.convergence import PLAIN, Aids, Convergence
from pyscf_ipu.grid import atomic_grid, bragg_adjust
from pyscf_ipu.molecule import Molecule
from pyscf_ipu.precision import Pair, on_device, split
from pyscf_ipu.settings import Settings
from pyscf_ipu.shape import Shape, SlotClass, class_members, slot_class


class OneCentre(NamedTuple):
    """Integrals of one atom in the field of its own nucleus: constants of an element.

    They are the largest one-electron integrals of a molecule and the same for each atom of an
    element, so that computing them in float32 would give every molecule a bias; tabulated in
    float64 they cost nothing.
    """

    overlap: Pair
    kinetic: Pair
    nuclear: Pair


class ClassTable(NamedTuple):
    """Per slot class, E elements and the padding row.

    exponents     per shell, Pair [E+1, K] in 1/Bohr^2.
    coefficients  per shell, Pair [E+1, K, contractions], normalised.
    points        Pair [E+1, Gs, 3] Bohr, relative to the nucleus.
    weights       Pair [E+1, Gs] Bohr^3, atomic quadrature weights (0 where padded).
    charge        [E+1] nuclear charge; 0 marks padding.
    radius        [E+1] sqrt(Bohr), atomic size in the Becke partition.
    guess         [E+1, n, n] spherically averaged density matrix of the free atom.
    one_centre    OneCentre of Pairs [E+1, n, n].
    """

    exponents: tuple[Pair, ...]
    coefficients: tuple[Pair, ...]
    points: Pair
    weights: Pair
    charge: Array
    radius: Array
    guess: Array
    one_centre: OneCentre


class Conformer(NamedTuple):
    """One molecule in the slots of a shape: element row [A], positions Pair [A, 3] Bohr, the
    number of doubly occupied orbitals, and aids for its convergence."""

    element: Array
    positions: Pair
    n_occupied: Array
    aids: Aids


def shape_tables(shape: Shape, settings: Settings) -> tuple[ClassTable, ...]:
    """Tables for every class of a shape, as NumPy arrays in the words of the SCF dtype."""
    dtype = np.dtype(settings.numerics.scf_dtype).name
    return tuple(
        _class_table(c, settings.basis, settings.cart, settings.grid_level, dtype)
        for c in shape.classes
    )


@functools.cache
def _class_table(
    slot: SlotClass, basis: str, cart: bool, grid_level: int, dtype: str
) -> ClassTable:
    members = class_members(slot.family, slot.kinds, basis, cart)
    bases = [element_basis(z, basis, cart) for z in members]
    grids = [atomic_grid(z, grid_level) for z in members]
    n_grid = slot.n_grid

    def stack(rows: list[np.ndarray], pad_value: float) -> Pair:
        return split(np.stack([*rows, np.full_like(rows[0], pad_value)]), dtype)

    def fill(a: np.ndarray) -> np.ndarray:
        return np.concatenate([a, np.zeros((n_grid - len(a), *a.shape[1:]))])

    shells = range(len(slot.kinds))
    densities = [atomic_density(z, basis, cart) for z in members]
    integrals = [one_centre_integrals(z, basis, cart) for z in members]
    return ClassTable(
        exponents=tuple(stack([b.exponents[s] for b in bases], 1.0) for s in shells),
        coefficients=tuple(stack([b.coefficients[s] for b in bases], 0.0) for s in shells),
        points=stack([fill(g.points) for g in grids], 0.0),
        weights=stack([fill(g.weights) for g in grids], 0.0),
        charge=on_device(np.array([*members, 0], dtype)),
        radius=on_device(bragg_adjust(np.array([*members, 0])).astype(dtype)),
        guess=on_device(np.stack([*densities, np.zeros((slot.n_ao, slot.n_ao))]).astype(dtype)),
        one_centre=OneCentre(*(stack(list(x), 0.0) for x in zip(*integrals, strict=True))),
    )


@functools.cache
def atomic_density(number: int, basis: str, cart: bool) -> np.ndarray:
    """Density matrix [n, n] of a spherical free atom, in the AO order of `element_basis`."""
    order = element_basis(number, basis, cart).pyscf_order
    density = scf.hf.init_guess_by_atom(_atom(number, basis, cart))
    return np.asarray(density)[np.ix_(order, order)]


@functools.cache
def one_centre_integrals(number: int, basis: str, cart: bool) -> tuple[np.ndarray, ...]:
    """Overlap, kinetic energy and attraction by the own nucleus: three [n, n], Hartree."""
    order = element_basis(number, basis, cart).pyscf_order
    atom = _atom(number, basis, cart)
    return tuple(
        np.asarray(atom.intor(name))[np.ix_(order, order)]
        for name in ("int1e_ovlp", "int1e_kin", "int1e_nuc")
    )


def _atom(number: int, basis: str, cart: bool) -> gto.Mole:
    """A free atom for PySCF."""
    return gto.M(
        atom=[[symbol(number), (0.0, 0.0, 0.0)]],
        basis={symbol(number): gto.basis.load(basis, symbol(number))},
        spin=number % 2,
        cart=cart,
        verbose=0,
    )


def conformer(
    mol: Molecule, shape: Shape, settings: Settings, convergence: Convergence = PLAIN
) -> Conformer:
    """Place a molecule's atoms in the slots of its shape (NumPy arrays)."""
    dtype = settings.numerics.scf_dtype
    order = slot_order(mol, shape, settings)
    slots = shape.slot_class()
    element = np.empty(shape.n_atoms, np.int32)
    positions = np.zeros((shape.n_atoms, 3))
    # Coordinates near the origin keep the low words small; the energy does not depend on it.
    centre = _centroid(mol)
    for slot, atom in enumerate(order):
        kind = shape.classes[slots[slot]]
        members = class_members(kind.family, kind.kinds, settings.basis, settings.cart)
        element[slot] = members.index(int(mol.numbers[atom])) if atom >= 0 else len(members)
        if atom >= 0:
            positions[slot] = mol.positions[atom] - centre
    occupied = np.int32(mol.n_electrons // 2)
    aids = convergence.aids(dtype)
    return Conformer(on_device(element), split(positions, dtype), on_device(occupied), aids)


def batch(
    mols: Sequence[Molecule],
    shape: Shape,
    settings: Settings,
    size: int,
    convergence: Convergence = PLAIN,
) -> Conformer:
    """Conformers with a leading axis of `size`; places beyond the list repeat the first one."""
    rows = [conformer(mol, shape, settings, convergence) for mol in mols]
    rows += [rows[0]] * (size - len(rows))
    return jax.tree.map(lambda *x: np.stack(x), *rows)


def empty_batch(shape: Shape, settings: Settings, size: int) -> Conformer:
    """Arrays of the right shapes and dtypes, to compile with."""
    a, dtype = shape.n_atoms, settings.numerics.scf_dtype
    words = on_device(np.zeros((size, a, 3), dtype))
    element, occupied = np.zeros((size, a), np.int32), np.zeros(size, np.int32)
    aids = jax.tree.map(lambda x: np.full(size, x), PLAIN.aids(dtype))
    return Conformer(on_device(element), Pair(words, words), on_device(occupied), aids)


def slot_order(mol: Molecule, shape: Shape, settings: Settings) -> np.ndarray:
    """Which atom of the molecule sits in each slot: [A] int32, -1 for a padded slot.

    Inside a class the atoms are sorted by element, distance from the centroid and coordinates, so
    that the order in which a molecule lists its atoms does not reach the arithmetic.
    """
    from_centre = mol.positions - _centroid(mol)
    distance = (from_centre**2).sum(axis=1)
    free: dict[SlotClass, list[int]] = {c: [] for c in shape.classes}
    for atom in np.lexsort((*mol.positions.T, distance, mol.numbers)):
        z = int(mol.numbers[atom])
        free[slot_class(z, settings.basis, settings.cart, settings.grid_level)].append(int(atom))
    order = []
    for c, n in zip(shape.classes, shape.counts, strict=True):
        order += free[c] + [-1] * (n - len(free[c]))
    return np.array(order, np.int32)


def _centroid(mol: Molecule) -> np.ndarray:
    """Mean of the positions, correctly rounded: the same bits in every order of the atoms."""
    return np.array([math.fsum(x) for x in mol.positions.T]) / mol.n_atoms


def ao_order(mol: Molecule, shape: Shape, settings: Settings) -> np.ndarray:
    """Index of the slot AO for every AO of PySCF's order: [N of the molecule]."""
    tables = [element_basis(int(z), settings.basis, settings.cart) for z in mol.numbers]
    sizes = [shape.classes[c].n_ao for c in shape.slot_class()]
    first = np.concatenate([[0], np.cumsum(sizes)])
    start = {atom: first[slot] for slot, atom in enumerate(slot_order(mol, shape, settings))}
    return np.concatenate(
        [start[a] + np.argsort(t.pyscf_order) for a, t in enumerate(tables)]
    ).astype(np.int64)

"""One molecule as a compiled program reads it: its atoms in the slots of a shape."""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, cast

import jax
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pyscf_ipu.elements.basis import element_basis
from pyscf_ipu.elements.gaussian_grid import standard_axes
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.numerics.arrays import Counts
from pyscf_ipu.numerics.two_words import Pair, split
from pyscf_ipu.scf.convergence import PLAIN, Aids, Convergence
from pyscf_ipu.scf.lowest.guess import Guess, SpinGuess, guess_of, no_guesses
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.core import core_matrix, has_core
from pyscf_ipu.shapes.shape import Shape, SlotClass, class_members, slot_class, slot_places


class Conformer(NamedTuple):
    """One molecule in the slots of a shape."""

    element: Int[Array, " A"]  # row in the table of the slot's class
    positions: Pair  # [A, 3] Bohr
    n_occupied: Counts  # doubly occupied orbitals; of an open shell [2], alpha and beta electrons
    aids: Aids
    axes: Pair | None = None  # [3, 3] of the grids' spheres; None for x, y and z
    core: Pair | None = None  # [P] Hartree, over AO pairs of slots; None without core potentials
    guess: Guess | None = None  # of open shells


def conformer(
    mol: Molecule,
    shape: Shape,
    settings: Settings,
    convergence: Convergence = PLAIN,
    spins: SpinGuess | None = None,
) -> Conformer:
    """Place a molecule's atoms in the slots of its shape (NumPy arrays); `spins`: an open shell."""
    dtype = settings.numerics.scf_dtype
    order = slot_order(mol, shape, settings)
    taken = order >= 0
    numbers = np.where(taken, mol.numbers[order], 0)
    rows, first = [], 0
    for kind, count in zip(shape.classes, shape.counts, strict=True):
        members = class_members(kind.family, kind.kinds, settings.basis, cart=settings.cart)
        here = slice(first, first + count)
        places = np.searchsorted(members, numbers[here])
        rows.append(np.where(taken[here], places, len(members)))
        first += count
    element = np.concatenate(rows).astype(np.int32)
    # Coordinates near the origin keep the low words small; the energy does not depend on it.
    positions = np.where(taken[:, None], mol.positions[order] - _centroid(mol), 0.0)
    counts = np.array(mol.n_occupied(settings.basis), np.int32)
    occupied = counts[0] if spins is None else counts
    axes = standard_axes(numbers[taken], positions[taken]) if settings.grid.turns else None
    core = _packed_core(mol, shape, settings) if has_core(shape, settings) else None
    return Conformer(
        cast(Array, element),
        split(positions, dtype),
        cast(Array, occupied),
        aids=convergence.aids(dtype),
        axes=None if axes is None else split(axes, dtype),
        core=None if core is None else split(core, dtype),
        guess=None if spins is None else guess_of(spins, mol.numbers, order, dtype=dtype),
    )


def batch(
    mols: Sequence[Molecule],
    shape: Shape,
    settings: Settings,
    size: int,
    convergence: Convergence = PLAIN,
    spins: Sequence[SpinGuess | None] | None = None,
) -> Conformer:
    """Conformers with a leading axis of `size`; places beyond the list repeat the first one."""
    each = zip(mols, spins or [None] * len(mols), strict=True)
    rows = [
        conformer(mol, shape, settings, convergence=convergence, spins=one) for mol, one in each
    ]
    rows += [rows[0]] * (size - len(rows))
    return jax.tree.map(lambda *x: np.stack(x), *rows)


def empty_batch(shape: Shape, settings: Settings, size: int, open_shell: bool = False) -> Conformer:
    """Arrays of the right shapes and dtypes, to compile with."""
    a, dtype = shape.n_atoms, settings.numerics.scf_dtype
    words = cast(Array, np.zeros((size, a, 3), dtype))
    element = np.zeros((size, a), np.int32)
    occupied = np.zeros((size, 2) if open_shell else size, np.int32)
    aids = jax.tree.map(lambda x: np.full(size, x), PLAIN.aids(dtype))
    axes = split(np.zeros((size, 3, 3)), dtype) if settings.grid.turns else None
    core = split(np.zeros((size, shape.n_pairs)), dtype) if has_core(shape, settings) else None
    return Conformer(
        cast(Array, element),
        Pair(words, words),
        cast(Array, occupied),
        aids=aids,
        axes=axes,
        core=core,
        guess=no_guesses(size, a, dtype) if open_shell else None,
    )


def slot_order(mol: Molecule, shape: Shape, settings: Settings) -> Int[np.ndarray, " A"]:
    """Which atom of the molecule sits in each slot, -1 for a padded slot.

    Inside a class the atoms are sorted by element, distance from the centroid and coordinates, so
    that the order in which a molecule lists its atoms does not reach the arithmetic.
    """
    from_centre = mol.positions - _centroid(mol)
    distance = (from_centre**2).sum(axis=1)
    free: dict[SlotClass, list[int]] = {c: [] for c in shape.classes}
    of = partial(slot_class, basis=settings.basis, cart=settings.cart, grid=settings.grid)
    list_of = {z: free[of(z)] for z in set(mol.numbers.tolist())}
    for atom in np.lexsort((*mol.positions.T, distance, mol.numbers)).tolist():
        list_of[int(mol.numbers[atom])].append(atom)
    order = []
    for c, n in zip(shape.classes, shape.counts, strict=True):
        order += free[c] + [-1] * (n - len(free[c]))
    return np.array(order, np.int32)


def _centroid(mol: Molecule) -> np.ndarray:
    """Mean of the positions, correctly rounded: the same bits in every order of the atoms."""
    return np.array([math.fsum(x) for x in mol.positions.T]) / mol.n_atoms


def ao_order(mol: Molecule, shape: Shape, settings: Settings) -> Int[np.ndarray, " N"]:
    """Index of the slot AO for every AO of PySCF's order, without padding."""
    classes = [shape.classes[c] for c in shape.slot_class()]
    first = np.concatenate([[0], np.cumsum([c.n_ao for c in classes])])
    slot_of = {atom: slot for slot, atom in enumerate(slot_order(mol, shape, settings))}
    aos = []
    for atom, z in enumerate(mol.numbers.tolist()):
        slot = slot_of[atom]
        places = slot_places(z, classes[slot].kinds, settings.basis, cart=settings.cart)
        aos.append(
            first[slot]
            + places[np.argsort(element_basis(z, settings.basis, settings.cart).pyscf_order)]
        )
    return np.concatenate(aos).astype(np.int64)


def _packed_core(mol: Molecule, shape: Shape, settings: Settings) -> Float[np.ndarray, " P"]:
    """The core potentials over pairs i >= j of the slots' AOs; zero for padded ones."""
    order, square = ao_order(mol, shape, settings), np.zeros((shape.n_ao, shape.n_ao))
    square[np.ix_(order, order)] = core_matrix(mol, settings)
    return square[np.tril_indices(shape.n_ao)]

"""The derivative of a converged energy by the positions of the nuclei, for one molecule.

At a self-consistent density the energy depends on the orbitals only through their orthonormality,

    dE/dR = (dE/dR at fixed D) - tr(W dS/dR),   W = 1/2 D F D,

so that nothing differentiates through the SCF or an eigenproblem (P. Pulay, Mol. Phys. 17, 197
(1969), doi:10.1080/00268976900100941).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pyscf_ipu.codelets import strip_primitives
from pyscf_ipu.exchange_correlation import atom_data
from pyscf_ipu.gradient.electron_repulsion import repulsion_gradient
from pyscf_ipu.gradient.exchange_correlation import exchange_correlation_gradient
from pyscf_ipu.gradient.one_electron import one_electron_gradient, overlap_matrix
from pyscf_ipu.gradient.pairs import by_nuclei
from pyscf_ipu.integrals import nuclear_repulsion
from pyscf_ipu.pairs import gather_shells
from pyscf_ipu.precision import Pair
from pyscf_ipu.program import Program
from pyscf_ipu.settings import Settings
from pyscf_ipu.shape import Shape
from pyscf_ipu.strips import pair_strips
from pyscf_ipu.tables import ClassTable, Conformer, empty_batch
from pyscf_ipu.tiles import tile_plan
from pyscf_ipu.xc import functional


def energy_gradient(
    shape: Shape,
    settings: Settings,
    tables: tuple[ClassTable, ...],
    mol: Conformer,
    density: Array,
    orbitals: Array,
    levels: Array,
) -> Array:
    """dE/dR [A, 3] in Hartree/Bohr at a converged density; pure, shape and settings fixed.

    density [N, N], and the orbitals [N, N] and their energies [N] of its Fock matrix, as in
    `program.Solution`; all in the dtype of the precision's final energy.
    """
    dtype = settings.numerics.energy_dtype
    plan = tile_plan(shape, strip_primitives=strip_primitives())
    xc = functional(settings.xc)
    mol = mol._replace(positions=mol.positions.astype(dtype))
    nuclei = mol.positions
    charge = atom_data(plan.layout, tables, mol)[0].astype(dtype)

    strips = pair_strips(plan, tables, mol, dtype)
    weighted = energy_weighted_density(density, orbitals, levels, overlap_matrix(plan, strips))
    one, on_nuclei = one_electron_gradient(plan, strips, density, weighted, charge, nuclei)
    two = repulsion_gradient(plan, strips, density, xc.exact_exchange)
    by_strips = [
        a._replace(centre=Pair(a.centre.hi + b.centre, a.centre.lo), hermite=a.hermite + b.hermite)
        for a, b in zip(one, two, strict=True)
    ]
    shells = gather_shells(plan.layout, tables, mol, dtype)
    between = jax.grad(lambda hi: nuclear_repulsion(charge, Pair(hi, nuclei.lo)).value())
    return (
        by_nuclei(plan, shells, by_strips)
        + on_nuclei
        + between(nuclei.hi)
        + exchange_correlation_gradient(plan.layout, xc, tables, shells, mol, density)
    )


def gradients(shape: Shape, settings: Settings) -> Program:
    """The program of a shape: (tables, (conformer, density, orbitals, levels)) -> dE/dR [A, 3]."""
    return lambda tables, state: energy_gradient(shape, settings, tables, *state)


def empty_states(shape: Shape, settings: Settings, size: int) -> tuple[Any, ...]:
    """Conformers, densities, orbitals and levels of a batch of `size`, to compile with."""
    n, dtype = shape.n_ao, settings.numerics.energy_dtype
    matrix = np.zeros((size, n, n), dtype)
    return empty_batch(shape, settings, size), matrix, matrix, np.zeros((size, n), dtype)


def energy_weighted_density(
    density: Array, orbitals: Array, levels: Array, overlap: Array
) -> Array:
    """W = 1/2 D F D [N, N] in Hartree, with F = S C e C^T S from the orbitals of F.

    Unlike 2 C e C^T over occupied orbitals it belongs to the density at which the energy was
    taken, not to that of the next cycle.  Padded AOs have infinite levels and no density.
    """

    def product(a: Array, b: Array) -> Array:
        return jnp.matmul(a, b, precision="highest")

    inner = product(product(density, overlap), orbitals)
    finite = jnp.where(jnp.isfinite(levels), levels, 0.0)
    return 0.5 * product(inner * finite, inner.T)

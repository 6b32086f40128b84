"""Density and matrix on the grid by way of the density's columns.

A density of n electron pairs is that of n orbitals.  In a large basis set these are few beside the
AOs, so the orbitals' values at the points cost less than the density matrix times those of all AOs;
the kinetic energy density costs nothing more, where it would be three products more.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike

from pyscf_ipu.codelets import codelet
from pyscf_ipu.grid.ao_blocks import AoBlocks
from pyscf_ipu.grid.xc_matrix import (
    PORTABLE,
    GridProducts,
    that_count,
    xc_kinetic_potential_vertex,
    xc_potential_vertex,
)
from pyscf_ipu.numerics.arrays import Count, FloatDNG, FloatNN, FloatTVG, FloatVG
from pyscf_ipu.numerics.columns import Columns, columns_of_change, columns_of_density
from pyscf_ipu.xc.semilocal.functionals import Functional


def _prepared(density: FloatNN, dtype: DTypeLike, change: bool) -> Columns:
    """The columns, made in the density's precision."""
    columns = (columns_of_change if change else columns_of_density)(density)
    vectors, signs, count = columns
    return Columns(vectors.astype(dtype), signs.astype(dtype), count)


def _moments(ao: AoBlocks, columns: Columns, tau: bool) -> FloatTVG:
    """Density, its gradient and, with `tau`, the kinetic energy density on all points."""

    def portable(values: Array, *operands: Array) -> FloatTVG:
        *lists, vectors, signs, count = operands
        columns = Columns(vectors, signs, count)
        few = columns._replace(vectors=columns.counted())
        return jax.vmap(partial(moments_vertex, few, tau))(values, *lists)

    tiles, planes, _, points = ao.values.shape
    shape = tiles, planes + tau, points
    return codelet("xc_moments", portable, ao.values, *ao.listed(), *columns, shape=shape)


def moments_vertex(columns: Columns, tau: bool, ao: FloatDNG, aos: Array, live: Count) -> FloatVG:
    """One block, from psi = C^T ao: sum_o s psi^2, its gradient, sum_o s |grad psi|^2 / 2."""
    vectors, signs, _ = columns
    psi = jnp.einsum("no,dng->dog", vectors[aos], that_count(ao, live), precision="highest")
    signed = psi[0] * signs[:, None]
    sums = [(signed * psi[0]).sum(0), *(2.0 * (signed * p).sum(0) for p in psi[1:])]
    if tau:
        sums.append(0.5 * (signs[:, None] * psi[1:] ** 2).sum((0, 1)))
    return jnp.stack(sums)


def _matrix(ao: AoBlocks, factors: FloatTVG, dtype: DTypeLike) -> FloatNN:
    """The matrix from a factor for each of the moments, added up in `dtype`."""
    _, planes, n, _ = ao.values.shape

    def block(values: FloatDNG, aos: Array, live: Count, factors: FloatVG) -> FloatNN:
        values = that_count(values, live)
        half = xc_potential_vertex(values, factors[:planes])
        if factors.shape[0] > planes:
            half = half + xc_kinetic_potential_vertex(values, factors[planes])
        return jnp.zeros_like(half).at[aos[:, None], aos].set(half)

    def portable(*operands: Array) -> tuple[FloatNN]:
        return (jax.vmap(block)(*operands).sum(0).astype(dtype),)

    shape = (jax.ShapeDtypeStruct((n, n), dtype),)
    (half,) = codelet("xc_potential", portable, ao.values, *ao.listed(), factors, shape=shape)
    return half + half.T


ORBITALS = GridProducts(_prepared, _moments, _matrix)
"""In JAX, and on a CPU native."""


def by_orbitals(products: GridProducts, functional: Functional, many_aos: bool) -> GridProducts:
    """`ORBITALS` in place of `PORTABLE` where they cost less; a machine keeps its products."""
    cheaper = (many_aos or functional.needs_tau) and products is PORTABLE
    return ORBITALS._replace(in_part=many_aos) if cheaper else products

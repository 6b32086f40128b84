"""The derivative of the exchange-correlation matrix along a change of the density matrix.

The stability analysis asks for it, which turns occupied orbitals towards empty ones.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from pyscf_ipu.grid.ao_blocks import AoBlocks
from pyscf_ipu.grid.blocks import Grid
from pyscf_ipu.grid.xc_matrix import GridProducts, along, ingredients_of
from pyscf_ipu.numerics.arrays import FloatG, FloatKG, FloatNN, FloatTG, FloatVG, Scalar
from pyscf_ipu.tiles import tile_map, tile_put_sharded
from pyscf_ipu.xc.semilocal.functionals import Functional
from pyscf_ipu.xc.semilocal.variables import cbrt, density_cutoff


def exchange_correlation_response(
    functional: Functional, grid: Grid | None, density: FloatNN, products: GridProducts
) -> Callable[[FloatNN], FloatNN]:
    """The matrix's derivative at a density matrix: change of the density -> change of the matrix.

    What does not depend on the change is computed once, here.
    """
    if grid is None:
        return jnp.zeros_like
    no_matrix = jnp.zeros((), density.dtype)
    dtype = grid.weights.dtype
    prepared = products.prepared(density, dtype, False)

    def at_density(ao: AoBlocks, weights: FloatTG) -> tuple[tuple[Array, Array], Scalar]:
        tiles = range(weights.shape[0])
        moments = tile_put_sharded(products.moments(ao, prepared, functional.needs_tau), tiles)
        kernel_of = partial(xc_kernel_vertex, functional)
        volume = tile_put_sharded(weights, tiles)
        kernel = tile_map(kernel_of, moments, volume, name="xc_kernel", together=True, shared=True)
        return (kernel.array, moments.array), no_matrix

    known, _ = grid.each(at_density)

    def response(change: FloatNN) -> FloatNN:
        moved = products.prepared(change, dtype, True)

        def along_change(ao: AoBlocks, weights: FloatTG, *known: Array) -> tuple[tuple, FloatNN]:
            tiles = range(weights.shape[0])
            rows = (*known, products.moments(ao, moved, functional.needs_tau))
            vertex = partial(xc_response_vertex, functional)
            arrays = [tile_put_sharded(x, tiles) for x in rows]
            factors = tile_map(vertex, *arrays, name="xc_response", together=True, shared=True)
            return (), products.matrix(ao, factors.array, change.dtype)

        return grid.each(along_change, *known)[1]

    return response


def xc_kernel_vertex(functional: Functional, moments: FloatVG, weights: FloatG) -> FloatKG:
    """One block: what `xc_response_vertex` needs of the functional's second derivatives.

    float32 cannot hold those of a thin density.  So they are taken along a change of rho by itself,
    of sigma by rho^(8/3) and of tau by rho^(5/3), and multiply changes in these units.
    """
    ingredients, _ = ingredients_of(functional, moments)
    unit = jnp.maximum(ingredients[0], density_cutoff(ingredients[0].dtype))
    units = (unit, cbrt(unit) ** 8, cbrt(unit) ** 5)[: len(ingredients)]
    zero = jnp.zeros_like(unit)

    def potential(*ingredients: FloatG) -> tuple[FloatG, ...]:
        return functional.energy_and_potential(*ingredients)[1:]

    def changed_by(i: int) -> tuple[tuple[FloatG, ...], tuple[FloatG, ...]]:
        """The potential, and its change with ingredient i."""
        step = [units[k] if k == i else zero for k in range(len(units))]
        return jax.jvp(potential, ingredients, tuple(step))

    (_, v_sigma, *_), by_rho = changed_by(0)
    others = range(1, len(units))
    if functional.needs_gradient:
        by_others = [changed_by(i)[1] for i in others]
    else:
        by_others = [tuple(zero for _ in units) for _ in others]
    second = [x for by in (by_rho, *by_others) for x in by]
    weighted = weights * jnp.stack([v_sigma, *second])
    return jnp.concatenate([weighted, 1.0 / jnp.stack(units)])


def xc_response_vertex(
    functional: Functional, kernel: FloatKG, moments: FloatVG, change: FloatVG
) -> FloatVG:
    """One block: the change of the factors of `GridProducts.matrix` along that of the moments."""
    (d_rho, _, *d_tau), d_slope = ingredients_of(functional, change)
    slope = moments[1:4]
    count = 2 + len(d_tau)
    v_sigma, by, per = kernel[0], kernel[1:-count], kernel[-count:]
    moved = [d_rho * per[0], 2.0 * along(slope, d_slope) * per[1], *(d * per[2] for d in d_tau)]

    def changed(k: int) -> FloatG:
        """The change of the derivative by ingredient k."""
        terms = [by[i * count + k] * d for i, d in enumerate(moved)]
        return sum(terms[1:], terms[0])

    d_v_sigma = changed(1)
    rest = [2.0 * (d_v_sigma * s + v_sigma * d) for s, d in zip(slope, d_slope, strict=True)]
    last = [0.25 * changed(k) for k in range(2, count)]
    return jnp.stack([0.5 * changed(0), *rest, *last])

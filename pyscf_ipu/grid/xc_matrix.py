"""The semilocal exchange-correlation energy and matrix, by blocks of grid points.

Three steps over the same blocks: the density and its gradient, the functional at every point, and
the matrix (J. A. Pople, P. M. W. Gill, B. G. Johnson, Chem. Phys. Lett. 199, 557 (1992),
doi:10.1016/0009-2614(92)85009-Y).  The first and last are codelets.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from pyscf_ipu.codelets import codelet
from pyscf_ipu.grid.blocks import GridBlocks
from pyscf_ipu.numerics.arrays import (
    FloatDG,
    FloatDNG,
    FloatG,
    FloatKG,
    FloatNN,
    FloatTDG,
    FloatTDNG,
    Scalar,
)
from pyscf_ipu.numerics.two_words import Pair, two_product
from pyscf_ipu.tiles import (
    tile_map,
    tile_put_replicated,
    tile_put_sharded,
    tile_total,
    vertex_total,
)
from pyscf_ipu.xc import Functional
from pyscf_ipu.xc.variables import cbrt, density_cutoff


class GridProducts(NamedTuple):
    """The two steps that read all AO values, as a machine computes them."""

    density: Callable[[FloatTDNG, FloatNN], FloatTDG]
    potential: Callable[[FloatTDNG, FloatTDG], FloatNN]


def exchange_correlation(
    functional: Functional,
    grid: GridBlocks | None,
    density: FloatNN,
    products: GridProducts,
) -> tuple[Pair, FloatNN]:
    """Semilocal energy (Hartree, a Pair) and its matrix dE/dD at a symmetric density matrix."""
    if grid is None:
        zero = jnp.zeros((), density.dtype)
        return Pair(zero, zero), jnp.zeros_like(density)
    moments = products.density(grid.ao, density)
    tiles = range(grid.weights.shape[0])
    points = (tile_put_sharded(moments, tiles), tile_put_sharded(grid.weights, tiles))
    vertex = partial(xc_functional_vertex, functional)
    hi, lo, factors = tile_map(vertex, *points, name="xc_functional", together=True, shared=True)
    matrix = products.potential(grid.ao, factors.array)
    return tile_total(Pair(hi.array, lo.array)), matrix + matrix.T


def exchange_correlation_response(
    functional: Functional, grid: GridBlocks | None, density: FloatNN
) -> Callable[[FloatNN], FloatNN]:
    """The matrix's derivative at a density matrix: change of the density -> change of the matrix.

    What does not depend on the change is computed once, here.
    """
    if grid is None:
        return jnp.zeros_like
    tiles = range(grid.weights.shape[0])
    moments = tile_put_sharded(xc_density(grid.ao, density), tiles)
    weights = tile_put_sharded(grid.weights, tiles)
    kernel_of = partial(xc_kernel_vertex, functional)
    kernel = tile_map(kernel_of, moments, weights, name="xc_kernel", shared=True)

    def response(change: FloatNN) -> FloatNN:
        moving = tile_put_sharded(xc_density(grid.ao, change), tiles)
        factors = tile_map(
            xc_response_vertex, kernel, moments, moving, name="xc_response", shared=True
        )
        matrix = xc_potential(grid.ao, factors.array)
        return matrix + matrix.T

    return response


def xc_density(ao: FloatTDNG, density: FloatNN) -> FloatTDG:
    """The density on all points and, for D = 4, its gradient."""

    def portable(ao: FloatTDNG, density: FloatNN) -> FloatTDG:
        tiles = range(ao.shape[0])
        args = tile_put_sharded(ao, tiles), tile_put_replicated(density, tiles)
        return tile_map(xc_density_vertex, *args, name="xc_density", shared=True).array

    t, d, _, points = ao.shape
    return codelet("xc_density", portable, ao, density, shape=(t, d, points))


def xc_potential(ao: FloatTDNG, factors: FloatTDG) -> FloatNN:
    """Half of the matrix: sum_g ao_0 (sum_d factors_d ao_d)^T."""

    def portable(ao: FloatTDNG, factors: FloatTDG) -> FloatNN:
        tiles = range(ao.shape[0])
        args = tile_put_sharded(ao, tiles), tile_put_sharded(factors, tiles)
        return tile_map(xc_potential_vertex, *args, name="xc_potential", shared=True).array.sum(0)

    n = ao.shape[2]
    return codelet("xc_potential", portable, ao, factors, shape=(n, n))


def xc_density_vertex(ao: FloatDNG, density: FloatNN) -> FloatDG:
    """One block: density and gradient."""
    product = jnp.matmul(density, ao[0], precision="highest")  # [N, Gb]
    # Separate sums: one stacked reduction is five times slower on a CPU.
    sums = [(ao[d] * product).sum(0) for d in range(ao.shape[0])]
    return jnp.stack([sums[0], *(2.0 * s for s in sums[1:])])


def xc_functional_vertex(
    functional: Functional, moments: FloatDG, weights: FloatG
) -> tuple[Scalar, Scalar, FloatDG]:
    """One block: its energy in two words and the factors of `xc_potential`."""
    rho, slope = moments[0], moments[1:]
    sigma = _along(slope, slope)
    e, v_rho, v_sigma = functional.energy_and_potential(rho, sigma)
    energy = vertex_total(two_product(e, weights))
    factors = [0.5 * weights * v_rho, *(2.0 * weights * v_sigma * s for s in slope)]
    return energy.hi, energy.lo, jnp.stack(factors)


def xc_kernel_vertex(functional: Functional, moments: FloatDG, weights: FloatG) -> FloatKG:
    """One block: what `xc_response_vertex` needs of the functional's second derivatives.

    float32 cannot hold those of a thin density.  So they are taken along a change of rho by itself
    and of sigma by rho^(8/3), and multiply changes in these units.
    """
    rho = moments[0]
    sigma = _along(moments[1:], moments[1:])
    unit = jnp.maximum(rho, density_cutoff(rho.dtype))
    units = (unit, cbrt(unit) ** 8)
    zero = jnp.zeros_like(rho)

    def potential(rho: FloatG, sigma: FloatG) -> tuple[FloatG, FloatG]:
        return functional.energy_and_potential(rho, sigma)[1:]

    (_, v_sigma), by_rho = jax.jvp(potential, (rho, sigma), (units[0], zero))
    by_sigma = (zero, zero)
    if functional.kind == "gga":
        by_sigma = jax.jvp(potential, (rho, sigma), (zero, units[1]))[1]
    weighted = weights * jnp.stack([v_sigma, *by_rho, *by_sigma])
    return jnp.concatenate([weighted, 1.0 / jnp.stack(units)])


def xc_response_vertex(kernel: FloatKG, moments: FloatDG, change: FloatDG) -> FloatDG:
    """One block: the change of the factors of `xc_potential` along a change of the moments."""
    v_sigma, rho_rho, rho_sigma, sigma_rho, sigma_sigma, per_rho, per_sigma = kernel
    slope, d_slope = moments[1:], change[1:]
    d_rho = change[0] * per_rho
    d_sigma = 2.0 * _along(slope, d_slope) * per_sigma
    d_v_rho = rho_rho * d_rho + sigma_rho * d_sigma
    d_v_sigma = rho_sigma * d_rho + sigma_sigma * d_sigma
    rest = [2.0 * (d_v_sigma * s + v_sigma * d) for s, d in zip(slope, d_slope, strict=True)]
    return jnp.stack([0.5 * d_v_rho, *rest])


def _along(a: Float[Array, "axes G"], b: Float[Array, "axes G"]) -> FloatG:
    """Scalar product at every point; zero without axes."""
    return sum((x * y for x, y in zip(a, b, strict=True)), jnp.zeros(a.shape[1:], a.dtype))


def xc_potential_vertex(ao: FloatDNG, factors: FloatDG) -> FloatNN:
    """One block's part of half the matrix."""
    weighted = factors[0] * ao[0]
    for d in range(1, ao.shape[0]):
        weighted = weighted + factors[d] * ao[d]
    return lax.dot_general(ao[0], weighted, (((1,), (1,)), ((), ())), precision="highest")


PORTABLE = GridProducts(xc_density, xc_potential)
"""In JAX, and on a CPU native."""

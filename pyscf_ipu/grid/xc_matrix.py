"""The semilocal exchange-correlation energy and matrix, by blocks of grid points.

Three steps over the same blocks: the density and its gradient (where the functional needs it, also
the kinetic energy density), the functional at every point, and the matrix (J. A. Pople, P. M. W.
Gill, B. G. Johnson, Chem. Phys. Lett. 199, 557 (1992), doi:10.1016/0009-2614(92)85009-Y).  The
first and last are codelets.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import DTypeLike
from jaxtyping import Float, Int, PyTree

from pyscf_ipu.codelets import codelet
from pyscf_ipu.grid.ao_blocks import AoBlocks
from pyscf_ipu.grid.ao_values import FloatNG
from pyscf_ipu.grid.blocks import Grid
from pyscf_ipu.numerics.arrays import (
    Count,
    FloatDG,
    FloatDNG,
    FloatG,
    FloatNN,
    FloatTDG,
    FloatTDNG,
    FloatTG,
    FloatTVG,
    FloatVG,
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
from pyscf_ipu.xc.semilocal.functionals import Functional


class GridProducts(NamedTuple):
    """The two steps that read all AO values, as a machine computes them."""

    prepared: Callable[[FloatNN, DTypeLike, bool], PyTree]
    """(density matrix, dtype on the grid, whether it is a change) -> what `moments` reads."""
    moments: Callable[[AoBlocks, PyTree, bool], FloatTVG]
    """Density and, for D = 4, its gradient; with True the kinetic energy density, too."""
    matrix: Callable[[AoBlocks, FloatTVG, DTypeLike], FloatNN]
    """The matrix, in a dtype, from a factor for each of the moments."""
    in_part: bool = False
    """Whether few columns are prepared, so that products with them are cheaper than the matrix."""


def by_density_matrix(
    density: Callable[[AoBlocks, FloatNN], FloatTDG],
    potential: Callable[[AoBlocks, FloatTDG], FloatNN],
) -> GridProducts:
    """Products with the density matrix itself; the kinetic energy density always in JAX.

    Args:
        density: density and gradient.
        potential: half of the matrix from their factors.
    """

    def prepared(matrix: FloatNN, dtype: DTypeLike, change: bool) -> FloatNN:
        del change
        return matrix.astype(dtype)

    def moments(ao: AoBlocks, matrix: FloatNN, tau: bool) -> FloatTVG:
        variables = density(ao, matrix)
        if not tau:
            return variables
        return jnp.concatenate([variables, xc_kinetic_density(ao, matrix)[:, None]], axis=1)

    def matrix(ao: AoBlocks, factors: FloatTVG, dtype: DTypeLike) -> FloatNN:
        planes = ao.values.shape[1]
        half = potential(ao, factors[:, :planes])
        if factors.shape[1] > planes:
            half = half + xc_kinetic_potential(ao, factors[:, planes])
        return (half + half.T).astype(dtype)

    return GridProducts(prepared, moments, matrix)


def exchange_correlation(
    functional: Functional,
    grid: Grid | None,
    density: FloatNN,
    products: GridProducts,
) -> tuple[Pair, FloatNN]:
    """Semilocal energy (Hartree, a Pair) and its matrix dE/dD at a symmetric density matrix.

    Both have the dtype of the density matrix; that of the grid may be a narrower one.
    """
    if grid is None:
        zero = jnp.zeros((), density.dtype)
        return Pair(zero, zero), jnp.zeros_like(density)

    prepared = products.prepared(density, grid.weights.dtype, False)

    def blocks(ao: AoBlocks, weights: FloatTG) -> tuple[tuple[Array, Array], FloatNN]:
        moments = products.moments(ao, prepared, functional.needs_tau)
        points = [tile_put_sharded(x, range(x.shape[0])) for x in (moments, weights)]
        vertex = partial(xc_functional_vertex, functional)
        hi, lo, factors = tile_map(
            vertex, *points, name="xc_functional", together=True, shared=True
        )
        return (hi.array, lo.array), products.matrix(ao, factors.array, density.dtype)

    energies, matrix = grid.each(blocks)
    return tile_total(Pair(*energies)).astype(density.dtype), matrix


Vertex = Callable[..., Array]
"""(AO values of a block, another array) -> density, or matrix, on it."""


def xc_density(ao: AoBlocks, density: FloatNN) -> FloatTDG:
    """The density on all points and, for D = 4, its gradient."""
    t, d, _, points = ao.values.shape
    shape = (t, d, points)
    portable = _densities("xc_density", xc_density_vertex, ao.packed is not None)
    return codelet("xc_density", portable, ao.values, *ao.listed(), density, shape=shape)


def xc_potential(ao: AoBlocks, factors: FloatTDG) -> FloatNN:
    """Half of the matrix: sum_g ao_0 (sum_d factors_d ao_d)^T."""
    n = ao.values.shape[2]
    portable = _matrices("xc_potential", xc_potential_vertex, ao.packed is not None)
    return codelet("xc_potential", portable, ao.values, *ao.listed(), factors, shape=(n, n))


def xc_kinetic_density(ao: AoBlocks, density: FloatNN) -> FloatTG:
    """The kinetic energy density on all points; D = 4."""
    portable = _densities("xc_kinetic_density", xc_kinetic_density_vertex, ao.packed is not None)
    return portable(ao.values, *map(jnp.asarray, ao.listed()), density)


def xc_kinetic_potential(ao: AoBlocks, factors: FloatTG) -> FloatNN:
    """Half of what the kinetic energy density adds to the matrix:
    sum_g factors sum_d ao_d ao_d^T, d = 1, 2 and 3."""
    portable = _matrices("xc_kinetic_potential", xc_kinetic_potential_vertex, ao.packed is not None)
    return portable(ao.values, *map(jnp.asarray, ao.listed()), factors)


def _densities(name: str, vertex: Vertex, packed: bool) -> Callable[..., Array]:
    """(AO values, their lists, density matrix) -> the points of all blocks."""

    def of_packed(ao: FloatDNG, aos: Int[Array, " N"], count: Count, density: FloatNN) -> Array:
        return vertex(that_count(ao, count), density[aos][:, aos])

    def portable(values: FloatTDNG, *operands: Array) -> Array:
        *lists, density = operands
        tiles = range(values.shape[0])
        own = [tile_put_sharded(x, tiles) for x in (values, *(lists if packed else ()))]
        own.append(tile_put_replicated(density, tiles))
        form = of_packed if packed else vertex
        return tile_map(form, *own, name=name, shared=True).array

    return portable


def _matrices(name: str, vertex: Vertex, packed: bool) -> Callable[..., FloatNN]:
    """(AO values, their lists, factors at all points) -> a matrix over AOs."""

    def of_packed(ao: FloatDNG, aos: Int[Array, " N"], count: Count, factors: Array) -> FloatNN:
        matrix = vertex(that_count(ao, count), factors)
        return jnp.zeros_like(matrix).at[aos[:, None], aos].set(matrix)

    def portable(values: FloatTDNG, *operands: Array) -> FloatNN:
        *lists, factors = operands
        tiles = range(values.shape[0])
        own = [tile_put_sharded(x, tiles) for x in (values, *(lists if packed else ()), factors)]
        form = of_packed if packed else vertex
        return tile_map(form, *own, name=name, shared=True).array.sum(0)

    return portable


def that_count(ao: FloatDNG, count: Count) -> FloatDNG:
    """Zeros in place of AO values that mean nothing."""
    return jnp.where((jnp.arange(ao.shape[1], dtype=jnp.int32) < count)[:, None], ao, 0.0)


def xc_density_vertex(ao: FloatDNG, density: FloatNN) -> FloatDG:
    """One block: density and gradient."""
    return density_sums(ao, jnp.matmul(density, ao[0], precision="highest"))


def density_sums(ao: FloatDNG, product: FloatNG) -> FloatDG:
    """Density and gradient from some AOs and the product of their rows of the density matrix."""
    # Separate sums: one stacked reduction is five times slower on a CPU.
    sums = [(ao[d] * product).sum(0) for d in range(ao.shape[0])]
    return jnp.stack([sums[0], *(2.0 * s for s in sums[1:])])


def xc_kinetic_density_vertex(ao: FloatDNG, density: FloatNN) -> FloatG:
    """One block: sum_ij D_ij grad ao_i . grad ao_j / 2."""
    products = [jnp.matmul(density, ao[d], precision="highest") for d in (1, 2, 3)]
    sums = [(ao[d] * p).sum(0) for d, p in enumerate(products, start=1)]
    return 0.5 * (sums[0] + sums[1] + sums[2])


def moments_of(functional: Functional, density: FloatNN, ao: FloatDNG) -> FloatVG:
    """One block: all that `GridProducts.moments` finds on it."""
    variables = xc_density_vertex(ao, density)
    if not functional.needs_tau:
        return variables
    return jnp.concatenate([variables, xc_kinetic_density_vertex(ao, density)[None]])


def xc_functional_vertex(
    functional: Functional, moments: FloatVG, weights: FloatG
) -> tuple[Scalar, Scalar, FloatVG]:
    """One block: its energy in two words and the factors of `GridProducts.matrix`."""
    ingredients, slope = ingredients_of(functional, moments)
    e, v_rho, v_sigma, *v_tau = functional.energy_and_potential(*ingredients)
    energy = vertex_total(two_product(e, weights))
    factors = [0.5 * weights * v_rho, *(2.0 * weights * v_sigma * s for s in slope)]
    return energy.hi, energy.lo, jnp.stack([*factors, *(0.25 * weights * v for v in v_tau)])


def ingredients_of(
    functional: Functional, moments: FloatVG
) -> tuple[tuple[FloatG, ...], Float[Array, "axes G"]]:
    """What a functional depends on, from the moments at the points of a block; and the gradient."""
    slope = moments[1:4]
    tau = (moments[4],) if functional.needs_tau else ()
    return (moments[0], along(slope, slope), *tau), slope


def along(a: Float[Array, "axes G"], b: Float[Array, "axes G"]) -> FloatG:
    """Scalar product at every point; zero without axes."""
    return sum((x * y for x, y in zip(a, b, strict=True)), jnp.zeros(a.shape[1:], a.dtype))


def xc_potential_vertex(ao: FloatDNG, factors: FloatDG) -> FloatNN:
    """One block's part of half the matrix."""
    return over_points(ao[0], weighted(ao, factors))


def weighted(ao: FloatDNG, factors: FloatDG) -> FloatNG:
    """AO values and derivatives, each times its factor."""
    return sum((factors[d] * ao[d] for d in range(1, ao.shape[0])), factors[0] * ao[0])


def over_points(a: FloatNG, b: Float[Array, "M G"]) -> Float[Array, "n M"]:
    """A B^T, in full precision."""
    return lax.dot_general(a, b, (((1,), (1,)), ((), ())), precision="highest")


def xc_kinetic_potential_vertex(ao: FloatDNG, factors: FloatG) -> FloatNN:
    """One block's part of half the matrix of the kinetic energy density."""
    parts = [over_points(ao[d], factors * ao[d]) for d in (1, 2, 3)]
    return parts[0] + parts[1] + parts[2]


PORTABLE = by_density_matrix(xc_density, xc_potential)
"""In JAX, and on a CPU native."""

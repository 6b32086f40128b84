"""VV10's energy and its matrix, on a grid of its own: sums over all pairs of points.

The density and the matrix are made block by block as for the semilocal part; between them lie the
pairs, a codelet.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from pyscf_ipu.codelets import codelet
from pyscf_ipu.grid.ao_blocks import AoBlocks
from pyscf_ipu.grid.blocks import Grid, Places
from pyscf_ipu.grid.xc_matrix import GridProducts, along
from pyscf_ipu.numerics.arrays import (
    Count,
    FloatA3,
    FloatG,
    FloatG3,
    FloatNN,
    FloatTG,
    FloatTVG,
    Scalar,
)
from pyscf_ipu.numerics.columns import Columns
from pyscf_ipu.numerics.two_words import Pair, two_product
from pyscf_ipu.tiles import tile_total
from pyscf_ipu.xc.semilocal.vv10 import (
    VV10,
    PairSums,
    PointPairs,
    energy_and_potential,
    point_pairs,
)

CHUNK = 16
"""Points whose pairs with all others the portable form makes at a time."""


class Correlation(NamedTuple):
    """VV10 on all points of T blocks."""

    energy: FloatTG  # per volume, Hartree/Bohr^3
    by_weight: FloatTG  # the energy's derivative by the weight of a point
    factors: FloatTVG  # the energy's derivatives by the density and its gradient
    points: FloatG3  # Bohr
    pairs: PointPairs


def nonlocal_correlation(
    vv10: VV10, grid: Grid, nuclei: FloatA3, density: FloatNN, products: GridProducts
) -> tuple[Pair, FloatNN]:
    """Energy (Hartree, a Pair) and its matrix dE/dD at a symmetric density matrix.

    Args:
        vv10: its parameters.
        grid: its own.
        nuclei: positions, Bohr.
        density: the density matrix.
        products: how a machine computes densities and matrices.
    """
    prepared = products.prepared(density, grid.weights.dtype, False)
    of = correlation_of(vv10, grid, nuclei, density=prepared, products=products)

    def matrix(ao: AoBlocks, weights: FloatTG, factors: FloatTVG) -> tuple[tuple[()], FloatNN]:
        del weights
        halved = factors * jnp.asarray([0.5, 1, 1, 1], factors.dtype)[:, None]
        return (), products.matrix(ao, halved, density.dtype)

    _, total = grid.each(matrix, of.factors)
    return tile_total(two_product(of.energy, grid.weights)).astype(density.dtype), total


def correlation_of(
    vv10: VV10, grid: Grid, nuclei: FloatA3, density: FloatNN | Columns, products: GridProducts
) -> Correlation:
    """VV10 on all points, of a density as `products.prepared` gives it."""

    def densities(ao: AoBlocks, weights: FloatTG) -> tuple[tuple[FloatTVG], Array]:
        return (products.moments(ao, density, False),), jnp.zeros((), weights.dtype)

    (moments,), _ = grid.each(densities)
    slope = jnp.moveaxis(moments[:, 1:], 1, 0).reshape(3, -1)
    rho, sigma, weights = moments[:, 0].ravel(), along(slope, slope), grid.weights.ravel()
    points = positions(grid.places, nuclei)
    pairs = point_pairs(vv10, rho, sigma, weights=weights)
    sums = pair_sums(points, pairs)
    energy, by_rho, by_sigma = energy_and_potential(vv10, rho, sigma, points=pairs, sums=sums)
    by_weight = jnp.where(pairs.electrons != 0, rho * (vv10.beta + sums.phi), 0.0)
    factors = jnp.stack([weights * by_rho, *(2.0 * weights * by_sigma * s for s in slope)])
    blocks = moments.shape[::2]
    return Correlation(
        energy.reshape(blocks),
        by_weight.reshape(blocks),
        jnp.moveaxis(factors.reshape(4, *blocks), 0, 1),
        points=points,
        pairs=pairs,
    )


def positions(places: Places, nuclei: FloatA3) -> FloatG3:
    """All points, Bohr."""
    centres = nuclei.astype(places.local.dtype)
    return (places.local + centres[jnp.asarray(places.owner)]).reshape(-1, 3)


def pair_sums(points: FloatG3, pairs: PointPairs) -> PairSums:
    """The sums over all pairs."""
    phi, by_kappa, by_omega = _sums("nonlocal_pairs", _pairs_row, points, pairs=pairs)
    return PairSums(-1.5 * phi, 1.5 * by_kappa, 1.5 * by_omega)


def pair_gradient(points: FloatG3, pairs: PointPairs) -> FloatG3:
    """dE/dr of every point at fixed electrons, omega and kappa; Hartree/Bohr."""
    slopes = _sums("nonlocal_gradient", _slopes_row, points, pairs=pairs)
    return 3.0 * pairs.electrons[:, None] * slopes.T


Row = Callable[[FloatG3, Count, PointPairs], tuple[Scalar, ...]]
"""(one point as seen from all, its number, all points) -> three sums over all."""


def _sums(name: str, row: Row, points: FloatG3, pairs: PointPairs) -> Float[Array, "3 G"]:
    """A codelet whose portable form takes all pairs of some points at a time."""

    def portable(points: FloatG3, *fields: FloatG) -> Float[Array, "3 G"]:
        pairs = PointPairs(*fields)

        def of(index: Count) -> Float[Array, "3"]:
            sums = jnp.stack(row(points[index] - points, index, pairs))
            return jnp.where(pairs.electrons[index] != 0, sums, 0.0)

        indices = jnp.arange(points.shape[0], dtype=jnp.int32)
        return lax.map(of, indices, batch_size=CHUNK).T

    return codelet(name, portable, points, *pairs, shape=(3, points.shape[0]))


def _pairs_row(apart: FloatG3, index: Count, pairs: PointPairs) -> tuple[Scalar, ...]:
    """One point: sums of 1 / (g h (g + h)) and of its slopes."""
    square, g, h = _denominators(apart, index, pairs)
    phi = pairs.electrons / (g * h * (g + h))
    slope = phi * (1 / g + 1 / (g + h))
    return phi.sum(), slope.sum(), (slope * square).sum()


def _slopes_row(apart: FloatG3, index: Count, pairs: PointPairs) -> tuple[Scalar, ...]:
    """One point: the slopes along x, y and z."""
    _, g, h = _denominators(apart, index, pairs)
    mine, other = pairs.omega[index], pairs.omega
    phi = pairs.electrons / (g * h * (g + h))
    slope = phi * (mine / g + other / h + (mine + other) / (g + h))
    return tuple((slope * x).sum() for x in apart.T)


def _denominators(apart: FloatG3, index: Count, pairs: PointPairs) -> tuple[FloatG, FloatG, FloatG]:
    """R^2, g and h of the pairs of one point."""
    square = along(apart.T, apart.T)
    omega, kappa = pairs.omega[index], pairs.kappa[index]
    return square, omega * square + kappa, pairs.omega * square + pairs.kappa

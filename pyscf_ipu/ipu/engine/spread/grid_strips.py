"""Density and matrix on the grid, some rows of the matrices at a time.

Every tile has grid points, and each of them needs the whole density matrix and adds to the whole
matrix of the functional.  Held at once, these two take 8 N^2 bytes of each tile, however many IPUs
there are.  In strips of rows or columns a tile has one strip at a time, for the price of some more
syncs; what travels is the same.
"""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
from jax import Array

from pyscf_ipu.grid.ao_blocks import AoBlocks
from pyscf_ipu.grid.xc_matrix import (
    GridProducts,
    by_density_matrix,
    density_sums,
    over_points,
    weighted,
    xc_density,
    xc_potential,
)
from pyscf_ipu.ipu.pricing.priced_as import priced_as
from pyscf_ipu.numerics.arrays import FloatNN, FloatTDG
from pyscf_ipu.tiles import TileShardedArray, tile_map, tile_put_replicated, tile_put_sharded

Step = Callable[[AoBlocks, Array], Array]

STRIP_BYTES = 16384
"""Of a strip in float32; a matrix of up to 64 AOs is one."""


def strip_rows(n: int) -> int:
    """Rows of a strip of an N x N matrix, as many as fit; strips are about equally high."""
    most = max(1, min(n, STRIP_BYTES // (4 * n)))
    return -(-n // -(-n // most))


def spread_products() -> GridProducts:
    """The products of `grid.xc_matrix` in strips; the kinetic energy density is not cut."""
    return by_density_matrix(
        partial(_priced, xc_density, strips_density),
        partial(_priced, xc_potential, strips_potential),
    )


def _priced(whole: Step, strips: Step, ao: AoBlocks, other: Array) -> Array:
    n = ao.values.shape[2]
    if strip_rows(n) == n:
        return whole(ao, other)
    return priced_as(whole, strips, ao, other)


def strips_density(ao: AoBlocks, density: FloatNN) -> FloatTDG:
    """Compute `xc_matrix.xc_density` in strips."""
    tiles, n = range(ao.values.shape[0]), ao.values.shape[2]
    own = tile_put_sharded(ao.values, tiles)
    densities: list[TileShardedArray] = []
    for first in range(0, n, strip_rows(n)):
        rows = tile_put_replicated(density[first : first + strip_rows(n)], tiles)
        vertex = partial(_add_density, first)
        densities = [tile_map(vertex, own, rows, *densities, name="xc_density", shared=True)]
    return densities[0].array


def _add_density(first: int, ao: Array, rows: Array, *before: Array) -> Array:
    """Vertex: what some rows of the density matrix, from `first` on, add on a block: [D, G]."""
    product = jnp.matmul(rows, ao[0], precision="highest")
    return sum(before, density_sums(ao[:, first : first + rows.shape[0]], product))


def strips_potential(ao: AoBlocks, factors: FloatTDG) -> FloatNN:
    """Compute `xc_matrix.xc_potential` in strips."""
    tiles, n = range(ao.values.shape[0]), ao.values.shape[2]
    given = tile_put_sharded(ao.values, tiles), tile_put_sharded(factors, tiles)
    strips = []
    for first in range(0, n, strip_rows(n)):
        vertex = partial(_columns_of_matrix, first, min(first + strip_rows(n), n))
        part = tile_map(vertex, *given, name="xc_potential", shared=True)
        strips.append(part.array.sum(0))
    return jnp.concatenate(strips, axis=1)


def _columns_of_matrix(first: int, end: int, ao: Array, factors: Array) -> Array:
    """Vertex: a block's part of some columns of half the matrix."""
    return over_points(ao[0], weighted(ao[:, first:end], factors))

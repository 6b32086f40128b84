"""Density and matrix on the grid: GPU kernels that read the AO values once each, up to ROWS AOs.

As several steps of XLA they read them two and a half times a cycle, and write products as large as
a quarter of them.
"""

import functools

import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from pyscf_ipu.machines import pallas as pl
from pyscf_ipu.machines.launch import Ref, interpreted, launch
from pyscf_ipu.numerics.arrays import FloatNN, FloatTDG, FloatTDNG

ROWS = 64
"""AOs in a product."""
POINTS = 32
"""Points in a product; the points of a block are a multiple of it."""
WARPS = 4

EXACT = lax.DotAlgorithmPreset.F32_F32_F32
THREE_PARTS = lax.DotAlgorithmPreset.TF32_TF32_F32_X3
"""On the matrix units, with the digits of float32."""


def density_kernel(ao: FloatTDNG, density: FloatNN) -> FloatTDG:
    """`grid.xc_matrix.xc_density` in float32."""
    t, d, n, size = ao.shape
    kernel = functools.partial(_density, -(-n // ROWS))
    programs = t, size // POINTS
    return launch(kernel, "xc_density", programs, shape=(t, d, size), dtype=ao.dtype, warps=WARPS)(
        ao, density
    )


def potential_kernel(ao: FloatTDNG, factors: FloatTDG) -> FloatNN:
    """`grid.xc_matrix.xc_potential` in float32."""
    t, _, n, _ = ao.shape
    tiles = -(-n // ROWS)
    programs = t, tiles, tiles
    parts = launch(
        _potential, "xc_potential", programs, shape=(t, n, n), dtype=ao.dtype, warps=WARPS
    )(ao, factors)
    return parts.sum(0)


def _density(tiles: int, ao: Ref, density: Ref, out: Ref) -> None:
    """Density and gradient on POINTS points of a block."""
    block, start = pl.program_id(0), pl.program_id(1) * POINTS
    d, n = ao.shape[1], ao.shape[2]
    sums = [jnp.zeros((POINTS,), ao.dtype)] * d
    for first in range(tiles):
        rows, real = _rows(first, n)
        product = jnp.zeros((ROWS, POINTS), ao.dtype)
        for other in range(tiles):
            columns, there = _rows(other, n)
            part = pl.triton.load(
                density.at[rows[:, None], columns[None]],
                mask=real[:, None] & there[None],
                other=0.0,
            )
            values = _load(ao, (block, 0), columns, real=there, start=start)
            product += _product(part, values, (1, 0), precision=EXACT)
        for k in range(d):
            values = _load(ao, (block, k), rows, real=real, start=start)
            sums[k] += jnp.sum(values * product, axis=0)
    for k in range(d):
        out[block, k, pl.ds(start, POINTS)] = sums[k] if k == 0 else 2.0 * sums[k]


def _potential(ao: Ref, factors: Ref, out: Ref) -> None:
    """One block's part of ROWS times ROWS elements of half the matrix."""
    block = pl.program_id(0)
    d, n, size = ao.shape[1:]
    rows, real = _rows(pl.program_id(1), n)
    columns, there = _rows(pl.program_id(2), n)

    def add(i: Array, total: Array) -> Array:
        start = i * POINTS
        weighted = jnp.zeros((ROWS, POINTS), ao.dtype)
        for k in range(d):
            factor = factors[block, k, pl.ds(start, POINTS)]
            weighted += factor[None] * _load(ao, (block, k), columns, real=there, start=start)
        values = _load(ao, (block, 0), rows, real=real, start=start)
        return total + _product(values, weighted, (1, 1), precision=THREE_PARTS)

    total = lax.fori_loop(0, size // POINTS, add, jnp.zeros((ROWS, ROWS), ao.dtype))
    mask = real[:, None] & there[None]
    pl.triton.store(out.at[block, rows[:, None], columns[None]], total, mask=mask)


def _rows(tile: int | Array, n: int) -> tuple[Array, Array]:
    """AOs of a tile, and which of them there are."""
    rows = tile * ROWS + jnp.arange(ROWS, dtype=jnp.int32)
    return rows, rows < n


def _load(
    ao: Ref, place: tuple[Array, int], rows: Array, real: Array, start: Array
) -> Float[Array, "n g"]:
    points = start + jnp.arange(POINTS, dtype=jnp.int32)
    return pl.triton.load(
        ao.at[(*place, rows[:, None], points[None])], mask=real[:, None], other=0.0
    )


def _product(
    a: Array, b: Array, contract: tuple[int, int], precision: lax.DotAlgorithmPreset
) -> Array:
    dimensions = (((contract[0],), (contract[1],)), ((), ()))
    return lax.dot_general(a, b, dimensions, precision=EXACT if interpreted() else precision)

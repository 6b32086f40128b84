"""The supermatrix on a GPU: one kernel gathers G from all ERIs; each cycle reads it once.

See `integrals.supermatrix` for what G is.  It is kept whole here: of half of it a GPU would read
every element twice for a product, along the rows and along the columns.
"""

import functools

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from pyscf_ipu.integrals.supermatrix import packed_indices
from pyscf_ipu.machines import pallas as pl
from pyscf_ipu.machines.launch import Ref, launch
from pyscf_ipu.numerics.arrays import FloatP, FloatRR
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes.tile_plan import TilePlan
from pyscf_ipu.tiles import tile_dot

COLUMNS = 512
"""Elements of a row in one program."""


def full_supermatrix(
    plan: TilePlan, matrices: tuple[FloatRR, FloatRR, float]
) -> Float[Array, "P P"]:
    """G from the matrices M of all ERIs; see `integrals.supermatrix.supermatrix`."""
    coulomb, exchange, fraction = matrices
    i, j = packed_indices(plan.layout.shape.n_ao)
    tables = (jnp.asarray(plan.row_of), jnp.asarray(i), jnp.asarray(j))
    n = len(i)
    kernel = functools.partial(_kernel, fraction)
    programs = n, -(-n // COLUMNS)
    run = launch(kernel, "supermatrix", programs, shape=(n, n), dtype=coulomb.dtype, warps=4)
    return run(coulomb, exchange, *tables)


def _kernel(fraction: float, *refs: Ref) -> None:
    """COLUMNS elements (kl) of one row (ij)."""
    coulomb, exchange, row_of, first, second, out = refs
    place, start = pl.program_id(0), pl.program_id(1) * COLUMNS
    columns = start + jnp.arange(COLUMNS, dtype=jnp.int32)
    inside = columns < first.shape[0]
    i, j = first[place], second[place]

    def load(ref: Ref, *index: Array) -> Array:
        return pl.triton.load(ref.at[index], mask=inside, other=0)

    k, l = load(first, columns), load(second, columns)
    element = load(coulomb, row_of[i, j], load(row_of, k, l))
    if fraction:
        one = load(exchange, load(row_of, i, k), load(row_of, j, l))
        two = load(exchange, load(row_of, i, l), load(row_of, j, k))
        element = element - 0.25 * fraction * (one + two)
    pl.triton.store(out.at[place, columns], element, mask=inside)


def full_repulsion(full: Float[Array, "P P"], d: FloatP) -> tuple[FloatP, Pair]:
    """G d and the energy 1/2 d G d; see `integrals.supermatrix.repulsion`."""
    y = jnp.sum(full * d, axis=1)
    return y, tile_dot(0.5 * d, y)

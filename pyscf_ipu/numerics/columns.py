"""Densities as few columns: D = sum_r s_r c_r c_r^T, from which exchange is made.

A density of n electron pairs has rank n.  Its Cholesky factor with the largest remaining diagonal
as pivot finds n such columns, which are occupied orbitals (F. Aquilante, T. B. Pedersen,
A. Sanchez de Meras, H. Koch, J. Chem. Phys. 125, 174101 (2006), doi:10.1063/1.2360264).  So the
SCF's densities need not come with their orbitals, and that of free atoms, which has none, has
columns too.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from pyscf_ipu.numerics.arrays import Count, FloatN, FloatNN

BLOCK = 16
"""Columns that are computed together; a multiple of it is kept."""
NOISE = 2.0
"""Units of rounding of the largest element that do not count.  With more, electrons are lost, and
float32 energies are too high by a fraction of a meV; with fewer, there are columns of noise."""


class Columns(NamedTuple):
    """Columns of a symmetric matrix, the first `count` of which are not zero."""

    vectors: Float[Array, "N C"]
    signs: Float[Array, " C"]
    count: Count

    def counted(self) -> Float[Array, "N C"]:
        """The vectors, with zeros beyond the first `count`."""
        there = jnp.arange(self.vectors.shape[1], dtype=jnp.int32) < self.count
        return jnp.where(there, self.vectors, 0.0)


class _State(NamedTuple):
    vectors: Float[Array, "N C"]
    left: FloatN  # diagonal of what the columns so far leave
    count: Count


def columns_of_density(density: FloatNN) -> Columns:
    """The columns of a matrix without negative eigenvalues, by its pivoted Cholesky factor."""
    n, dtype = density.shape[0], density.dtype
    width = n + -n % BLOCK
    diagonal = jnp.diagonal(density)
    least = NOISE * float(jnp.finfo(dtype).eps) * jnp.max(diagonal)

    def unfinished(state: _State) -> Array:
        return (state.count < n) & (jnp.max(state.left) > least)

    def step(state: _State) -> _State:
        pivot = jnp.argmax(state.left)
        before = jnp.matmul(state.vectors, state.vectors[pivot], precision="highest")
        column = (density[:, pivot] - before) / jnp.sqrt(state.left[pivot])
        left = (state.left - column * column).at[pivot].set(0.0)
        vectors = lax.dynamic_update_index_in_dim(state.vectors, column, state.count, 1)
        return _State(vectors, left, state.count + 1)

    start = _State(jnp.zeros((n, width), dtype), diagonal, jnp.zeros((), jnp.int32))
    end = lax.while_loop(unfinished, step, start)
    return Columns(end.vectors, jnp.ones(width, dtype), end.count)


def columns_of_change(change: FloatNN) -> Columns:
    """The columns of any symmetric matrix, by its eigenvectors."""
    n = change.shape[0]
    values, vectors = jnp.linalg.eigh(change)
    size = jnp.abs(values)
    order = jnp.argsort(-size)
    least = NOISE * float(jnp.finfo(change.dtype).eps) * jnp.max(size)
    pad = -n % BLOCK
    scaled = (vectors * jnp.sqrt(size))[:, order]
    signs = jnp.sign(values)[order]
    count = jnp.sum(size > least, dtype=jnp.int32)
    return Columns(jnp.pad(scaled, ((0, 0), (0, pad))), jnp.pad(signs, (0, pad)), count)

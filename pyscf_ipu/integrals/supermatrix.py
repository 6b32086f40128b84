"""The supermatrix: Coulomb and exchange of one molecule as a single matrix.

G[ij,kl] = (ij|kl) - x/4 [(ik|jl) + (il|jk)] with the fraction x of exact exchange, over AO pairs
i >= j, k >= l.  Where exchange has another interaction than 1/r, so have its two integrals.  The
two-electron Fock matrix is then one matrix-vector product per SCF cycle, F = G d, with d the packed
density whose off-diagonal elements count twice
(C. C. J. Roothaan, Rev. Mod. Phys. 23, 69 (1951), doi:10.1103/RevModPhys.23.69).

G is symmetric and memory is what the product costs, so it is kept as its half L, L + L^T = G: the
lower triangle, the diagonal halved, in blocks of BLOCK_ROWS rows.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int

from pyscf_ipu.codelets import codelet
from pyscf_ipu.numerics.arrays import Count, FloatNN, FloatP, FloatRR
from pyscf_ipu.numerics.two_words import Pair, compensated_dot
from pyscf_ipu.shapes.tile_plan import TilePlan

Half = Float[Array, "blocks rows P"]
BLOCK_ROWS = 8
"""So few that a block's products add up accurately in float32: with 64 rows nine heavy atoms
were 0.26 meV too low, with 8 they are 0.02."""


def packed_indices(n: int) -> tuple[Int[np.ndarray, " P"], Int[np.ndarray, " P"]]:
    """(i, j) of every AO pair i >= j, row by row."""
    i, j = np.tril_indices(n)
    # int32 whatever the x64 mode: index arrays of two widths must not meet in one trace.
    return i.astype(np.int32), j.astype(np.int32)


def pack_density(density: FloatNN) -> FloatP:
    """Over AO pairs, off-diagonal elements doubled."""
    i, j = packed_indices(density.shape[0])
    return density[i, j] * jnp.asarray(np.where(i == j, 1.0, 2.0), density.dtype)


def unpack(packed: FloatP, n: int) -> FloatNN:
    """The symmetric matrix."""
    i, j = np.indices((n, n), np.int32)
    high, low = np.maximum(i, j), np.minimum(i, j)
    return packed[high * (high + 1) // 2 + low]


def supermatrix(plan: TilePlan, coulomb: FloatRR, exchange: FloatRR, fraction: float) -> Half:
    """L; rows behind P are zero.

    Args:
        plan: of the rows of both matrices.
        coulomb: M of all ERIs.
        exchange: M of the exchange integrals; may be the same.
        fraction: x.
    """
    n_pairs = plan.layout.shape.n_pairs
    padded = n_pairs + -n_pairs % BLOCK_ROWS

    def portable(coulomb: FloatRR, exchange: FloatRR, row_of: Array) -> Array:
        del row_of  # part of the plan
        full = supermatrix_vertex(plan, coulomb, exchange, fraction)
        half = jnp.tril(full) - jnp.diag(0.5 * jnp.diagonal(full))
        return jnp.pad(half, ((0, padded - n_pairs), (0, 0)))

    constants = {"fraction": np.float64(fraction)}
    operands = (coulomb, exchange, plan.row_of)
    half = codelet("supermatrix", portable, *operands, shape=(padded, n_pairs), **constants)
    return half.reshape(-1, BLOCK_ROWS, n_pairs)


def supermatrix_vertex(
    plan: TilePlan, coulomb: FloatRR, exchange: FloatRR, fraction: float
) -> Float[Array, "P P"]:
    """G from both M, one slab of rows after the other."""
    n = plan.layout.shape.n_ao
    row_of = plan.row_of
    i, j = packed_indices(n)
    coulomb_rows = row_of[i, j]
    if fraction == 0.0:
        return coulomb[coulomb_rows][:, coulomb_rows]
    k, l = i, j
    width = plan.n_rows
    # For fixed i the exchange integrals (ik|jl) lie in N rows of M: one slab, then flat look-ups.
    first = jnp.asarray(k[None, :] * width + row_of[:, l], np.int32)  # [j, kl] -> (ik|jl)
    second = jnp.asarray(l[None, :] * width + row_of[:, k], np.int32)  # [j, kl] -> (il|jk)
    rows = jnp.asarray(row_of)
    columns = jnp.asarray(coulomb_rows)
    scale = -0.25 * fraction

    def slab(i: Count, out: Array) -> Array:
        flat = exchange[rows[i]].ravel()  # [N, R]: (i k| . )
        block = coulomb[rows[i]][:, columns] + scale * (flat[first] + flat[second])  # [j, kl]
        # Rows j > i belong to later slabs, which overwrite them.
        return lax.dynamic_update_slice(out, block, (i * (i + 1) // 2, 0))

    out = jnp.zeros((len(i) + n, len(i)), coulomb.dtype)
    return lax.fori_loop(0, n, slab, out)[: len(i)]


def repulsion(half: Half, d: FloatP) -> tuple[FloatP, Pair]:
    """G d and the energy 1/2 d G d, from `supermatrix` and the packed density.

    The energy is d L^T d, its blocks added in twice the working precision.
    """
    y, energy = codelet("repulsion", repulsion_vertex, half, d, shape=(d.shape, (2,)))
    return y, Pair(energy[0], energy[1])


def repulsion_vertex(half: Half, d: FloatP) -> tuple[FloatP, Float[Array, "2"]]:
    """The portable form of the codelet "repulsion": G d, and the energy's two words."""
    pad = half.shape[0] * half.shape[1] - d.shape[0]
    weights = jnp.pad(d, (0, pad)).reshape(half.shape[:2])
    partial = jnp.einsum("brp,br->bp", half, weights, precision="highest")
    down = jnp.einsum("brp,p->br", half, d, precision="highest").ravel()[: d.shape[0]]
    energy = compensated_dot(partial, jnp.broadcast_to(d, partial.shape))
    return partial.sum(0) + down, jnp.stack(energy)

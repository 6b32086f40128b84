"""The supermatrix: Coulomb and exchange of one molecule as a single matrix.

G[ij,kl] = (ij|kl) - x/4 [(ik|jl) + (il|jk)] with the fraction x of exact exchange, over AO pairs
i >= j, k >= l.  The two-electron Fock matrix is then one matrix-vector product per SCF cycle,
F = G d, with d the packed density whose off-diagonal elements count twice
(C. C. J. Roothaan, Rev. Mod. Phys. 23, 69 (1951), doi:10.1103/RevModPhys.23.69).
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pyscf_ipu.precision import Pair, compensated_dot
from pyscf_ipu.tiles import Block, Strips, TilePlan, TileShardedArray

ENERGY_ROWS = 64  # rows of the supermatrix per partial product


def packed_indices(n: int) -> tuple[np.ndarray, np.ndarray]:
    """(i, j) of every AO pair i >= j, row by row: two [P] arrays."""
    i, j = np.tril_indices(n)
    # int32 whatever the x64 mode: index arrays of two widths must not meet in one trace.
    return i.astype(np.int32), j.astype(np.int32)


def pack_density(density: Array) -> Array:
    """[N, N] -> [P] with off-diagonal elements doubled."""
    i, j = packed_indices(density.shape[0])
    return density[i, j] * jnp.asarray(np.where(i == j, 1.0, 2.0), density.dtype)


def unpack(packed: Array, n: int) -> Array:
    """[P] -> symmetric [N, N]."""
    i, j = np.indices((n, n), np.int32)
    high, low = np.maximum(i, j), np.minimum(i, j)
    return packed[high * (high + 1) // 2 + low]


def full_matrix(plan: TilePlan, blocks: list[TileShardedArray]) -> Array:
    """Assemble the blocks into the symmetric matrix M of all ERIs: [R, R] over plan rows."""
    n = len(plan.strips)
    grid: list[list[Any]] = [[None] * n for _ in range(n)]  # filled completely below
    for block, values in zip(plan.blocks, blocks, strict=True):
        bra, ket = plan.strips[block.bra], plan.strips[block.ket]
        square = _arrange(bra, ket, block, values.array)
        grid[block.bra][block.ket] = square
        if block.bra != block.ket:
            grid[block.ket][block.bra] = square.T
    return jnp.concatenate([jnp.concatenate(row, axis=1) for row in grid], axis=0)


def _arrange(bra: Strips, ket: Strips, block: Block, values: Array) -> Array:
    """The blocks of one class pair as a matrix [rows of bra, rows of ket]."""
    where = np.zeros((bra.n_strips, ket.n_strips), np.int32)
    where[block.bra_strip, block.ket_strip] = np.arange(len(block.bra_strip))
    if block.bra != block.ket:
        tiles = values[where]
    else:
        lower = np.tril_indices(bra.n_strips, -1)
        where[lower] = where.T[lower]
        mirrored = np.zeros(where.shape, bool)
        mirrored[lower] = True
        found = values[where]
        tiles = jnp.where(mirrored[:, :, None, None], found.swapaxes(2, 3), found)
    return tiles.transpose(0, 2, 1, 3).reshape(bra.n_rows, ket.n_rows)


def supermatrix(plan: TilePlan, matrix: Array, exact_exchange: float) -> Array:
    """G [P, P] from M [R, R]."""
    n = plan.layout.shape.n_ao
    row_of = plan.row_of
    i, j = packed_indices(n)
    coulomb_rows = row_of[i, j]
    if exact_exchange == 0.0:
        return matrix[coulomb_rows][:, coulomb_rows]
    k, l = i, j
    width = plan.n_rows
    # For fixed i the exchange integrals (ik|jl) lie in N rows of M: one slab, then flat look-ups.
    first = jnp.asarray(k[None, :] * width + row_of[:, l], np.int32)  # [j, kl] -> (ik|jl)
    second = jnp.asarray(l[None, :] * width + row_of[:, k], np.int32)  # [j, kl] -> (il|jk)
    rows = jnp.asarray(row_of)
    columns = jnp.asarray(coulomb_rows)
    scale = -0.25 * exact_exchange

    def slab(i: Array, out: Array) -> Array:
        mine = matrix[rows[i]]  # [N, R]: (i k| . )
        flat = mine.ravel()
        block = mine[:, columns] + scale * (flat[first] + flat[second])  # [j, kl]
        # Rows j > i belong to later slabs, which overwrite them.
        return lax.dynamic_update_slice(out, block, (i * (i + 1) // 2, 0))

    out = jnp.zeros((len(i) + n, len(i)), matrix.dtype)
    return lax.fori_loop(0, n, slab, out)[: len(i)]


def row_blocks(g: Array) -> Array:
    """G [P, P] cut into blocks of ENERGY_ROWS rows, the last padded with zeros: [nb, rows, P]."""
    pad = -g.shape[0] % ENERGY_ROWS
    return jnp.pad(g, ((0, pad), (0, 0))).reshape(-1, ENERGY_ROWS, g.shape[1])


def repulsion(blocks: Array, d: Array) -> tuple[Array, Pair]:
    """G d [P] and the energy 1/2 d G d, from `row_blocks` and the packed density [P].

    Each block's product is short enough to be accurate; the blocks are added in twice the working
    precision for the energy.
    """
    pad = blocks.shape[0] * blocks.shape[1] - d.shape[0]
    weights = jnp.pad(d, (0, pad)).reshape(blocks.shape[:2])
    partial = jnp.einsum("brp,br->bp", blocks, weights, precision="highest")
    energy = compensated_dot(partial, jnp.broadcast_to(0.5 * d, partial.shape))
    return partial.sum(0), energy

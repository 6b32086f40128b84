"""All electron repulsion integrals of a molecule as one symmetric matrix over AO pairs."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from pyscf_ipu.boys import packed_fits
from pyscf_ipu.codelets import codelet
from pyscf_ipu.integrals.electron_repulsion import EriSide, eri_blocks, eri_side
from pyscf_ipu.strips import StripData
from pyscf_ipu.tiles import Block, Strips, TilePlan, TileShardedArray


def eri_matrix(plan: TilePlan, strips: tuple[StripData, ...]) -> Array:
    """M [R, R] of (ab|cd) over the rows of the plan, in Hartree; unused rows are 0."""
    sides = [eri_side(d) for d in strips]

    def portable(*operands: Array) -> Array:
        found = [EriSide(*operands[i : i + 4]) for i in range(0, len(operands), 5)]
        return full_matrix(plan, eri_blocks(plan, found))

    operands = [x for s, side in zip(plan.strips, sides, strict=True) for x in (*side, s.segment)]
    shape = (plan.n_rows, plan.n_rows)
    return codelet("eri", portable, *operands, shape=shape, **work_list(plan, sides[0].p.dtype))


def work_list(plan: TilePlan, dtype: np.dtype, derivative: int = 0) -> dict[str, Any]:
    """What native codelets know beyond the arrays: the plan, and fits of the Boys function."""
    blocks = [
        np.stack([np.full_like(b.bra_strip, b.bra), np.full_like(b.bra_strip, b.ket),
                  b.bra_strip, b.ket_strip], axis=1)
        for b in plan.blocks
    ]  # fmt: skip
    orders = range(2 * max(s.pair_class.order for s in plan.strips) + 1 + derivative)
    sizes = [(s.pairs_per_strip, s.first_row) for s in plan.strips]
    return {
        "blocks": np.concatenate(blocks).astype(np.int32).ravel(),
        "boys": packed_fits(orders, dtype),
        "sizes": np.array(sizes, np.int32).ravel(),
    }


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

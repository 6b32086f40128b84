"""All electron repulsion integrals of a molecule as one symmetric matrix over AO pairs."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pyscf_ipu.codelets import codelet
from pyscf_ipu.integrals.electron_repulsion import (
    eri_blocks,
    eri_side,
    with_segments,
    without_segments,
)
from pyscf_ipu.integrals.strips import StripData
from pyscf_ipu.numerics.arrays import FloatRR
from pyscf_ipu.numerics.boys import packed_fits
from pyscf_ipu.numerics.interaction import COULOMB, Interaction
from pyscf_ipu.shapes.tile_plan import Block, Strips, TilePlan
from pyscf_ipu.tiles import TileShardedArray


def eri_matrix(plan: TilePlan, strips: tuple[StripData, ...], of: Interaction = COULOMB) -> FloatRR:
    """M of all (ab|cd) over the rows of the plan, in Hartree; unused rows are 0."""
    sides = [eri_side(d) for d in strips]

    def portable(*operands: Array) -> FloatRR:
        return portable_eri_matrix(plan, operands, of)

    operands = with_segments(sides, [s.segment for s in plan.strips])
    shape = (plan.n_rows, plan.n_rows)
    work = work_list(plan, sides[0].p.dtype)
    return codelet("eri", portable, *operands, shape=shape, interaction=np.array(of), **work)


def portable_eri_matrix(plan: TilePlan, operands: tuple[Array, ...], of: Interaction) -> FloatRR:
    """The portable form of the codelet "eri", from its operands: five of each class."""
    return full_matrix(plan, eri_blocks(plan, without_segments(operands), of))


EriMatrix = Callable[[TilePlan, tuple, Interaction], FloatRR]
"""`eri_matrix` as a machine computes it, or `portable_eri_matrix`."""


def eri_matrices(
    eri_matrix: EriMatrix, plan: TilePlan, data: tuple, exchange: Interaction
) -> tuple[FloatRR, FloatRR, float]:
    """What a supermatrix consists of: M of Coulomb and of exchange, and the latter's factor.

    Without range separation both are one matrix.
    """
    coulomb = eri_matrix(plan, data, COULOMB)
    if exchange.long_range == 0.0:
        return coulomb, coulomb, exchange.full
    return coulomb, eri_matrix(plan, data, exchange), 1.0


def work_list(plan: TilePlan, dtype: np.dtype, derivative: int = 0) -> dict[str, np.ndarray]:
    """What native codelets read beside the arrays: the plan, and fits of the Boys function."""
    blocks = [
        np.stack(np.broadcast_arrays(b.bra, b.ket, b.bra_strip, b.ket_strip), axis=1)
        for b in plan.blocks
    ]
    orders = range(2 * max(s.pair_class.order for s in plan.strips) + 1 + derivative)
    sizes = [(s.pairs_per_strip, s.first_row) for s in plan.strips]
    return {
        "blocks": np.concatenate(blocks).astype(np.int32).ravel(),
        "boys": packed_fits(orders, dtype),
        "sizes": np.array(sizes, np.int32).ravel(),
    }


def full_matrix(plan: TilePlan, blocks: list[TileShardedArray]) -> FloatRR:
    """Assemble the blocks into the symmetric matrix M of all ERIs."""
    strips = plan.strips
    squares = [
        arrange(strips[block.bra], strips[block.ket], block, values=values.array)
        for block, values in zip(plan.blocks, blocks, strict=True)
    ]
    return symmetric_matrix(plan, squares)


def symmetric_matrix(plan: TilePlan, squares: list[Array]) -> FloatRR:
    """M from the integrals [rows of bra, rows of ket] of every class pair in the plan."""
    n = len(plan.strips)
    grid: dict[tuple[int, int], Array] = {}
    for block, square in zip(plan.blocks, squares, strict=True):
        grid[block.bra, block.ket] = square
        if block.bra != block.ket:
            grid[block.ket, block.bra] = square.T
    rows = [jnp.concatenate([grid[a, b] for b in range(n)], axis=1) for a in range(n)]
    return jnp.concatenate(rows, axis=0)


def arrange(
    bra: Strips, ket: Strips, block: Block, values: Float[Array, "T f g"]
) -> Float[Array, "rows columns"]:
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
        blocks = values[where]
        tiles = jnp.where(mirrored[:, :, None, None], blocks.swapaxes(2, 3), blocks)
    return tiles.transpose(0, 2, 1, 3).reshape(bra.n_rows, ket.n_rows)

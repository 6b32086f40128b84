"""Electron repulsion integrals (ab|cd), one tile block at a time.

(ab|cd) = sum_pq 2 pi^(5/2) / (p q sqrt(p + q)) sum_h sum_k E^ab_h (-1)^|k| E^cd_k
R_{h+k}(alpha, P-Q), alpha = p q / (p + q) (McMurchie & Davidson 1978; Helgaker, Jorgensen, Olsen,
eq. 9.9.33).  The constant and 1/p (1/q) are folded into E on both sides, and the sign into the
ket's.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int

from pyscf_ipu.integrals.strips import StripData
from pyscf_ipu.numerics.arrays import Floats, FloatSnc, FloatSnc3, FloatSncfh, HostArray
from pyscf_ipu.numerics.hermite import SIDE_CONSTANT, hermite_coulomb, hermite_sign, product_index
from pyscf_ipu.numerics.interaction import COULOMB, Interaction
from pyscf_ipu.numerics.two_words import quotient
from pyscf_ipu.shapes.tile_plan import Block, Strips, TilePlan
from pyscf_ipu.tiles import TileShardedArray, tile_gather, tile_map

SMALL_SUM = 12  # contractions up to this length are written out; a matrix product costs more


class EriSide(NamedTuple):
    """One class as bra or ket; in a vertex, one strip of it without the axis S."""

    p: FloatSnc
    centre_hi: FloatSnc3
    centre_lo: FloatSnc3
    hermite: FloatSncfh
    """E with the prefactor sqrt(2) pi^(5/4) / p."""


def eri_side(data: StripData) -> EriSide:
    scale = quotient(SIDE_CONSTANT, data.p)
    hi, lo = (x[..., None, None] for x in scale)
    hermite = data.hermite * hi + data.hermite * lo
    return EriSide(data.p, data.centre.hi, data.centre.lo, hermite=hermite)


def with_segments(
    sides: Sequence[EriSide], segments: Sequence[Int[np.ndarray, "_ _"]]
) -> list[HostArray]:
    """What codelets read of every class: its side, and which member a chunk belongs to."""
    return [x for side, segment in zip(sides, segments, strict=True) for x in (*side, segment)]


def without_segments(operands: Sequence[Array]) -> list[EriSide]:
    """The sides in what `with_segments` gives."""
    return [EriSide._make(operands[i : i + 4]) for i in range(0, len(operands), 5)]


def eri_blocks(
    plan: TilePlan, sides: list[EriSide], of: Interaction = COULOMB
) -> list[TileShardedArray]:
    """The blocks of every class pair, in the order of `plan.blocks`: each [T, mb*f, mb'*f'].

    Rows of a block are the AO products of its bra strip, columns those of its ket strip.
    """
    return [class_blocks(plan, block, sides, of=of) for block in plan.blocks]


def class_blocks(
    plan: TilePlan, block: Block, sides: list[EriSide], of: Interaction = COULOMB
) -> TileShardedArray:
    """The blocks of one class pair."""
    bra, ket = plan.strips[block.bra], plan.strips[block.ket]
    vertex = partial(eri_vertex, (bra.pair_class.order, ket.pair_class.order), of)
    bra_rows = [tile_gather(x, block.bra_strip, block.tiles) for x in sides[block.bra]]
    ket_rows = [tile_gather(x, block.ket_strip, block.tiles) for x in sides[block.ket]]
    name = f"eri_{_letters(bra)}_{_letters(ket)}"
    chunks = tile_map(vertex, *bra_rows, *ket_rows, name=name)
    return TileShardedArray(_sum_chunks(bra, ket, block, chunks=chunks.array), block.tiles)


def _letters(strips: Strips) -> str:
    return "".join("spdf"[l] for ls in (strips.pair_class.ls_a, strips.pair_class.ls_b) for l in ls)


def eri_vertex(
    orders: tuple[int, int], of: Interaction, *words: Floats
) -> Float[Array, "nb f nk g"]:
    """One block: [nb, c] bra and [nk, c'] ket primitive pairs -> [nb, f, nk, g] AO products.

    Args:
        orders: Hermite orders of bra and ket.
        of: the interaction.
        words: a strip's `EriSide` of the bra, then one of the ket.
    """
    ket = EriSide._make(words[4:])
    n_ket, c_ket = ket.p.shape
    lanes = n_ket * c_ket
    q = ket.p.T.ravel()
    q_hi, q_lo = (x.transpose(2, 1, 0).reshape(3, -1) for x in (ket.centre_hi, ket.centre_lo))
    rows = product_index(*orders)

    def chunk(bra: tuple[Floats, ...]) -> Float[Array, "f k lanes"]:
        """One bra chunk against the whole ket strip: [f, h', c', nk]."""
        p, hi, lo, e = bra
        total = p[:, None] + q
        alpha = p[:, None] * q / total
        r = [(hi[:, d, None] - q_hi[d]) + (lo[:, d, None] - q_lo[d]) for d in range(3)]
        table = hermite_coulomb(sum(orders), alpha, 1.0 / jnp.sqrt(total), r=r, of=of)
        return _contract_bra(e, table, rows).reshape(e.shape[1], -1, lanes)

    half = lax.map(chunk, words[:4])  # [nb, f, h', lanes]
    half = half.reshape(*half.shape[:3], c_ket, n_ket)
    signed = ket.hermite * jnp.asarray(hermite_sign(orders[1]), q.dtype)
    return _contract_ket(half, signed.transpose(2, 3, 1, 0))


def _contract_bra(
    e: Float[Array, "c f h"], table: Float[Array, "sums c lanes"], rows: Int[np.ndarray, "h k"]
) -> Floats:
    """Sum over the primitives of a chunk and the bra's Hermites."""
    c, f, h = e.shape
    if c * h <= SMALL_SUM and f == 1:
        terms = [e[i, 0, j] * table[rows[j], i] for i in range(c) for j in range(h)]
        return sum(terms[1:], terms[0])[None]
    expanded = table[rows].transpose(0, 2, 1, 3).reshape(h * c, -1)
    weights = e.transpose(1, 2, 0).reshape(f, h * c)
    return jnp.matmul(weights, expanded, precision="highest")


def _contract_ket(
    half: Float[Array, "nb f k c nk"], e: Float[Array, "g k c nk"]
) -> Float[Array, "nb f nk g"]:
    return jnp.einsum("bfhck,ghck->bfkg", half, e, precision="highest")


def _sum_chunks(
    bra: Strips, ket: Strips, block: Block, chunks: Float[Array, "T nb f nk g"]
) -> Float[Array, "T rows columns"]:
    """Sum the chunks of each shell pair: rows and columns are the AO products of the strips."""
    if not bra.one_chunk_per_pair:
        chunks = jnp.einsum(
            "tmb,tb...->tm...", _onto(bra, block.bra_strip, chunks), chunks, precision="highest"
        )
    if not ket.one_chunk_per_pair:
        onto = _onto(ket, block.ket_strip, chunks)
        chunks = jnp.einsum("tmk,tbfkg->tbfmg", onto, chunks, precision="highest")
    t, nb, f, nk, g = chunks.shape
    return chunks.reshape(t, nb * f, nk * g)


def _onto(strips: Strips, which: np.ndarray, like: Floats) -> Float[Array, "T m nb"]:
    return jnp.asarray(strips.onto()[which], like.dtype)

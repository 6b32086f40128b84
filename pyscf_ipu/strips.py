"""Pair data in the order of the tile plan: chunks of primitive pairs, dealt into strips."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from pyscf_ipu.pairs import PairData, class_pairs, gather_shells
from pyscf_ipu.precision import Pair
from pyscf_ipu.tables import ClassTable, Conformer
from pyscf_ipu.tiles import Strips, TilePlan


class StripData(NamedTuple):
    """One pair class: S strips of nb chunks of c primitive pairs; f AO products, h Hermites.

    p        [S, nb, c]; 1 where padded.
    centre   Pair [S, nb, c, 3] Bohr.
    hermite  [S, nb, c, f, h] coefficients E; 0 where padded.
    kinetic  [rows] kinetic energy integrals of the class.
    """

    p: Array
    centre: Pair
    hermite: Array
    kinetic: Array


def pair_strips(
    plan: TilePlan, tables: tuple[ClassTable, ...], mol: Conformer, dtype: type
) -> tuple[StripData, ...]:
    """Hermite data of every pair class of one molecule in `dtype`."""
    shells = gather_shells(plan.layout, tables, mol, dtype)
    return tuple(_deal(s, class_pairs(plan.layout, s.pair_class, shells)) for s in plan.strips)


def sum_to_pairs(strips: Strips, per_chunk: Array, axis: int) -> Array:
    """Sum the chunks of each shell pair inside every strip: axis S, nb -> S, mb.

    `axis` is the position of nb; the strip axis stands right before it.
    """
    if strips.one_chunk_per_pair:
        return per_chunk
    moved = jnp.moveaxis(per_chunk, (axis - 1, axis), (0, 1))
    padded = jnp.pad(moved, [(0, int(d == 1)) for d in range(moved.ndim)])
    strip = np.arange(strips.n_strips, dtype=np.int32)[:, None]
    # Chunk by chunk: as a product with a matrix of zeros and ones this was quadratic in the pairs.
    summed = sum(padded[strip, places] for places in strips.members())
    return jnp.moveaxis(jnp.asarray(summed), (0, 1), (axis - 1, axis))


def _deal(strips: Strips, members: list[PairData]) -> StripData:
    chunks = [_chunks(m, strips) for m in members]
    empty = _empty_chunk(chunks[0])
    p, hi, lo, hermite = (
        jnp.concatenate([*parts, pad])[strips.source]
        for parts, pad in zip(zip(*chunks, strict=True), empty, strict=True)
    )
    return StripData(p, Pair(hi, lo), hermite, _kinetic_rows(strips, members))


def _chunks(data: PairData, strips: Strips) -> tuple[Array, ...]:
    """Cut the primitive pairs of each shell pair into chunks: [n * chunks, c, ...]."""
    n, k = data.p.shape
    c = strips.chunk
    pad = -k % c
    extra = strips.n_products - data.hermite.shape[2]
    p = jnp.pad(data.p, ((0, 0), (0, pad)), constant_values=1.0)
    hi, lo = (jnp.pad(w, ((0, 0), (0, pad), (0, 0))) for w in data.centre)
    hermite = jnp.pad(data.hermite, ((0, 0), (0, pad), (0, extra), (0, 0)))
    return tuple(x.reshape(n * (k + pad) // c, c, *x.shape[2:]) for x in (p, hi, lo, hermite))


def _empty_chunk(like: tuple[Array, ...]) -> tuple[Array, ...]:
    p, *rest = like
    return (jnp.ones_like(p[:1]), *(jnp.zeros_like(x[:1]) for x in rest))


def _kinetic_rows(strips: Strips, members: list[PairData]) -> Array:
    """Per-pair integrals in the row order of the class; unused places are 0."""
    padded = [
        jnp.pad(m.kinetic, ((0, 0), (0, strips.n_products - m.kinetic.shape[1]))) for m in members
    ]
    values = jnp.concatenate([*padded, jnp.zeros_like(padded[0][:1])])
    places = strips.n_strips * strips.pairs_per_strip
    pair_at = np.full(places, len(strips.pair_strip), np.int32)
    pair_at[strips.pair_strip * strips.pairs_per_strip + strips.pair_place] = np.arange(
        len(strips.pair_strip)
    )
    return values[pair_at].ravel()

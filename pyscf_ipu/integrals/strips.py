"""Pair data in the order of the tile plan: chunks of primitive pairs, dealt into strips."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pyscf_ipu.integrals.shell_pairs import PairData, class_pairs
from pyscf_ipu.numerics.arrays import Floats, FloatSnc, FloatSncfh, taken
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.shapes.tile_plan import Strips


class StripData(NamedTuple):
    """One pair class: S strips of nb chunks of c primitive pairs; f AO products, h Hermites."""

    p: FloatSnc  # total exponents; 1 where padded
    centre: Pair  # [S, nb, c, 3] Bohr
    hermite: FloatSncfh  # coefficients E; 0 where padded
    kinetic: Float[Array, " rows"]  # kinetic energy integrals of the class


Paired = Callable[[Atoms], tuple[tuple[PairData, ...], ...]]
"""Hermite data of every member of every pair class."""


def paired(atoms: Atoms) -> tuple[tuple[PairData, ...], ...]:
    """The Hermite data, one member after another."""
    return tuple(tuple(class_pairs(atoms, s.pair_class)) for s in atoms.plan.strips)


def pair_strips(atoms: Atoms, data_of: Paired = paired) -> tuple[StripData, ...]:
    """Hermite data of every pair class of one molecule; a machine may have its own way to them."""
    return tuple(_deal(*x) for x in zip(atoms.plan.strips, data_of(atoms), strict=True))


def sum_to_pairs(strips: Strips, per_chunk: Floats, axis: int) -> Floats:
    """Sum the chunks of each shell pair inside every strip, along `axis`; S is the one before."""
    if strips.one_chunk_per_pair:
        return per_chunk
    moved = jnp.moveaxis(per_chunk, (axis - 1, axis), (0, 1))
    padded = jnp.pad(moved, [(0, int(d == 1)) for d in range(moved.ndim)])
    strip = np.arange(strips.n_strips, dtype=np.int32)[:, None]
    # Chunk by chunk: as a product with a matrix of zeros and ones this was quadratic in the pairs.
    summed = sum(taken(padded, strip, places) for places in strips.members())
    return jnp.moveaxis(jnp.asarray(summed), (0, 1), (axis - 1, axis))


def _deal(strips: Strips, members: tuple[PairData, ...]) -> StripData:
    chunks = [_chunks(m, strips) for m in members]
    empty = _empty_chunk(chunks[0])
    p, hi, lo, hermite = (
        taken(jnp.concatenate([*parts, pad]), strips.source)
        for parts, pad in zip(zip(*chunks, strict=True), empty, strict=True)
    )
    return StripData(p, Pair(hi, lo), hermite, kinetic=_kinetic_rows(strips, members))


def _chunks(data: PairData, strips: Strips) -> tuple[Floats, ...]:
    """Cut the primitive pairs of each shell pair into chunks: [n * chunks, c, ...]."""
    n, k = data.p.shape
    c = strips.chunk
    pad = -k % c
    extra = strips.n_products - data.hermite.shape[2]
    p = jnp.pad(data.p, ((0, 0), (0, pad)), constant_values=1.0)
    hi, lo = (jnp.pad(w, ((0, 0), (0, pad), (0, 0))) for w in data.centre)
    hermite = jnp.pad(data.hermite, ((0, 0), (0, pad), (0, extra), (0, 0)))
    return tuple(x.reshape(n * (k + pad) // c, c, *x.shape[2:]) for x in (p, hi, lo, hermite))


def _empty_chunk(like: tuple[Floats, ...]) -> tuple[Floats, ...]:
    p, *rest = like
    return (jnp.ones_like(p[:1]), *(jnp.zeros_like(x[:1]) for x in rest))


def _kinetic_rows(strips: Strips, members: tuple[PairData, ...]) -> Float[Array, " rows"]:
    """Per-pair integrals in the row order of the class; unused places are 0."""
    padded = [
        jnp.pad(m.kinetic, ((0, 0), (0, strips.n_products - m.kinetic.shape[1]))) for m in members
    ]
    values = jnp.concatenate([*padded, jnp.zeros_like(padded[0][:1])])
    places = strips.n_strips * strips.pairs_per_strip
    pair_at = np.full(places, len(strips.pair_strip), np.int32)
    place = strips.pair_strip * strips.pairs_per_strip + strips.pair_place
    pair_at[place] = np.arange(len(place))
    return taken(values, pair_at).ravel()

"""Attraction by the nuclei, cut by chunks of primitive pairs and by nuclei.

A processor takes a nucleus after the other for all primitive pairs, which are few: on thousands of
workers most would wait, and each operation would be a compute set of its own.  Here a vertex has a
chunk of primitive pairs and a few nuclei, so that all are in one compute set; a second one adds up
the nuclei, in twice the working precision, and a product contracts the sums to AO products.
"""

import functools
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from pyscf_ipu.integrals.one_electron import OneElectron, potential_of, with_attraction
from pyscf_ipu.integrals.strips import StripData
from pyscf_ipu.ipu.engine.spread.dealing import dealt
from pyscf_ipu.ipu.vertices.short_code import SHORT
from pyscf_ipu.numerics.arrays import FloatSnf
from pyscf_ipu.numerics.two_words import Pair, add
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.shapes.tile_plan import Strips
from pyscf_ipu.tiles import TileShardedArray, tile_gather, tile_map, tile_put_sharded
from pyscf_ipu.tiles.array import WORKERS


def spread_one_electron(n_tiles: int, atoms: Atoms, strips: tuple[StripData, ...]) -> OneElectron:
    """Compute `one_electron.one_electron`, the attraction on tiles 1 to `n_tiles` - 1."""
    return with_attraction(atoms.plan, strips, spread_attraction(n_tiles, atoms, strips))


def spread_attraction(
    n_tiles: int, atoms: Atoms, strips: tuple[StripData, ...]
) -> tuple[FloatSnf, ...]:
    """Compute `one_electron.attraction` on tiles 1 to `n_tiles` - 1."""
    chunks = [plan.atom.size for plan in atoms.plan.strips]
    nuclei = len(atoms.charge)
    each = -(-sum(chunks) * nuclei // (WORKERS * (n_tiles - 1)))  # of a vertex
    each = -(-nuclei // -(-nuclei // each))  # as few as it takes for that number of groups
    tiles, parts, first = range(1, n_tiles), [], 0
    for plan, data in zip(atoms.plan.strips, strips, strict=True):
        part = _by_groups(plan, data, atoms, each=each, first=first, on=tiles)
        parts.append(part)
        first += part[0].num_tiles
    sums, first = [], 0
    for plan, part in zip(atoms.plan.strips, parts, strict=True):
        sums.append(_over_groups(plan.atom.size, part, first, on=tiles))
        first += len(sums[-1])
    return tuple(
        jnp.einsum(
            "sbcfh,sbhc->sbf",
            data.hermite,
            total.reshape(*plan.atom.shape, *total.shape[-2:]),
            precision="highest",
        )
        for plan, data, total in zip(atoms.plan.strips, strips, sums, strict=True)
    )


def _by_groups(
    plan: Strips, data: StripData, atoms: Atoms, each: int, first: int, on: Sequence[int]
) -> tuple[TileShardedArray, TileShardedArray]:
    """Potential of every group of nuclei in every chunk, in two words: [V, h, c] each."""
    atom = plan.atom.ravel()
    nuclei = len(atoms.charge)
    groups = -(-nuclei // each)
    count = len(atom) * groups
    chunk, group = np.divmod(np.arange(count, dtype=np.int32), groups)
    index = group[:, None] * each + np.arange(each, dtype=np.int32)
    counted = (index < nuclei) & (index != atom[chunk][:, None])
    index = np.minimum(index, nuclei - 1)
    tiles = dealt(on, count, first)

    def of_chunk(x: Array) -> TileShardedArray:
        return tile_gather(x.reshape(len(atom), *x.shape[2:]), chunk, tiles)

    return tile_map(
        functools.partial(_group_potential, plan.pair_class.order),
        *map(of_chunk, (data.p, *data.centre)),
        *(tile_gather(x, index, tiles) for x in (atoms.charge, *atoms.nuclei)),
        tile_put_sharded(jnp.asarray(counted, atoms.charge.dtype), tiles),
        name=f"nuclear_attraction_{plan.pair_class.order}",
        together=True,
    )


def _group_potential(
    order: int, p: Array, hi: Array, lo: Array, *nuclei: Array
) -> tuple[Float[Array, "h c"], Float[Array, "h c"]]:
    """Vertex: -sum_C Z_C (2 pi / p) R_tuv(p, P - C) of some nuclei.

    Exponents are [c], centres [c, 3] in two words.  Of the nuclei there are charges [m], where they
    are, in two words [m, 3], and [m] 0 where one belongs to the pair or does not exist, else 1.
    """
    charges, at, rest, counted = nuclei
    nobody = jnp.full((), -1, jnp.int32)
    around = charges * counted, Pair(at, rest)
    total = potential_of(order, p, Pair(hi, lo), own=nobody, nuclei=around, arithmetic=SHORT)
    return total.hi, total.lo


def _over_groups(
    chunks: int, parts: tuple[TileShardedArray, TileShardedArray], first: int, on: Sequence[int]
) -> Float[Array, "chunks h c"]:
    """Sums over the groups of every chunk, a row of Hermite functions to a vertex."""
    vertices, h, c = parts[0].shape
    groups = vertices // chunks
    if groups == 1:
        return parts[0].array + parts[1].array
    row = np.arange(chunks * h, dtype=np.int32)
    source = (row // h)[:, None] * groups + np.arange(groups, dtype=np.int32)
    source = source * h + (row % h)[:, None]
    tiles = dealt(on, len(row), first)
    words = (tile_gather(x.array.reshape(vertices * h, c), source, tiles) for x in parts)
    sums = tile_map(_group_sum, *words, name="nuclear_sum", together=True)
    return sums.array.reshape(chunks, h, c)


def _group_sum(hi: Array, lo: Array) -> Array:
    """Vertex: [groups, c] words -> [c]."""

    def one(total: Pair, words: tuple[Array, Array]) -> tuple[Pair, None]:
        return add(total, Pair(*words)), None

    total, _ = lax.scan(one, Pair(hi[0], lo[0]), (hi[1:], lo[1:]))
    return total.value()

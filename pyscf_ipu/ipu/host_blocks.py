"""The blocks of the quartet families from the integrals that this host computes itself.

The vertices of `family_vertex` compute the same numbers, and are what is priced; but a basis set
with d functions has a hundred classes of them, each a program that a CPU compiles for seconds.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from pyscf_ipu.integrals import eri_matrix
from pyscf_ipu.ipu.families import FamilyClass, FamilyPlan
from pyscf_ipu.ipu.family_cost import PAIRS
from pyscf_ipu.jk import supermatrix
from pyscf_ipu.strips import pair_strips
from pyscf_ipu.tables import ClassTable, Conformer
from pyscf_ipu.tiles import TilePlan, TileShardedArray, tile_put_sharded


def host_supermatrix(
    families: FamilyPlan,
    plan: TilePlan,
    tables: tuple[ClassTable, ...],
    mol: Conformer,
    dtype: type,
    exact_exchange: float,
) -> tuple[TileShardedArray, ...]:
    """As `family_eri.family_supermatrix`, looked up in the supermatrix of `plan`.

    Elements of places that stand for no pair, which nothing reads, are zero.
    """
    strips = pair_strips(plan, tables, mol, dtype)
    half = supermatrix(plan, eri_matrix(plan, strips), exact_exchange)
    half = half.reshape(-1, half.shape[-1])
    return tuple(_class_blocks(families, c, half) for c in families.classes)


def _class_blocks(families: FamilyPlan, c: FamilyClass, half: Array) -> TileShardedArray:
    functions = [kind.n_functions for kind in families.kinds(c)]
    products = [functions[x] * functions[y] for x, y in PAIRS]
    parts = np.split(c.element, np.cumsum(products)[:-1].tolist(), axis=2)
    blocks = []
    for t in range(3):
        bra = jnp.asarray(parts[2 * t])[..., :, None]
        ket = jnp.asarray(parts[2 * t + 1])[..., None, :]
        high, low = jnp.maximum(bra, ket), jnp.minimum(bra, ket)
        found = half.at[high, low].get(mode="fill", fill_value=0)
        found = jnp.where(high == low, 2 * found, found)  # the half of G has half its diagonal
        blocks.append(found.reshape(*c.element.shape[:2], -1))
    weight = jnp.asarray(c.weight, half.dtype)
    return tile_put_sharded(jnp.stack(blocks, axis=2) * weight[..., None], c.tiles)

"""The blocks of the quartet families from the integrals that this host computes itself.

The vertices of `family_vertex` compute the same numbers, and they are priced.  But a basis set with
d functions has a hundred classes of them, and a CPU compiles each for seconds.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int

from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.integrals.supermatrix import pair_order, rows_of, supermatrix
from pyscf_ipu.ipu.engine.algorithms.families import FamilyClass, FamilyPlan
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.tiles import TileShardedArray, tile_put_sharded


def host_supermatrix(
    families: FamilyPlan, atoms: Atoms, exchange: Interaction
) -> tuple[TileShardedArray, ...]:
    """Look the blocks of `family_eri.family_supermatrix` up in the supermatrix of the atoms' plan.

    Elements at places without an AO pair are zero; nothing reads them.
    """
    half = supermatrix(atoms.plan, pair_strips(atoms), exchange)
    n = atoms.layout.shape.n_pairs
    half = rows_of(half, n)
    places = np.append(np.argsort(pair_order(atoms.plan)), n).astype(np.int32)  # n: no AO pair
    return tuple(_class_blocks(families, c, half, places=places) for c in families.classes)


def _class_blocks(
    families: FamilyPlan, c: FamilyClass, half: Array, places: Int[np.ndarray, " entries"]
) -> TileShardedArray:
    parts = np.split(places[c.element], np.cumsum(families.products(c))[:-1].tolist(), axis=2)
    blocks = []
    for t in range(3):
        bra = jnp.asarray(parts[2 * t])[..., :, None]
        ket = jnp.asarray(parts[2 * t + 1])[..., None, :]
        high, low = jnp.maximum(bra, ket), jnp.minimum(bra, ket)
        elements = half.at[high, low].get(mode="fill", fill_value=0)
        elements = jnp.where(
            high == low, 2 * elements, elements
        )  # the half of G has half its diagonal
        blocks.append(elements.reshape(*c.element.shape[:2], -1))
    weight = jnp.asarray(c.weight, half.dtype)
    return tile_put_sharded(jnp.stack(blocks, axis=2) * weight[..., None], c.tiles)

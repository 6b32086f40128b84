"""Becke's weights: the molecular integration grid from the grids of its atoms, on the device.

Pure JAX, and a codelet.  Lengths in Bohr.  Shape letters: A atom slots, M slots in one group, G
points of one slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from pyscf_ipu.codelets import codelet
from pyscf_ipu.numerics.arrays import Count, FloatA, FloatA3, FloatG3, FloatMG, FloatMG3
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.tiles import tile_map, tile_put_replicated, tile_put_sharded


def becke_weights(
    points_local: FloatMG3,
    volume_weights: FloatMG,
    owner: Int[np.ndarray, " M"],
    cells: Cells,
    tiles: Sequence[int] | None = None,
) -> FloatMG:
    """Integration weights of the points of a group of atoms, in Bohr^3.

    A. D. Becke, J. Chem. Phys. 88, 2547 (1988), doi:10.1063/1.454033, three iterations.  Distances
    come from local points plus differences of centres, so float32 rounds lengths of a few Bohr and
    never a position in the molecule.  Slots with different numbers of points go in separate groups,
    each called with all the centres.

    Args:
        points_local: points relative to the centre of their owner, Bohr.  Padded points: anything.
        volume_weights: atomic weights of :func:`atomic_grid`, Bohr^3.  Padded points: zero.
        owner: index of the atom slot that owns each row, known when tracing.
        cells: all the atoms that divide space among them.
        tiles: ids of the tiles that share the points; default: a tile for each of the M slots.

    Returns:
        Weights that sum over all groups to the molecular quadrature; zero for padded points and for
        all points of an empty slot.

    Raises:
        ValueError: fewer tiles than slots.
    """
    slots = points_local.shape[0]
    tiles = range(slots) if tiles is None else tiles
    if len(tiles) < slots:
        raise ValueError(f"{slots} atom slots need as many tiles or more, not {len(tiles)}")
    pieces = min(len(tiles) // max(1, slots), points_local.shape[1])
    places = jnp.asarray(np.asarray(owner, dtype=np.int32))
    portable = partial(becke_weights_on_tiles, tuple(tiles[: slots * pieces]))
    operands = (points_local, volume_weights, places, *cells.centre, cells.radius, cells.present)
    return codelet("becke_weights", portable, *operands, shape=volume_weights.shape)


def becke_weights_on_tiles(
    tiles: tuple[int, ...],
    points_local: FloatMG3,
    volume_weights: FloatMG,
    owner: Int[Array, " M"],
    *atoms: Array,
) -> FloatMG:
    """The portable form of the codelet "becke_weights": the points of a slot in equal pieces."""
    high, low, radius, present = atoms
    pairs = AtomPairs.build(Cells(Pair(high, low), radius, present))
    slots, points = volume_weights.shape
    if not len(tiles):
        return volume_weights
    pieces = len(tiles) // slots
    pad = -points % pieces
    local = jnp.pad(points_local, ((0, 0), (0, pad), (0, 0))).reshape(len(tiles), -1, 3)
    volume = jnp.pad(volume_weights, ((0, 0), (0, pad))).reshape(len(tiles), -1)
    # One piece at a time on a CPU: its [A, G] arrays fit in the cache, all together would not.
    weights = tile_map(
        becke_weights_vertex,
        tile_put_sharded(local, tiles),
        tile_put_sharded(volume, tiles),
        tile_put_sharded(jnp.repeat(owner, pieces), tiles),
        *(tile_put_replicated(x, tiles) for x in (*pairs, present)),
        name="becke_weights",
        shared=True,
    )
    return weights.array.reshape(slots, -1)[:, :points]


def becke_weights_vertex(
    local: FloatG3, volume: Float[Array, " G"], atom: Count, *pairs_and_mask: Array
) -> Float[Array, " G"]:
    """Weights of some points of one atom."""
    *arrays, atom_mask = pairs_and_mask
    pairs = AtomPairs._make(arrays)
    distance = distances(local, pairs.displacement[atom])
    cells = cell_functions(distance, pairs)
    cells = jnp.where(atom_mask[:, None], cells, 0.0)
    total = jnp.sum(cells, axis=0)
    # A padded point may lie where every cell function underflows.
    usable = total > 0
    share = cells[atom] / jnp.where(usable, total, 1.0)
    return jnp.where(usable & atom_mask[atom], volume * share, 0.0)


class Cells(NamedTuple):
    """The atoms that divide space among them."""

    centre: Pair  # [A, 3] Bohr
    radius: FloatA  # :func:`bragg_adjust` of the atomic numbers
    present: Bool[Array, " A"]
    """False for empty slots, which may lie anywhere and influence nothing."""


class AtomPairs(NamedTuple):
    """Geometry of all pairs of atom slots, prepared so that the inner loop has no branch."""

    displacement: Float[Array, "A A 3"]  # R_i - R_j in Bohr
    inverse: Float[Array, "A A"]  # 1/|R_i - R_j|, and zero where a member is empty or i = j
    shift: Float[Array, "A A"]
    """Added to mu_ij.  -1 makes the cell function one: the pair (i, i) and every empty j."""
    asymmetry: Float[Array, "A A"]  # a_ij of the size adjustment

    @classmethod
    def build(cls, cells: Cells) -> AtomPairs:
        high, low = (x[:, None] - x[None] for x in cells.centre)
        displacement = high + low
        square = jnp.sum(displacement * displacement, axis=-1)
        pair = cells.present[:, None] & cells.present[None] & (square > 0)
        inverse = jnp.where(pair, lax.rsqrt(jnp.where(pair, square, 1.0)), 0.0)
        ratio = cells.radius[:, None] / cells.radius[None]
        asymmetry = jnp.clip((ratio.T - ratio) * 0.25, -0.5, 0.5)
        shift = jnp.where(pair, 0.0, -jnp.ones_like(square))
        return cls(displacement, inverse, shift, asymmetry=asymmetry)


def distances(local: FloatG3, displacement: FloatA3) -> Float[Array, "A G"]:
    """|r - R_j| for points given relative to the owner; ``displacement`` is R_owner - R_j."""
    x = [local[None, :, k] + displacement[:, k, None] for k in range(3)]
    square = x[0] * x[0] + x[1] * x[1] + x[2] * x[2]
    # Padded points lie on their nucleus, where the derivative of a root would not be finite.
    return jnp.sqrt(jnp.maximum(square, jnp.finfo(square.dtype).tiny))


def cell_functions(distance: Float[Array, "A G"], pairs: AtomPairs) -> Float[Array, "A G"]:
    """Unnormalised P_i = prod_j s(nu_ij), Becke eqs. 19-22 and A2-A4.

    Becke iterates p(nu) = nu (3 - nu^2) / 2 and takes s = (1 - p) / 2 at the end.  The same map
    written for s is s^2 (3 - 2 s): it has no cancellation, so float32 gives small cells to full
    relative accuracy.  That matters where an outer point of a light atom with a large volume falls
    into the core of a heavy one.

    The loop over j carries the product: on a CPU five times faster than one fused product.
    """

    def times_cell_of(j: Count, product: Array) -> Array:
        mu = (distance - distance[j]) * pairs.inverse[:, j, None] + pairs.shift[:, j, None]
        nu = mu + pairs.asymmetry[:, j, None] * (1 - mu * mu)
        cell = 0.5 - 0.5 * nu
        for _ in range(3):
            cell = cell * cell * (3 - 2 * cell)
        return product * cell

    return lax.fori_loop(0, distance.shape[0], times_cell_of, jnp.ones_like(distance))

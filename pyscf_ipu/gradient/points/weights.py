"""The derivative of Becke's weights: of an energy that is a sum over the points of some atoms.

With P_i = prod_j s(nu_ij) and the share p_i = P_i / sum_k P_k (`pyscf_ipu.grid.becke`), a weight of
atom o changes by dw = w sum_i (delta_io - p_i) dln P_i.  The logarithmic derivative of a cell
function has a closed form, so one loop over j suffices, and nothing of a loop is kept for a reverse
pass.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from pyscf_ipu.codelets import codelet
from pyscf_ipu.grid.becke import AtomPairs, Cells, cell_functions, distances
from pyscf_ipu.numerics.arrays import Count, FloatA3, FloatG3, FloatMG, FloatMG3
from pyscf_ipu.numerics.two_words import Pair

LEAST = 1e-20
"""Of half of 1 - nu: where it is smaller, P_i is zero."""

LANES = 16
"""Sums over points run in this many lanes: XLA adds along the last axis number by number."""


def weights_gradient(
    points_local: FloatMG3, by_volume: FloatMG, owner: Int[np.ndarray, " M"], cells: Cells
) -> FloatA3:
    """The derivative by the nuclei of sum_mg by_volume_mg p_mg, with the owners' shares p.

    Args:
        points_local: points relative to the centre of their owner, Bohr.
        by_volume: what the share of every point is multiplied with; zero for padded points.
        owner: index of the atom slot that owns each row.
        cells: all the atoms that divide space among them.
    """
    owner = np.asarray(owner, np.int32)
    operands = (points_local, by_volume, owner, *cells.centre, cells.radius, cells.present)
    shape = cells.centre.hi.shape
    return codelet("becke_gradient", weights_gradient_of_slots, *operands, shape=shape)


def weights_gradient_of_slots(
    points_local: FloatMG3, by_volume: FloatMG, owner: Int[Array, " M"], *atoms: Array
) -> FloatA3:
    """The portable form of the codelet "becke_gradient": one atom after another."""
    high, low, radius, present = atoms
    pairs = AtomPairs.build(Cells(Pair(high, low), radius, present))
    index = jnp.arange(len(present), dtype=jnp.int32)

    def add(sums: tuple[Array, Array], slot: tuple) -> tuple[tuple[Array, Array], None]:
        local, by_volume, atom = slot
        shares = Shares.of(local, atom, pairs, present=present)
        by_away, by_inverse = shares_gradient(shares, local, by_volume, atom=atom, pairs=pairs)
        by_away = jnp.where((index == atom)[:, None] | ~present[atom], 0.0, by_away)
        by_inverse = jnp.where(present[atom], by_inverse, 0.0)
        direct = sums[0].at[atom].add(by_away.sum(0)) - by_away
        return (direct, sums[1] + by_inverse), None

    start = jnp.zeros_like(high), jnp.zeros_like(pairs.inverse)
    (direct, by_inverse), _ = lax.scan(add, start, (points_local, by_volume, owner))
    # d(1/|R_ij|) = -R_ij / |R_ij|^3 dR_ij
    by_pair = -(by_inverse * pairs.inverse**3)[..., None] * pairs.displacement
    return direct + by_pair.sum(1) - by_pair.sum(0)


class Shares(NamedTuple):
    """How the atoms share some points of one of them."""

    distance: Float[Array, "A G"]  # Bohr
    share: Float[Array, "A G"]  # p_i; a weight is the owner's share of the point's volume

    @classmethod
    def of(
        cls, local: FloatG3, atom: Count, pairs: AtomPairs, present: Bool[Array, " A"]
    ) -> "Shares":
        """The weights of points relative to their owner `atom`, in Bohr."""
        distance = distances(local, pairs.displacement[atom])
        cells = jnp.where(present[:, None], cell_functions(distance, pairs), 0.0)
        total = jnp.sum(cells, axis=0)
        return cls(distance, cells / jnp.where(total > 0, total, 1.0))


def shares_gradient(
    shares: Shares,
    local: FloatG3,
    by_volume: Float[Array, " G"],
    atom: Count,
    pairs: AtomPairs,
) -> tuple[FloatA3, Float[Array, "A A"]]:
    """The derivative of sum_g by_volume_g p_g, with the shares p of the atom at its points.

    Args:
        shares: at these points.
        local: points relative to the atom, Bohr.
        by_volume: what the share of every point is multiplied with; zero for padded points.
        atom: the owner of the points.
        pairs: of all atom slots.

    Returns:
        The derivative by `pairs.displacement[atom]`, and by `pairs.inverse`.
    """
    distance, share = shares
    away = pairs.displacement[atom]
    index = jnp.arange(len(share), dtype=jnp.int32)
    own = (index == atom)[:, None].astype(share.dtype)
    by_log = (share[atom] * by_volume) * (own - share)  # by ln P_i, [A, G]

    def by_cell_of(by_distance: Array, j: Count) -> tuple[Array, Array]:
        apart, inverse = distance - distance[j], pairs.inverse[:, j, None]
        mu = apart * inverse + pairs.shift[:, j, None]
        asymmetry = pairs.asymmetry[:, j, None]
        cell = 0.5 - 0.5 * (mu + asymmetry * (1 - mu * mu))
        slope, divisor = asymmetry * mu - 0.5, jnp.maximum(cell, LEAST)
        for _ in range(3):
            slope, divisor = slope * (6 - 6 * cell), divisor * (3 - 2 * cell)
            cell = cell * cell * (3 - 2 * cell)
        by_mu = by_log * (slope / divisor)
        by_apart = by_mu * inverse
        by_distance = (by_distance + by_apart).at[j].add(-by_apart.sum(0))
        return by_distance, _sum(by_mu * apart)

    by_distance, by_inverse = lax.scan(by_cell_of, jnp.zeros_like(distance), index)
    per = by_distance / distance
    by_away = [_sum(per * (local[:, k] + away[:, k, None])) for k in range(3)]
    return jnp.stack(by_away, axis=1), by_inverse.T


def _sum(values: Float[Array, "A G"]) -> Float[Array, " A"]:
    """The sum over points."""
    pad = -values.shape[1] % LANES
    return jnp.pad(values, ((0, 0), (0, pad))).reshape(len(values), -1, LANES).sum(1).sum(1)

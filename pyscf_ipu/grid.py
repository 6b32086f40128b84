"""Molecular integration grids: atomic tables on the host, Becke's weights on the device.

The grid is the one PySCF builds by default (Treutler-Ahlrichs radial points, Lebedev spheres,
``nwchem_prune``, Becke cells with Treutler's size adjustment), so energies agree point by point.
What depends on an element only is tabulated once in float64; what depends on the geometry is pure
JAX.  Lengths in Bohr.  Shape letters: A atom slots, M slots in one group, G points of one slot.
"""

from dataclasses import dataclass
from functools import cache

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int
from pyscf import gto
from pyscf.data import elements, radii
from pyscf.dft import gen_grid, radi

from pyscf_ipu.codelets import codelet

LEVELS = range(10)
"""Grid levels of PySCF, coarse to fine."""

HEAVIEST = 103
"""Lawrencium, the last element in Treutler and Ahlrichs' table of radial scale factors."""


@dataclass(frozen=True, eq=False)
class AtomicGrid:
    """Points around one nucleus, before the molecule is divided into cells.

    Attributes:
        points: [G, 3] Bohr, relative to the nucleus, read-only.
        weights: [G] Bohr^3, 4 pi r^2 dr times the angular weight, read-only.
    """

    points: Float[np.ndarray, "G 3"]
    weights: Float[np.ndarray, " G"]

    def __len__(self) -> int:
        return len(self.weights)


@cache
def atomic_grid(number: int, level: int) -> AtomicGrid:
    """PySCF's default grid of one element, cached.

    O. Treutler, R. Ahlrichs, J. Chem. Phys. 102, 346 (1995), doi:10.1063/1.469408; V. I. Lebedev,
    D. N. Laikov, Doklady Mathematics 59, 477 (1999).

    Args:
        number: atomic number, at least 1.
        level: 0 (coarse) to 9 (fine).

    Raises:
        ValueError: if the level or the atomic number is out of range.
    """
    if level not in LEVELS:
        raise ValueError(f"grid level must be an integer from 0 to 9, got {level}")
    _check_numbers(np.asarray([number]), lowest=1)
    # PySCF wants some basis and a matching spin before it accepts an atom; the grid ignores both.
    symbol = elements.ELEMENTS[number]
    basis = {symbol: [[0, [1.0, 1.0]]]}
    atom = gto.M(atom=f"{symbol} 0 0 0", basis=basis, spin=number % 2, verbose=0)
    tables = gen_grid.gen_atomic_grids(
        atom, radi_method=radi.treutler, level=level, prune=gen_grid.nwchem_prune
    )
    ((points, weights),) = tables.values()
    points = np.array(points, dtype=np.float64, order="C")
    weights = np.array(weights, dtype=np.float64)
    points.flags.writeable = False
    weights.flags.writeable = False
    return AtomicGrid(points, weights)


def bragg_adjust(numbers: Int[np.ndarray, " A"]) -> Float[np.ndarray, " A"]:
    """Square roots of Bragg-Slater radii in sqrt(Bohr), the ``radius`` of :func:`becke_weights`.

    Treutler's adjustment is Becke's with sqrt(R) for R: a_ij = (chi_j/chi_i - chi_i/chi_j) / 4,
    cut to [-1/2, 1/2].  J. C. Slater, J. Chem. Phys. 41, 3199 (1964), doi:10.1063/1.1725697;
    O. Treutler, R. Ahlrichs, doi:10.1063/1.469408.

    Args:
        numbers: atomic numbers; 0 is an empty (padded) slot and gets the harmless value 1.

    Raises:
        ValueError: if an atomic number is negative or above 103.
    """
    numbers = np.asarray(numbers)
    _check_numbers(numbers, lowest=0)
    return np.where(numbers == 0, 1.0, np.sqrt(radii.BRAGG[numbers]))


def becke_weights(
    points_local: Float[Array, "M G 3"],
    volume_weights: Float[Array, "M G"],
    owner: Int[np.ndarray, " M"],
    centers_hi: Float[Array, "A 3"],
    centers_lo: Float[Array, "A 3"],
    radius: Float[Array, " A"],
    atom_mask: Bool[Array, " A"],
) -> Float[Array, "M G"]:
    """Integration weights of the points of a group of atoms, in Bohr^3.

    A. D. Becke, J. Chem. Phys. 88, 2547 (1988), doi:10.1063/1.454033, three iterations.  Distances
    come from local points plus differences of centres, so float32 rounds lengths of a few Bohr and
    never a position in the molecule.  Slots with different numbers of points go in separate groups,
    each called with all the centres.

    Args:
        points_local: points relative to the centre of their owner, Bohr.  Padded points: anything.
        volume_weights: atomic weights of :func:`atomic_grid`, Bohr^3.  Padded points: zero.
        owner: index of the atom slot that owns each row, known when tracing.
        centers_hi: nuclear positions in Bohr, leading part of an unevaluated sum.
        centers_lo: trailing part (zero in float64).
        radius: :func:`bragg_adjust` of the atomic numbers.
        atom_mask: False for empty slots, which may lie anywhere and influence nothing.

    Returns:
        Weights that sum over all groups to the molecular quadrature; zero for padded points and for
        all points of an empty slot.  Not meant to be differentiated.
    """
    return codelet(
        "becke_weights", becke_weights_vertex, points_local, volume_weights,
        jnp.asarray(np.asarray(owner, dtype=np.int32)),
        centers_hi, centers_lo, radius, atom_mask, shape=volume_weights.shape,
    )  # fmt: skip


def becke_weights_vertex(
    points_local: Array,
    volume_weights: Array,
    owner: Array,
    centers_hi: Array,
    centers_lo: Array,
    radius: Array,
    atom_mask: Array,
) -> Array:
    """The portable form of the codelet "becke_weights"."""
    pairs = _Pairs.build(centers_hi, centers_lo, radius, atom_mask)

    # One slot at a time: its [A, G] arrays fit in the cache, which all slots together would not.
    def slot(row):
        local, volume, atom = row
        distance = _distances(local, pairs.displacement[atom])
        cells = _cell_functions(distance, pairs)
        cells = jnp.where(atom_mask[:, None], cells, 0.0)
        total = jnp.sum(cells, axis=0)
        # A padded point may lie where every cell function underflows.
        usable = total > 0
        share = cells[atom] / jnp.where(usable, total, 1.0)
        return jnp.where(usable & atom_mask[atom], volume * share, 0.0)

    return lax.map(slot, (points_local, volume_weights, owner))


@dataclass(frozen=True)
class _Pairs:
    """Geometry of all pairs of atom slots, prepared so that the inner loop has no branch.

    Attributes:
        displacement: R_i - R_j in Bohr.
        inverse: 1/|R_i - R_j|, and zero where a member is empty or i = j.
        shift: added to mu_ij.  -1 makes the cell function one: the pair (i, i) and every empty j.
        asymmetry: a_ij of the size adjustment.
    """

    displacement: Float[Array, "A A 3"]
    inverse: Float[Array, "A A"]
    shift: Float[Array, "A A"]
    asymmetry: Float[Array, "A A"]

    @classmethod
    def build(cls, centers_hi, centers_lo, radius, atom_mask) -> "_Pairs":
        high = centers_hi[:, None] - centers_hi[None]
        low = centers_lo[:, None] - centers_lo[None]
        displacement = high + low
        square = jnp.sum(displacement * displacement, axis=-1)
        pair = atom_mask[:, None] & atom_mask[None] & (square > 0)
        inverse = jnp.where(pair, lax.rsqrt(jnp.where(pair, square, 1.0)), 0.0)
        ratio = radius[:, None] / radius[None]
        asymmetry = jnp.clip((ratio.T - ratio) * 0.25, -0.5, 0.5)
        shift = jnp.where(pair, 0.0, -jnp.ones_like(square))
        return cls(displacement, inverse, shift, asymmetry)


def _distances(
    local: Float[Array, "G 3"], displacement: Float[Array, "A 3"]
) -> Float[Array, "A G"]:
    """|r - R_j| for points given relative to the owner; ``displacement`` is R_owner - R_j."""
    x = [local[None, :, k] + displacement[:, k, None] for k in range(3)]
    return jnp.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])


def _cell_functions(distance: Float[Array, "A G"], pairs: _Pairs) -> Float[Array, "A G"]:
    """Unnormalised P_i = prod_j s(nu_ij), Becke eqs. 19-22 and A2-A4.

    Becke iterates p(nu) = nu (3 - nu^2) / 2 and takes s = (1 - p) / 2 at the end.  The same map
    written for s is s^2 (3 - 2 s): it has no cancellation, so float32 gives small cells to full
    relative accuracy.  That matters where an outer point of a light atom with a large volume falls
    into the core of a heavy one.

    The loop over j carries the product: on a CPU five times faster than one fused product.
    """

    def times_cell_of(j, product):
        mu = (distance - distance[j]) * pairs.inverse[:, j, None] + pairs.shift[:, j, None]
        nu = mu + pairs.asymmetry[:, j, None] * (1 - mu * mu)
        cell = 0.5 - 0.5 * nu
        for _ in range(3):
            cell = cell * cell * (3 - 2 * cell)
        return product * cell

    return lax.fori_loop(0, distance.shape[0], times_cell_of, jnp.ones_like(distance))


def _check_numbers(numbers: np.ndarray, lowest: int) -> None:
    """Refuse atomic numbers without a grid."""
    bad = numbers[(numbers < lowest) | (numbers > HEAVIEST)]
    if bad.size:
        raise ValueError(f"atomic numbers must lie in {lowest}..{HEAVIEST}, got {bad.tolist()}")

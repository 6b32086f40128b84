"""The semilocal energy's derivative: AOs, grid points and Becke weights all move with the nuclei.

E = sum_g w_g e(rho(r_g), sigma(r_g)), a point fixed to its own nucleus.  In a block of points of
one atom everything depends on the displacements of the other nuclei from that one, so that the
derivative is a pull-back from energy to displacements, and translational invariance holds exactly
(B. G. Johnson, P. M. W. Gill, J. A. Pople, J. Chem. Phys. 98, 5612 (1993), doi:10.1063/1.464906).
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int

from pyscf_ipu.gradient.weights import Shares, weights_gradient
from pyscf_ipu.grid.ao_values import ao_rows, stacked_ao_values
from pyscf_ipu.grid.becke import AtomPairs, Cells
from pyscf_ipu.grid.xc_matrix import ingredients_of, moments_of
from pyscf_ipu.numerics.arrays import FloatA3, FloatDNG, FloatG3, FloatNN, FloatTG
from pyscf_ipu.numerics.two_words import Pair, difference
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.shapes.shape import Shape
from pyscf_ipu.xc import Functional

BLOCK_POINTS = range(96, 257, 32)
"""Possible numbers of points in a block: the one with the least padding is taken, or the largest of
those."""


Sums = tuple[Float[Array, "A A"], FloatA3]
"""Derivatives by the inverse distances of all pairs of nuclei, and by the nuclei themselves."""


class AtomBlocks(NamedTuple):
    """T blocks of points, each of one atom."""

    owner: Int[Array, " T"]
    local: Float[Array, "T G 3"]  # Bohr, from its nucleus
    volume: FloatTG  # Bohr^3


def block_points(shape: Shape) -> int:
    """Points of a block."""

    def total(size: int) -> int:
        counts = zip(shape.classes, shape.counts, strict=True)
        return sum(n * size * -(-c.n_grid // size) for c, n in counts)

    return min(reversed(BLOCK_POINTS), key=total)


def atom_blocks(atoms: Atoms) -> AtomBlocks:
    """The grid of every atom, cut into blocks of one size; padded points have no volume."""
    size = block_points(atoms.layout.shape)
    parts = []
    for slots, local, volume in atoms.points():
        pad = -volume.shape[1] % size
        local = jnp.pad(local, ((0, 0), (0, pad), (0, 0))).reshape(-1, size, 3)
        volume = jnp.pad(volume, ((0, 0), (0, pad))).reshape(-1, size)
        owner = np.repeat(slots, len(volume) // len(slots))
        parts.append(AtomBlocks(jnp.asarray(owner), local, volume))
    return AtomBlocks(*(jnp.concatenate(x) for x in zip(*parts, strict=True)))


def exchange_correlation_gradient(
    atoms: Atoms, functional: Functional, density: FloatNN
) -> FloatA3:
    """Derivative of the semilocal energy with respect to the nuclei, at a fixed density matrix."""
    nuclei, present = atoms.nuclei, atoms.charge > 0
    if functional.kind == "hf":
        return jnp.zeros_like(density, shape=nuclei.hi.shape)
    index = jnp.arange(len(present), dtype=jnp.int32)
    pairs = AtomPairs.build(Cells(nuclei, atoms.radius, present))
    # In the order of `stacked_ao_values`: a scatter of the AOs in every block would be slow.
    order = np.argsort(ao_rows(atoms.layout))
    density = density[np.ix_(order, order)]

    def add(sums: Sums, block: AtomBlocks) -> Sums:
        owner, local, volume = block
        away = difference(nuclei.at(owner), nuclei)  # of every nucleus, [A, 3]
        shares = Shares.of(local, owner, pairs, present)
        weights = volume * shares.share[owner]
        values = partial(_ao_values, atoms, local, functional.needs_gradient)
        energy, by_away = _points(functional, values, weights, away, density)
        by_share, by_inverse = weights_gradient(shares, local, volume * energy, owner, pairs)
        by_away = jnp.where((index == owner)[:, None], 0.0, by_away + by_share)
        return sums[0] + by_inverse, sums[1].at[owner].add(by_away.sum(0)) - by_away

    def step(sums: Sums, block: AtomBlocks) -> tuple[Sums, None]:
        """A tenth of the blocks has only padded points."""
        there = present[block.owner] & (block.volume != 0).any()
        return lax.cond(there, add, lambda sums, _: sums, sums, block), None

    start = jnp.zeros_like(pairs.inverse), jnp.zeros_like(nuclei.hi)
    (by_inverse, direct), _ = lax.scan(step, start, atom_blocks(atoms))
    # d(1/|R_ij|) = -R_ij / |R_ij|^3 dR_ij
    by_pair = -(by_inverse * pairs.inverse**3)[..., None] * pairs.displacement
    return direct + by_pair.sum(1) - by_pair.sum(0)


def _ao_values(atoms: Atoms, local: FloatG3, gradient: bool, away: FloatA3) -> FloatDNG:
    """AOs at the points of a block, in the order of `stacked_ao_values`."""
    here = jnp.zeros((1, 3), away.dtype)
    centred = [
        s._replace(centre=Pair(-away[group.atom], jnp.zeros_like(away[group.atom])))
        for s, group in zip(atoms.shells, atoms.layout.groups, strict=True)
    ]
    return stacked_ao_values(atoms.layout, tuple(centred), local, Pair(here, here), gradient)


def _points(
    functional: Functional,
    values: Callable[[FloatA3], FloatDNG],
    weights: Float[Array, " G"],
    away: FloatA3,
    density: FloatNN,
) -> tuple[Float[Array, " G"], FloatA3]:
    """Energy per volume at the points of a block, and the derivative of the block's energy, at
    fixed weights, by `away`, the position of its nucleus from every nucleus."""
    ao, pull_ao = jax.vjp(values, away)
    moments, pull_moments = jax.vjp(partial(moments_of, functional, density), ao)
    ingredients, slope = ingredients_of(functional, moments)
    energy, v_rho, v_sigma, *v_tau = functional.energy_and_potential(*ingredients)
    potential = [weights * v_rho, *(2.0 * weights * v_sigma * s for s in slope)]
    potential += [weights * v for v in v_tau]
    return energy, pull_ao(pull_moments(jnp.stack(potential))[0])[0]

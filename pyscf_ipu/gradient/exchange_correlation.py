"""The semilocal energy's derivative: AOs, grid points and Becke weights all move with the nuclei.

E = sum_g w_g e(rho(r_g), sigma(r_g)), a point fixed to its own nucleus.  In a block of points of
one atom everything depends on the displacements of the other nuclei from that one, so that the
derivative is a pull-back from energy to displacements, and translational invariance holds exactly
(B. G. Johnson, P. M. W. Gill, J. A. Pople, J. Chem. Phys. 98, 5612 (1993), doi:10.1063/1.464906).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pyscf_ipu.becke import AtomPairs, becke_weights_vertex
from pyscf_ipu.exchange_correlation import atom_data, xc_density_vertex
from pyscf_ipu.layout import Layout
from pyscf_ipu.orbitals import ao_values
from pyscf_ipu.pairs import Shells
from pyscf_ipu.precision import Pair, difference
from pyscf_ipu.shape import Shape
from pyscf_ipu.tables import ClassTable, Conformer
from pyscf_ipu.xc import Functional

BLOCK_POINTS = range(384, 1025, 64)
"""Points of a block: of these the number that needs the least padding, the largest of equals."""


class AtomBlocks(NamedTuple):
    """T blocks of Gb points, each of one atom: owner [T], local [T, Gb, 3] Bohr from its nucleus,
    volume [T, Gb] Bohr^3."""

    owner: Array
    local: Array
    volume: Array


def block_points(shape: Shape) -> int:
    """Points of a block."""

    def total(size: int) -> int:
        counts = zip(shape.classes, shape.counts, strict=True)
        return sum(n * size * -(-c.n_grid // size) for c, n in counts)

    return min(reversed(BLOCK_POINTS), key=total)


def atom_blocks(
    layout: Layout, tables: tuple[ClassTable, ...], mol: Conformer, dtype: type
) -> AtomBlocks:
    """The grid of every atom, cut into blocks of one size; padded points have no volume."""
    size = block_points(layout.shape)
    parts = []
    for slots, table in zip(layout.slots, tables, strict=True):
        element = mol.element[slots]
        local = table.points.astype(dtype).value()[element]
        volume = table.weights.astype(dtype).value()[element]
        pad = -volume.shape[1] % size
        local = jnp.pad(local, ((0, 0), (0, pad), (0, 0))).reshape(-1, size, 3)
        volume = jnp.pad(volume, ((0, 0), (0, pad))).reshape(-1, size)
        owner = np.repeat(slots, len(volume) // len(slots))
        parts.append(AtomBlocks(jnp.asarray(owner), local, volume))
    return AtomBlocks(*(jnp.concatenate(x) for x in zip(*parts, strict=True)))


def exchange_correlation_gradient(
    layout: Layout,
    functional: Functional,
    tables: tuple[ClassTable, ...],
    shells: tuple[Shells, ...],
    mol: Conformer,
    density: Array,
) -> Array:
    """Derivative of the semilocal energy at a density matrix [N, N] by the nuclei: [A, 3]."""
    if functional.kind == "hf":
        return jnp.zeros_like(density, shape=mol.positions.hi.shape)
    dtype = density.dtype.type
    charge, radius = atom_data(layout, tables, mol)
    nuclei = mol.positions.astype(dtype)
    atoms = jnp.arange(charge.shape[0], dtype=jnp.int32)

    def all_pairs(hi: Array) -> AtomPairs:
        return AtomPairs.build(hi, nuclei.lo, radius.astype(dtype), charge > 0)

    pairs, pull_pairs = jax.vjp(all_pairs, nuclei.hi)

    def step(sums: tuple[AtomPairs, Array], block: AtomBlocks) -> tuple[tuple, None]:
        owner, local, volume = block
        away = difference(nuclei.at(owner), nuclei)  # of every nucleus, [A, 3]
        weights, pull_weights = jax.vjp(
            lambda p: becke_weights_vertex(local, volume, owner, *p, charge > 0), pairs
        )
        energy, by_away = _points(layout, functional, shells, local, weights, away, density)
        by_away = jnp.where((atoms == owner)[:, None], 0.0, by_away)
        by_pairs = jax.tree.map(jnp.add, sums[0], pull_weights(energy)[0])
        return (by_pairs, sums[1].at[owner].add(by_away.sum(0)) - by_away), None

    start = jax.tree.map(jnp.zeros_like, pairs), jnp.zeros_like(nuclei.hi)
    blocks = atom_blocks(layout, tables, mol, dtype)
    (by_pairs, direct), _ = lax.scan(step, start, blocks)
    return direct + pull_pairs(by_pairs)[0]


def _points(
    layout: Layout,
    functional: Functional,
    shells: tuple[Shells, ...],
    local: Array,
    weights: Array,
    away: Array,
    density: Array,
) -> tuple[Array, Array]:
    """Energy per volume at the points of a block [Gb], and the derivative of the block's energy,
    at fixed weights, by `away`, the position of its nucleus from every nucleus [A, 3]."""

    def values(away: Array) -> Array:
        here = jnp.zeros((1, 3), away.dtype)
        centred = [
            s._replace(centre=Pair(-away[group.atom], jnp.zeros_like(away[group.atom])))
            for s, group in zip(shells, layout.groups, strict=True)
        ]
        return ao_values(layout, tuple(centred), local, Pair(here, here), functional.kind == "gga")

    ao, pull_ao = jax.vjp(values, away)
    moments, pull_moments = jax.vjp(lambda x: xc_density_vertex(x, density), ao)
    rho, slope = moments[0], moments[1:]
    sigma = sum((s * s for s in slope), jnp.zeros_like(rho))
    energy, v_rho, v_sigma = functional.energy_and_potential(rho, sigma)
    potential = [weights * v_rho, *(2.0 * weights * v_sigma * s for s in slope)]
    return energy, pull_ao(pull_moments(jnp.stack(potential))[0])[0]

"""The semilocal exchange-correlation energy and matrix, by blocks of grid points.

The AO values of a block stay in cache while the density, the functional
and its contribution to the matrix are computed (J. A. Pople, P. M. W. Gill, B. G. Johnson, Chem.
Phys. Lett. 199, 557 (1992), doi:10.1016/0009-2614(92)85009-Y).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from pyscf_ipu.grid import becke_weights
from pyscf_ipu.layout import Layout
from pyscf_ipu.orbitals import ao_values
from pyscf_ipu.pairs import Shells
from pyscf_ipu.precision import Pair, compensated_sum, two_product
from pyscf_ipu.tables import ClassTable, Conformer
from pyscf_ipu.tiles import TileShardedArray, tile_map, tile_put_replicated, tile_put_sharded
from pyscf_ipu.xc import Functional

BLOCK_POINTS = 1100  # 4 x 53 AOs x 1100 points of float32 fill half of a 2 MB cache


class GridBlocks(NamedTuple):
    """T blocks of grid points: AO values [T, D, N, Gb] and weights [T, Gb] (Bohr^3)."""

    ao: Array
    weights: Array


def grid_blocks(
    layout: Layout,
    functional: Functional,
    tables: tuple[ClassTable, ...],
    shells: tuple[Shells, ...],
    mol: Conformer,
    dtype: type,
) -> GridBlocks | None:
    """The molecular grid with its AO values; None without a semilocal functional."""
    if functional.kind == "hf":
        return None
    charge, radius = atom_data(layout, tables, mol)
    nuclei = mol.positions.astype(dtype)
    points, weights, atoms = [], [], []
    for slots, table in zip(layout.slots, tables, strict=True):
        element = mol.element[slots]
        local = table.points.astype(dtype).value()[element]
        volume = table.weights.astype(dtype).value()[element]
        weight = becke_weights(
            local, volume, slots, nuclei.hi, nuclei.lo, radius.astype(dtype), charge > 0
        )
        points.append(local.reshape(-1, 3))
        weights.append(weight.ravel())
        atoms.append(np.repeat(slots, local.shape[1]))
    values = partial(ao_values, layout, shells, gradient=functional.kind == "gga")
    return _cut(
        jnp.concatenate(points), jnp.concatenate(weights), np.concatenate(atoms), nuclei, values
    )


def atom_data(
    layout: Layout, tables: tuple[ClassTable, ...], mol: Conformer
) -> tuple[Array, Array]:
    """Charge [A] and Becke size [A] of the atoms."""
    rows = [mol.element[slots] for slots in layout.slots]
    charge = jnp.concatenate([t.charge[r] for t, r in zip(tables, rows, strict=True)])
    radius = jnp.concatenate([t.radius[r] for t, r in zip(tables, rows, strict=True)])
    return charge, radius


def _cut(
    points: Array, weights: Array, atoms: np.ndarray, nuclei: Pair, values: Callable[..., Array]
) -> GridBlocks:
    """Cut the points into equal blocks, across atoms, and evaluate the AOs on each."""
    count = -(-len(atoms) // BLOCK_POINTS)
    size = -(-len(atoms) // count)
    pad = count * size - len(atoms)
    owner = nuclei.at(np.pad(atoms, (0, pad)))
    tiles = range(count)

    def vertex(local: Array, hi: Array, lo: Array) -> Array:
        return values(local=local, owner=Pair(hi, lo))

    args = [
        tile_put_sharded(x.reshape(count, size, 3), tiles)
        for x in (jnp.pad(points, ((0, pad), (0, 0))), owner.hi, owner.lo)
    ]
    weights = jnp.pad(weights, (0, pad)).reshape(count, size)
    return GridBlocks(tile_map(vertex, *args, name="ao_values").array, weights)


def exchange_correlation(
    functional: Functional, grid: GridBlocks | None, density: Float[Array, "N N"]
) -> tuple[Pair, Float[Array, "N N"]]:
    """Semilocal energy (Hartree, a Pair) and its matrix dE/dD at a symmetric density matrix."""
    if grid is None:
        zero = jnp.zeros((), density.dtype)
        return Pair(zero, zero), jnp.zeros_like(density)
    tiles = range(grid.weights.shape[0])
    args: list[TileShardedArray] = [
        tile_put_sharded(grid.ao, tiles),
        tile_put_sharded(grid.weights, tiles),
        tile_put_replicated(density, tiles),
    ]
    hi, lo, half = tile_map(partial(xc_vertex, functional), *args, name="xc")
    matrix = half.array.sum(0)
    return compensated_sum(Pair(hi.array, lo.array)), matrix + matrix.T


def xc_vertex(
    functional: Functional, ao: Array, weights: Array, density: Array
) -> tuple[Array, Array, Array]:
    """One block: energy (high, low) and half of the matrix; ao [D, N, Gb], weights [Gb]."""
    product = jnp.matmul(density, ao[0], precision="highest")  # [N, Gb]
    # Separate sums: one stacked reduction is five times slower on a CPU.
    rho = (ao[0] * product).sum(0)
    slope = [2.0 * (ao[d] * product).sum(0) for d in range(1, ao.shape[0])]
    sigma = sum((s * s for s in slope), jnp.zeros_like(rho))
    e, v_rho, v_sigma = functional.energy_and_potential(rho, sigma)
    weighted = (0.5 * weights * v_rho) * ao[0]
    for d, s in enumerate(slope, start=1):
        weighted = weighted + (2.0 * weights * v_sigma * s) * ao[d]
    half = lax.dot_general(ao[0], weighted, (((1,), (1,)), ((), ())), precision="highest")
    energy = compensated_sum(two_product(e, weights))
    return energy.hi, energy.lo, half

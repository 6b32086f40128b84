"""The semilocal exchange-correlation energy and matrix, by blocks of grid points.

Three steps over the same blocks: the density and its gradient, the functional at every point, and
the matrix (J. A. Pople, P. M. W. Gill, B. G. Johnson, Chem. Phys. Lett. 199, 557 (1992),
doi:10.1016/0009-2614(92)85009-Y).  The first and last are codelets.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from pyscf_ipu.becke import becke_weights
from pyscf_ipu.codelets import codelet
from pyscf_ipu.layout import Layout
from pyscf_ipu.orbitals import ao_blocks
from pyscf_ipu.pairs import Shells
from pyscf_ipu.precision import Pair, compensated_sum, two_product
from pyscf_ipu.tables import ClassTable, Conformer
from pyscf_ipu.tiles import tile_map, tile_put_replicated, tile_put_sharded, tile_total
from pyscf_ipu.xc import Functional

BLOCK_POINTS = 1100  # 4 x 53 AOs x 1100 points of float32 fill half of a 2 MB cache
BLOCK_MULTIPLE = 64  # whole cache lines per row, no remainder in the native codelets


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
    blocks: int | None = None,
) -> GridBlocks | None:
    """The molecular grid with its AO values; None without a semilocal functional.

    blocks  number of equal blocks; default: as many as fit into a cache one by one.
    """
    if functional.kind == "hf":
        return None
    charge, radius = atom_data(layout, tables, mol)
    nuclei = mol.positions.astype(dtype)
    points, weights, atoms = [], [], []
    pieces = (blocks or 1) // charge.shape[0] or 1  # of an atom's points, on a tile each
    first = 0
    for slots, table in zip(layout.slots, tables, strict=True):
        element = mol.element[slots]
        local = table.points.astype(dtype).value()[element]
        volume = table.weights.astype(dtype).value()[element]
        weight = becke_weights(
            local, volume, slots, nuclei.hi, nuclei.lo, radius.astype(dtype), charge > 0,
            range(first, first + len(slots) * pieces),
        )  # fmt: skip
        first += len(slots) * pieces
        points.append(local.reshape(-1, 3))
        weights.append(weight.ravel())
        atoms.append(np.repeat(slots, local.shape[1]))
    owner = np.concatenate(atoms)
    count = blocks or -(-len(owner) // BLOCK_POINTS)
    multiple = 2 if blocks else BLOCK_MULTIPLE
    size = -(-len(owner) // (count * multiple)) * multiple
    pad = count * size - len(owner)  # points on the first nucleus, without weight
    local = jnp.pad(jnp.concatenate(points), ((0, pad), (0, 0))).reshape(count, size, 3)
    owner = np.pad(owner, (0, pad)).reshape(count, size)
    ao = ao_blocks(layout, shells, local, owner, nuclei, functional.kind == "gga")
    return GridBlocks(ao, jnp.pad(jnp.concatenate(weights), (0, pad)).reshape(count, size))


def atom_data(
    layout: Layout, tables: tuple[ClassTable, ...], mol: Conformer
) -> tuple[Array, Array]:
    """Charge [A] and Becke size [A] of the atoms."""
    rows = [mol.element[slots] for slots in layout.slots]
    charge = jnp.concatenate([t.charge[r] for t, r in zip(tables, rows, strict=True)])
    radius = jnp.concatenate([t.radius[r] for t, r in zip(tables, rows, strict=True)])
    return charge, radius


def exchange_correlation(
    functional: Functional, grid: GridBlocks | None, density: Float[Array, "N N"]
) -> tuple[Pair, Float[Array, "N N"]]:
    """Semilocal energy (Hartree, a Pair) and its matrix dE/dD at a symmetric density matrix."""
    if grid is None:
        zero = jnp.zeros((), density.dtype)
        return Pair(zero, zero), jnp.zeros_like(density)
    moments = xc_density(grid.ao, density)
    tiles = range(grid.weights.shape[0])
    points = (tile_put_sharded(moments, tiles), tile_put_sharded(grid.weights, tiles))
    vertex = partial(xc_functional_vertex, functional)
    hi, lo, factors = tile_map(vertex, *points, name="xc_functional", together=True, shared=True)
    matrix = xc_potential(grid.ao, factors.array)
    return tile_total(Pair(hi.array, lo.array)), matrix + matrix.T


def xc_density(
    ao: Float[Array, "T D N Gb"], density: Float[Array, "N N"]
) -> Float[Array, "T D Gb"]:
    """The density on all points and, for D = 4, its gradient."""

    def portable(ao: Array, density: Array) -> Array:
        tiles = range(ao.shape[0])
        args = tile_put_sharded(ao, tiles), tile_put_replicated(density, tiles)
        return tile_map(xc_density_vertex, *args, name="xc_density", shared=True).array

    t, d, _, points = ao.shape
    return codelet("xc_density", portable, ao, density, shape=(t, d, points))


def xc_potential(
    ao: Float[Array, "T D N Gb"], factors: Float[Array, "T D Gb"]
) -> Float[Array, "N N"]:
    """Half of the matrix: sum_g ao_0 (sum_d factors_d ao_d)^T."""

    def portable(ao: Array, factors: Array) -> Array:
        tiles = range(ao.shape[0])
        args = tile_put_sharded(ao, tiles), tile_put_sharded(factors, tiles)
        return tile_map(xc_potential_vertex, *args, name="xc_potential", shared=True).array.sum(0)

    n = ao.shape[2]
    return codelet("xc_potential", portable, ao, factors, shape=(n, n))


def xc_density_vertex(ao: Array, density: Array) -> Array:
    """One block: density and gradient [D, Gb] from ao [D, N, Gb]."""
    product = jnp.matmul(density, ao[0], precision="highest")  # [N, Gb]
    # Separate sums: one stacked reduction is five times slower on a CPU.
    sums = [(ao[d] * product).sum(0) for d in range(ao.shape[0])]
    return jnp.stack([sums[0], *(2.0 * s for s in sums[1:])])


def xc_functional_vertex(
    functional: Functional, moments: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """One block: its energy in two words and the factors [D, Gb] of `xc_potential`."""
    rho, slope = moments[0], moments[1:]
    sigma = sum((s * s for s in slope), jnp.zeros_like(rho))
    e, v_rho, v_sigma = functional.energy_and_potential(rho, sigma)
    energy = compensated_sum(two_product(e, weights))
    factors = [0.5 * weights * v_rho, *(2.0 * weights * v_sigma * s for s in slope)]
    return energy.hi, energy.lo, jnp.stack(factors)


def xc_potential_vertex(ao: Array, factors: Array) -> Array:
    """One block's part of half the matrix, [N, N]."""
    weighted = factors[0] * ao[0]
    for d in range(1, ao.shape[0]):
        weighted = weighted + factors[d] * ao[d]
    return lax.dot_general(ao[0], weighted, (((1,), (1,)), ((), ())), precision="highest")

"""The algorithms of a GPU: kernels where XLA would write every intermediate to memory."""

import jax.numpy as jnp
from jax import Array

from pyscf_ipu.grid.ao_blocks import AoBlocks
from pyscf_ipu.grid.xc_matrix import (
    by_density_matrix,
    xc_density,
    xc_potential,
)
from pyscf_ipu.integrals.electron_repulsion import EriSide, class_blocks, eri_side
from pyscf_ipu.integrals.eri_matrix import arrange, eri_matrices, symmetric_matrix
from pyscf_ipu.integrals.strips import StripData
from pyscf_ipu.machines.eri_kernel import LARGEST_ORDER, eri_class_pair
from pyscf_ipu.machines.grid_kernels import density_kernel, potential_kernel
from pyscf_ipu.machines.machine import Machine, Repulsion
from pyscf_ipu.machines.supermatrix_kernel import full_repulsion, full_supermatrix
from pyscf_ipu.numerics.arrays import FloatNN, FloatRR, FloatTDG
from pyscf_ipu.numerics.interaction import COULOMB, Interaction
from pyscf_ipu.scf.algebra import library_eigh
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.shapes.tile_plan import Block, Strips, TilePlan


def eri_matrix(plan: TilePlan, strips: tuple[StripData, ...], of: Interaction = COULOMB) -> FloatRR:
    """M of all (ab|cd); see `integrals.eri_matrix.eri_matrix`."""
    sides = [eri_side(d) for d in strips]
    return symmetric_matrix(plan, [_square(plan, block, sides, of=of) for block in plan.blocks])


def has_kernel(strips: Strips) -> bool:
    """Whether a class of s and p shells, all of one contraction length, can be a side."""
    return strips.pair_class.order <= LARGEST_ORDER and strips.one_chunk_per_pair


def _square(plan: TilePlan, block: Block, sides: list[EriSide], of: Interaction) -> Array:
    """The integrals of one pair of classes."""
    bra, ket = plan.strips[block.bra], plan.strips[block.ket]
    if not (has_kernel(bra) and has_kernel(ket)):
        return arrange(bra, ket, block, values=class_blocks(plan, block, sides, of=of).array)
    orders = bra.pair_class.order, ket.pair_class.order
    return eri_class_pair(
        orders, sides[block.bra], sides[block.ket], same=block.bra == block.ket, of=of
    )


def gpu_repulsion(atoms: Atoms, strips: tuple[StripData, ...], exchange: Interaction) -> Repulsion:
    """All of G as one array."""
    matrices = eri_matrices(eri_matrix, atoms.plan, strips, exchange=exchange)
    full = full_supermatrix(atoms.plan, matrices)
    return lambda d: full_repulsion(full, d)


def density(ao: AoBlocks, matrix: FloatNN) -> FloatTDG:
    """`grid.xc_matrix.xc_density`; in float64 by XLA."""
    if matrix.dtype == jnp.float32:
        return density_kernel(ao.values, matrix)
    return xc_density(ao, matrix)


def potential(ao: AoBlocks, factors: FloatTDG) -> FloatNN:
    """`grid.xc_matrix.xc_potential`; in float64 by XLA."""
    if factors.dtype == jnp.float32:
        return potential_kernel(ao.values, factors)
    return xc_potential(ao, factors)


PRODUCTS = by_density_matrix(density, potential)
"""The kinetic energy density, by XLA in either precision."""

GPU = Machine(gpu_repulsion, library_eigh, grid_products=PRODUCTS)
"""GPUs that Triton knows: NVIDIA's and AMD's."""

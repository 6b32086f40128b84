"""The order of AOs in B: neighbours in space stand side by side.

AOs that are far apart have no product, so B has nothing for them.  In the order of slots the AOs of
a panel are anywhere in a molecule, and nearly all others are neighbours of some.
"""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Int

from pyscf_ipu.integrals.supermatrix import packed_indices, unpack
from pyscf_ipu.numerics.arrays import FloatP, HostArray
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.shapes.tile_plan import TilePlan

IntN = Int[Array, " N"]


def along_molecule(atoms: Atoms) -> IntN:
    """The AOs by the place of their nuclei on the axis along which the molecule is longest.

    That is the axis of the largest second moment of the nuclei, each counted once.  Those of empty
    slots come last.
    """
    here = (atoms.charge > 0).astype(atoms.dtype)
    x = atoms.nuclei.hi
    centre = jnp.sum(here[:, None] * x, axis=0) / jnp.sum(here)
    x = here[:, None] * (x - centre)
    _, axes = jnp.linalg.eigh(jnp.matmul(x.T, x, precision="highest"))
    place = jnp.matmul(x, axes[:, -1], precision="highest")
    place = jnp.where(atoms.charge > 0, place, jnp.inf)
    return jnp.argsort(place[atoms.layout.ao_atom], stable=True).astype(jnp.int32)


def reordered(packed: FloatP, order: IntN | None) -> FloatP:
    """A symmetric matrix over AO pairs, whose k-th AO is the order[k]-th one of that given.

    Without an order it is the same matrix.
    """
    if order is None:
        return packed
    i, j = packed_indices(len(order))
    return unpack(packed, len(order))[order[i], order[j]]


def pair_rows(plan: TilePlan, order: IntN | None) -> Int[HostArray, " P"]:
    """The row of every AO pair among the integrals, the AOs in this order."""
    i, j = packed_indices(plan.layout.shape.n_ao)
    if order is None:
        return plan.row_of[i, j]
    return jnp.asarray(plan.row_of)[order[i], order[j]]


def inverse(order: IntN | None) -> IntN | None:
    """The place of every AO in an order."""
    return None if order is None else jnp.argsort(order).astype(jnp.int32)

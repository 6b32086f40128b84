"""The molecular grid in blocks of points that fit into a cache."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from pyscf_ipu.grid.ao_values import ao_blocks
from pyscf_ipu.grid.becke import Cells, becke_weights
from pyscf_ipu.numerics.arrays import FloatTDNG, FloatTG
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.xc import Functional

BLOCK_POINTS = 1100  # 4 x 53 AOs x 1100 points of float32 fill half of a 2 MB cache
BLOCK_MULTIPLE = 64  # whole cache lines per row, no remainder in the native codelets


class GridBlocks(NamedTuple):
    """T blocks of grid points."""

    ao: FloatTDNG
    weights: FloatTG  # Bohr^3


def grid_blocks(
    atoms: Atoms, functional: Functional, blocks: int | None = None
) -> GridBlocks | None:
    """The molecular grid with its AO values; None without a semilocal functional.

    Args:
        atoms: the molecule.
        functional: says whether AO gradients are needed, or a grid at all.
        blocks: number of equal blocks; default: as many as it takes for each to fit into a cache.
    """
    if functional.kind == "hf":
        return None
    cells = Cells(atoms.nuclei, atoms.radius, atoms.charge > 0)
    points, weights, owners = [], [], []
    pieces = (blocks or 1) // atoms.charge.shape[0] or 1  # of an atom's points, on a tile each
    first = 0
    for slots, local, volume in atoms.points():
        tiles = range(first, first + len(slots) * pieces)
        first += len(tiles)
        points.append(local.reshape(-1, 3))
        weights.append(becke_weights(local, volume, slots, cells, tiles).ravel())
        owners.append(np.repeat(slots, local.shape[1]))
    owner = np.concatenate(owners)
    count = blocks or -(-len(owner) // BLOCK_POINTS)
    multiple = 2 if blocks else BLOCK_MULTIPLE
    size = -(-len(owner) // (count * multiple)) * multiple
    pad = count * size - len(owner)  # points on the first nucleus, without weight
    local = jnp.pad(jnp.concatenate(points), ((0, pad), (0, 0))).reshape(count, size, 3)
    owner = np.pad(owner, (0, pad)).reshape(count, size)
    ao = ao_blocks(atoms, local, owner, functional.needs_gradient)
    return GridBlocks(ao, jnp.pad(jnp.concatenate(weights), (0, pad)).reshape(count, size))

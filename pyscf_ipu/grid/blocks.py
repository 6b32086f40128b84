"""The molecular grid in blocks of points that fit into a cache.

AO values on all points are computed once and kept, unless they are too many: then they are made
again in every cycle, some blocks at a time, or some points of every block.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.tree_util import Partial
from jaxtyping import Float, Int, PyTree

from pyscf_ipu.codelets import native_in_use
from pyscf_ipu.grid.ao_blocks import SCREENED_POINTS, AoBlocks, ao_blocks, packed_ao_blocks
from pyscf_ipu.grid.becke import Cells, becke_weights
from pyscf_ipu.numerics.arrays import Floats, FloatTG
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.xc.semilocal.functionals import Functional

BLOCK_POINTS = 1100  # 4 x 53 AOs x 1100 points of float32 fill half of a 2 MB cache
BLOCK_MULTIPLE = 64  # whole cache lines per row

KEPT_BYTES = {True: 2**26, False: 2**30}
"""AO values of more than this are made again, by whether codelets make them, which take less time
than new memory in each run: 9 heavy atoms in STO-3G have 20 MB, at SPICE's level 4 GB."""
PIECE_POINTS = {True: 2 * BLOCK_POINTS, False: 8 * BLOCK_POINTS}
"""Points whose AOs are made at a time: some functions of JAX for all of them together."""

Work = Callable[..., tuple[PyTree, Floats]]
"""(ao, weights, rows of other arrays) of some blocks -> (arrays with a row per block, an array that
is added up over all blocks)."""


class Places(NamedTuple):
    """Where the points of T blocks are."""

    local: Float[Array, "T G 3"]  # Bohr, from their owners
    owner: Int[np.ndarray, "T G"] | Int[Array, "T G"]  # atom slots


class GridBlocks(NamedTuple):
    """T blocks of grid points."""

    ao: AoBlocks
    weights: FloatTG  # Bohr^3
    places: Places

    def each(self, work: Work, *more: Array) -> tuple[PyTree, Floats]:
        """What `work` gives for all blocks; `more` has a row per block."""
        return work(self.ao, self.weights, *more)


class RemadeBlocks(NamedTuple):
    """Blocks in K pieces of b each, without the AO values."""

    values: Callable[[Float[Array, "b G 3"], Int[Array, "b G"], Float[Array, "b G"]], AoBlocks]
    """AOs at points relative to their owners, with weights."""
    local: Float[Array, "K b G 3"]
    owner: Int[np.ndarray, "K b G"] | Int[Array, "K b G"]
    pieces: Float[Array, "K b G"]  # weights, Bohr^3

    @property
    def weights(self) -> FloatTG:
        """The weights of all blocks, Bohr^3."""
        return self.pieces.reshape(-1, self.pieces.shape[-1])

    @property
    def places(self) -> Places:
        """The positions of the points of all blocks."""
        size = self.pieces.shape[-1]
        return Places(self.local.reshape(-1, size, 3), self.owner.reshape(-1, size))

    def each(self, work: Work, *more: Array) -> tuple[PyTree, Floats]:
        """What `work` gives for all blocks; `more` has a row per block."""

        def piece(data: tuple[Array, ...]) -> tuple[PyTree, Floats]:
            local, owner, weights, *rows = data
            return work(self.values(local, owner, weights), weights, *rows)

        def add(total: Floats, data: tuple[Array, ...]) -> tuple[Floats, PyTree]:
            outputs, part = piece(data)
            return total + part, outputs

        rows = [x.reshape(*self.pieces.shape[:2], *x.shape[1:]) for x in more]
        data = (self.local, jnp.asarray(self.owner, np.int32), self.pieces, *rows)
        first = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), data)
        _, part = jax.eval_shape(piece, first)
        total, outputs = lax.scan(add, jnp.zeros(part.shape, part.dtype), data)
        return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), outputs), total


Grid = GridBlocks | RemadeBlocks


def grid_blocks(
    atoms: Atoms, functional: Functional, blocks: int | None = None, parts: int = 1
) -> Grid | None:
    """The molecular grid with its AO values; None without a semilocal functional.

    Args:
        atoms: the molecule.
        functional: says whether AO gradients are needed, or a grid at all.
        blocks: number of equal blocks; default: as many as it takes for each to fit into a cache.
        parts: in how many parts each block's AO values are made again, one at a time; 1 keeps them.
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
        weights.append(becke_weights(local, volume, slots, cells=cells, tiles=tiles).ravel())
        owners.append(np.repeat(slots, local.shape[1]))
    owner = np.concatenate(owners)
    planes = 4 if functional.needs_gradient else 1
    stored = planes * atoms.layout.shape.n_ao * len(owner) * np.dtype(atoms.dtype).itemsize
    remade = parts > 1 or (blocks is None and stored > KEPT_BYTES[native_in_use()])
    count, size = _cut(len(owner), blocks and blocks * parts, remade)
    pad = count * size - len(owner)  # points on the first nucleus, without weight
    local = jnp.pad(jnp.concatenate(points), ((0, pad), (0, 0))).reshape(count, size, 3)
    owner = np.pad(owner, (0, pad)).reshape(count, size)
    volume = jnp.pad(jnp.concatenate(weights), (0, pad)).reshape(count, size)
    made = packed_ao_blocks if _packs(blocks) else partial(ao_blocks, screened=blocks is None)
    # A pytree, so that a compiled function may return blocks that are made again.
    values = Partial(partial(made, gradient=functional.needs_gradient), atoms)
    if remade:
        pieces = (-1, blocks or PIECE_POINTS[native_in_use()] // size, size)
        return RemadeBlocks(
            values, local.reshape(*pieces, 3), owner.reshape(pieces), pieces=volume.reshape(pieces)
        )
    return GridBlocks(values(local, owner, volume), volume, Places(local, owner))


def _packs(blocks: int | None) -> bool:
    """Whether AOs are left out block by block: what suits the native products of AOs."""
    return blocks is None and native_in_use()


def _cut(points: int, blocks: int | None, remade: bool) -> tuple[int, int]:
    """Number and size of equal blocks; those that are made again come in whole pieces."""
    if _packs(blocks):
        count, multiple = -(-points // SCREENED_POINTS), SCREENED_POINTS
    else:
        count, multiple = blocks or -(-points // BLOCK_POINTS), 2 if blocks else BLOCK_MULTIPLE
    size = -(-points // (count * multiple)) * multiple
    if remade and not blocks:
        count += -count % (PIECE_POINTS[native_in_use()] // size)
    return count, size

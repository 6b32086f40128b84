"""Arrays spread over tiles: the leading axis counts vertices, and each lies on a named tile.

Placing an array is a JAX primitive, `tile_place`, so that it stays visible in the program: a
simulator sees which bytes have to travel where.  On other machines it is the plain array.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import PyTree

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.codelets.frozen import Frozen
from pyscf_ipu.numerics.arrays import Axes, HostArray, Operands

WORKERS = 6
"""Workers of a tile of an IPU: this many vertices keep a tile busy."""

tile_place_p = Primitive("tile_place")


@jax.tree_util.register_pytree_node_class
class TileShardedArray:
    """`array[i]` lies on tile `tiles[i]`; a repeated tile id is another worker of that tile."""

    def __init__(self, array: Array, tiles: Sequence[int]) -> None:
        self.array = array
        self.tiles = tuple(int(t) for t in tiles)

    def tree_flatten(self) -> tuple[tuple[PyTree], tuple[int, ...]]:
        return (self.array,), self.tiles

    @classmethod
    def tree_unflatten(cls, tiles: tuple[int, ...], leaves: tuple[PyTree]) -> TileShardedArray:
        out = object.__new__(cls)
        out.array, out.tiles = leaves[0], tiles
        return out

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def tile_shape(self) -> tuple[int, ...]:
        return self.array.shape[1:]

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    @property
    def num_tiles(self) -> int:
        return len(self.tiles)


def tile_put_sharded(array: Array, tiles: Sequence[int]) -> TileShardedArray:
    """Row i of `array` onto tile `tiles[i]`.

    Raises:
        UsageError: the number of rows is not the number of tiles.
    """
    if array.shape[0] != len(tiles):
        raise UsageError(
            f"an array of {array.shape[0]} rows cannot be sharded over {len(tiles)} tiles: "
            "give one row per entry of `tiles`"
        )
    return _bind(array, "sharded", None, tiles=tiles)


def tile_put_replicated(array: Array, tiles: Sequence[int]) -> TileShardedArray:
    """One copy of `array` on each of `tiles`."""
    return _bind(array, "replicated", None, tiles=tiles)


def tile_gather(
    array: Array | TileShardedArray, indices: Sequence[int] | np.ndarray, tiles: Sequence[int]
) -> TileShardedArray:
    """Row `indices[i]` of `array` onto tile `tiles[i]`; with indices [T, ...], several rows.

    The indices are known at trace time.

    Raises:
        UsageError: there is not one entry per tile.
    """
    rows = array.array if isinstance(array, TileShardedArray) else array
    index = np.asarray(indices, np.int32)
    if len(index) != len(tiles):
        raise UsageError(f"{len(index)} indices for {len(tiles)} tiles: give one index per tile")
    return _bind(rows, "gather", Frozen(index), tiles=tiles)


def tile_data_barrier(*args: TileShardedArray) -> tuple[TileShardedArray, ...]:
    """Order what follows after all of `args` are complete."""
    arrays = lax.optimization_barrier(tuple(a.array for a in args))
    return tuple(TileShardedArray(x, a.tiles) for x, a in zip(arrays, args, strict=True))


def _bind(array: Array, how: str, indices: Frozen | None, tiles: Sequence[int]) -> TileShardedArray:
    where = tuple(int(t) for t in tiles)
    placed = tile_place_p.bind(jnp.asarray(array), how=how, indices=indices, tiles=where)
    return TileShardedArray(placed, where)


def _place(array: Array, *, how: str, indices: Frozen | None, tiles: tuple[int, ...]) -> Array:
    if how == "replicated":
        return jnp.broadcast_to(array, (len(tiles), *array.shape))
    return array if indices is None else array[indices.value]


def _abstract(
    array: ShapedArray, *, how: str, indices: Frozen | None, tiles: tuple[int, ...]
) -> ShapedArray:
    if how == "replicated":
        return array.update(shape=(len(tiles), *array.shape))
    index = (len(tiles),) if indices is None else np.shape(indices.value)
    return array.update(shape=(*index, *array.shape[1:]))


def _batch(args: Operands, dims: Axes, **params: object) -> tuple[Array, int]:
    """The batch comes behind the tiles, where `tile_map` wants it."""
    return jax.vmap(partial(_place, **params), in_axes=dims, out_axes=1)(*args), 1


def _transpose(
    cotangent: HostArray | ad.Zero, array: ad.UndefinedPrimal, **params: object
) -> list[Array]:
    row = jax.ShapeDtypeStruct(array.aval.shape, array.aval.dtype)
    return list(jax.linear_transpose(partial(_place, **params), row)(cotangent))


tile_place_p.def_impl(_place)
tile_place_p.def_abstract_eval(_abstract)
batching.primitive_batchers[tile_place_p] = _batch
ad.deflinear2(tile_place_p, _transpose)
mlir.register_lowering(tile_place_p, mlir.lower_fun(_place, multiple_results=False))

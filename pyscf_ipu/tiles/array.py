"""Arrays spread over tiles: the leading axis counts vertices, and each lies on a named tile."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax


@jax.tree_util.register_pytree_node_class
class TileShardedArray:
    """`array[i]` lies on tile `tiles[i]`; a repeated tile id is another worker of that tile."""

    def __init__(self, array: Array, tiles: Sequence[int]) -> None:
        self.array = array
        self.tiles = tuple(int(t) for t in tiles)

    def tree_flatten(self) -> tuple[tuple[Array], tuple[int, ...]]:
        return (self.array,), self.tiles

    @classmethod
    def tree_unflatten(cls, tiles: tuple[int, ...], leaves: tuple[Array]) -> TileShardedArray:
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

    Raises ValueError if the number of rows is not the number of tiles.
    """
    if array.shape[0] != len(tiles):
        raise ValueError(
            f"an array of {array.shape[0]} rows cannot be sharded over {len(tiles)} tiles: "
            "give one row per entry of `tiles`"
        )
    return TileShardedArray(array, tiles)


def tile_put_replicated(array: Array, tiles: Sequence[int]) -> TileShardedArray:
    """One copy of `array` on each of `tiles`."""
    return TileShardedArray(jnp.broadcast_to(array, (len(tiles), *array.shape)), tiles)


def tile_gather(
    array: Array | TileShardedArray, indices: Sequence[int] | np.ndarray, tiles: Sequence[int]
) -> TileShardedArray:
    """Row `indices[i]` of `array` onto tile `tiles[i]`; the indices are known at trace time."""
    rows = array.array if isinstance(array, TileShardedArray) else array
    index = np.asarray(indices, np.int32)
    if len(index) != len(tiles):
        raise ValueError(f"{len(index)} indices for {len(tiles)} tiles: give one index per tile")
    return TileShardedArray(rows[index], tiles)


def tile_data_barrier(*args: TileShardedArray) -> tuple[TileShardedArray, ...]:
    """Order what follows after all of `args` are complete."""
    arrays = lax.optimization_barrier(tuple(a.array for a in args))
    return tuple(TileShardedArray(x, a.tiles) for x, a in zip(arrays, args, strict=True))

"""Arrays on tiles: placing, replicating and gathering rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.tiles import (
    TileShardedArray,
    tile_data_barrier,
    tile_gather,
    tile_put_replicated,
    tile_put_sharded,
)

ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_sharded_rows_lie_on_their_tiles():
    array = tile_put_sharded(jnp.asarray(ROWS), (5, 1, 1))
    assert (array.tiles, array.num_tiles) == ((5, 1, 1), 3)
    assert (array.shape, array.tile_shape, array.dtype) == ((3, 2), (2,), np.float32)
    np.testing.assert_array_equal(array.array, ROWS)


def test_as_many_rows_as_tiles():
    with pytest.raises(ValueError, match="3 rows cannot be sharded over 2 tiles"):
        tile_put_sharded(jnp.asarray(ROWS), (0, 1))
    with pytest.raises(ValueError, match="2 indices for 1 tiles"):
        tile_gather(jnp.asarray(ROWS), [0, 1], (0,))


def test_replicated_and_gathered():
    copies = tile_put_replicated(jnp.asarray(ROWS[0]), range(4))
    np.testing.assert_array_equal(copies.array, np.tile(ROWS[0], (4, 1)))
    array = tile_put_sharded(jnp.asarray(ROWS), range(3))
    for source in (array, jnp.asarray(ROWS)):
        gathered = tile_gather(source, np.array([2, 0, 2]), (7, 8, 9))
        np.testing.assert_array_equal(gathered.array, ROWS[[2, 0, 2]])
        assert gathered.tiles == (7, 8, 9)


def test_it_is_a_pytree_whose_tiles_are_static():
    array = tile_put_sharded(jnp.asarray(ROWS), range(3))
    doubled = jax.jit(lambda a: jax.tree.map(lambda x: x * 2, a))(array)
    assert isinstance(doubled, TileShardedArray)
    assert doubled.tiles == array.tiles
    np.testing.assert_array_equal(doubled.array, 2 * ROWS)


def test_a_barrier_changes_nothing_but_the_order():
    a, b = (tile_put_sharded(jnp.asarray(x), range(3)) for x in (ROWS, ROWS + 1))
    text = str(jax.make_jaxpr(lambda x, y: tile_data_barrier(x, y))(a, b))
    assert "optimization_barrier" in text
    for before, after in zip((a, b), tile_data_barrier(a, b), strict=True):
        np.testing.assert_array_equal(before.array, after.array)
        assert before.tiles == after.tiles

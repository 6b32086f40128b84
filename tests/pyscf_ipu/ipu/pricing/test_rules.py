"""Cycles and bytes of small programs, worked out by hand."""

import jax.numpy as jnp
import numpy as np

from pyscf_ipu.ipu import BOW, simulate
from pyscf_ipu.ipu.chip.popops import reduction_cycles, unary_1d
from pyscf_ipu.tiles import tile_map, tile_put_sharded


def steps(function, *arrays, kind):
    _, profile = simulate(function, BOW)(*arrays)
    return [step for step, _ in profile.steps() if step.kind == kind]


def summed(elements):
    """Cycles in which six workers of a tile add up its elements."""
    return unary_1d("abs", 1) + 6 * reduction_cycles(1, -(-elements // 6))


def test_a_sum_adds_up_on_every_tile_and_then_on_one():
    x = np.ones(4096, np.float32)
    first, second = steps(jnp.sum, x, kind="compute")
    assert (first.tiles, second.tiles) == (128, 1)  # 32 elements a tile, then 128 sums
    assert (first.cycles.low, second.cycles.low) == (summed(32), summed(128))
    (exchange,) = steps(jnp.sum, x, kind="exchange")
    assert exchange.moved_bytes == 4 * 128


def test_a_product_fetches_both_factors():
    """In blocks of 2 x 2 x 1: four numbers of the left factor and two of the right."""
    a, b = np.ones((8, 16), np.float32), np.ones((16, 4), np.float32)
    exchange = steps(lambda a, b: jnp.dot(a, b, precision="highest"), a, b, kind="exchange")[0]
    assert exchange.tiles == 144
    assert exchange.moved_bytes == 4 * 144 * 6


def test_a_captured_array_travels_to_every_tile():
    def add(x, y):
        captured = 2 * y
        return tile_map(lambda row: row + captured, tile_put_sharded(x, (3, 5))).array

    x, y = np.ones((2, 1), np.float32), np.ones(8, np.float32)
    assert steps(add, x, y, kind="exchange")[-1].moved_bytes == 2 * y.nbytes

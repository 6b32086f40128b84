"""Cycles and bytes of small programs, worked out by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.ipu import BOW, simulate
from pyscf_ipu.ipu.chip.amp import matmul_cycles
from pyscf_ipu.ipu.chip.popops import reduction_cycles, unary_1d
from pyscf_ipu.ipu.pricing.linear_algebra import SCALAR_CYCLES
from pyscf_ipu.tiles import tile_map, tile_put_sharded
from pyscf_ipu.tiles.array import WORKERS


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


def test_a_product_with_a_long_sum_is_cut_along_it():
    """Into as many parts as the result has elements, at most; a tile then adds up some of them."""
    x = np.ones((8, 4096), np.float32)
    parts, sums = steps(lambda x: jnp.dot(x, x.T, precision="highest"), x, kind="compute")
    assert parts.tiles > 1000
    assert parts.cycles.low < matmul_cycles(8, 4096 // 48, 8)
    assert sums.cycles.low < 200


def test_eigenvectors_count_the_rotations_of_their_sweeps():
    """A rotation of two columns of N takes 6 N operations: in rows, columns and eigenvectors."""
    by_name = {
        s.name: s for s in steps(jnp.linalg.eigh, np.eye(8, dtype=np.float32), kind="compute")
    }
    assert by_name["jacobi_eigh"].flops == 12 * (8 * 7 / 2) * 3 * 6 * 8


def test_a_solution_is_charged_for_its_right_hand_sides():
    """8 equations: N^3 / 3 multiply-adds to factorise, N^2 for each right-hand side."""
    a = np.eye(8, dtype=np.float32)
    for b, n in ((np.ones(8, np.float32), 1), (np.ones((8, 5), np.float32), 5)):
        by_name = {s.name: s for s in steps(jnp.linalg.solve, a, b, kind="compute")}
        lu, solution = by_name["lu"], by_name["custom_linear_solve"]
        assert lu.cycles.low == pytest.approx(WORKERS * SCALAR_CYCLES * 8**3 / 3)
        assert lu.flops == pytest.approx(2 * 8**3 / 3)
        assert solution.cycles.low == WORKERS * SCALAR_CYCLES * 8**2 * n
        assert solution.flops == 2 * 8**2 * n

"""Trip counts of loops and branches, against counters that the programs keep themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from pyscf_ipu.ipu.vertices.trip_counts import LANES, run_counts, sites
from pyscf_ipu.tiles import tile_map, tile_put_sharded


def counted(fn, *args):
    closed = jax.make_jaxpr(fn)(*args)
    return run_counts(closed)(*jax.tree.leaves(args)), closed


def collatz(n):
    """Steps until 1; odd and even numbers take different branches."""

    def step(state):
        n, k = state
        n = lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n)
        return n, k + 1

    return lax.while_loop(lambda s: s[0] > 1, step, (n, jnp.int32(0)))[1]


@pytest.mark.parametrize(("start", "odd", "even"), [(1, 0, 0), (6, 2, 6), (27, 41, 70)])
def test_while_and_cond(start, odd, even):
    totals, _ = counted(collatz, jnp.int32(start))
    assert sorted(totals.values()) == sorted([odd, even, odd + even])
    assert int(collatz(jnp.int32(start))) == odd + even


def test_loops_inside_loops_are_summed_over_their_entries():
    def fn(x):
        def inner(y):
            return lax.while_loop(lambda z: z > 0, lambda z: z - 1, y)

        return lax.fori_loop(0, 4, lambda i, total: total + inner(i) + 1, x)

    totals, closed = counted(fn, jnp.int32(0))
    assert len(list(sites(closed.jaxpr))) == 1  # the outer one has four trips whatever happens
    assert list(totals.values()) == [0 + 1 + 2 + 3]


def test_jitted_parts_and_the_results_themselves():
    @jax.jit
    def part(n):
        return collatz(n)

    def fn(n):
        return part(n) + part(n + 1)

    totals, _ = counted(fn, jnp.int32(6))
    assert sum(totals.values()) == 2 * (8 + 16)  # each trip counts its loop and its branch


def test_a_program_without_loops_is_not_run_again():
    totals, _ = counted(lambda x: jnp.sin(x), np.float32(1))
    assert totals == {}


def test_every_lane_of_a_batch_has_its_own_counts():
    starts = np.array([1, 6, 27, 6], np.int32)
    totals, _ = counted(jax.vmap(collatz), starts)
    by_lane = [n for path, n in totals.items() if path[-1] == LANES]
    np.testing.assert_array_equal(by_lane, [[0, 8, 111, 8]])
    assert 111 in [int(n) for n in totals.values() if not n.shape]  # and all of them together


def test_a_lane_that_has_ended_counts_no_loops_inside():
    def fn(n):
        def step(state):
            k, total = state
            return k - 1, total + collatz(k)

        return lax.while_loop(lambda s: s[0] > 0, step, (n, jnp.int32(0)))[1]

    starts = np.array([[3, 9], [0, 1]], np.int32)
    totals, _ = counted(jax.vmap(jax.vmap(fn)), starts)
    outer, inner = [n for path, n in totals.items() if path[-1] == LANES]
    np.testing.assert_array_equal(outer, starts)
    np.testing.assert_array_equal(inner, jax.vmap(jax.vmap(fn))(starts))


def test_vertices_count_for_themselves_also_in_a_loop():
    starts = np.array([1, 6, 27], np.int32)

    def fn(n):
        def again(total, _):
            return total + tile_map(collatz, tile_put_sharded(n, (1, 1, 5))).array, None

        return lax.scan(again, jnp.zeros_like(n), length=4)[0]

    totals, closed = counted(fn, starts)
    assert len(list(sites(closed.jaxpr))) == 3  # the loop, and two branches
    loop = max(totals.values(), key=np.sum)
    np.testing.assert_array_equal(loop, 4 * np.array([0, 8, 111]))

"""Trip counts of loops and branches, against counters that the programs keep themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from pyscf_ipu.ipu.vertices.trip_counts import run_counts, sites


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
    found, _ = counted(collatz, jnp.int32(start))
    assert sorted(found.values()) == sorted([odd, even, odd + even])
    assert int(collatz(jnp.int32(start))) == odd + even


def test_loops_inside_loops_are_summed_over_their_entries():
    def fn(x):
        def inner(y):
            return lax.while_loop(lambda z: z > 0, lambda z: z - 1, y)

        return lax.fori_loop(0, 4, lambda i, total: total + inner(i) + 1, x)

    found, closed = counted(fn, jnp.int32(0))
    assert len(list(sites(closed.jaxpr))) == 1  # the outer one has four trips whatever happens
    assert list(found.values()) == [0 + 1 + 2 + 3]


def test_jitted_parts_and_the_results_themselves():
    @jax.jit
    def part(n):
        return collatz(n)

    def fn(n):
        return part(n) + part(n + 1)

    found, _ = counted(fn, jnp.int32(6))
    assert sum(found.values()) == 2 * (8 + 16)  # each trip counts its loop and its branch


def test_a_program_without_loops_is_not_run_again():
    found, _ = counted(lambda x: jnp.sin(x), np.float32(1))
    assert found == {}

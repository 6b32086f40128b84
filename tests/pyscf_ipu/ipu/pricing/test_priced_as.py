"""One program runs, another is priced."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from pyscf_ipu.ipu import BOW, simulate
from pyscf_ipu.ipu.pricing.priced_as import priced_as

X = np.linspace(0.0, 1.0, 64, dtype=np.float32)


def test_the_first_runs_and_the_second_is_priced():
    def both(x):
        return priced_as(lambda y: (y + 1.0,), lambda y: (jnp.exp(y) * jnp.sin(y),), x)[0]

    found, profile = simulate(both, BOW)(X)
    np.testing.assert_array_equal(found, X + 1.0)
    _, alone = simulate(lambda x: jnp.exp(x) * jnp.sin(x), BOW)(X)
    assert profile.cycles == alone.cycles
    np.testing.assert_array_equal(both(X), X + 1.0)  # without jit, too


def test_pytrees_go_in_and_out():
    def swap(pair):
        return {"a": pair[1], "b": pair[0]}

    found = jax.jit(lambda x, y: priced_as(swap, swap, (x, y)))(X, 2 * X)
    np.testing.assert_array_equal(found["a"], 2 * X)


def test_results_must_look_alike():
    with pytest.raises(TypeError, match="its call says"):
        simulate(lambda x: priced_as(lambda y: y, lambda y: y[:3], x), BOW)(X)


def test_a_loop_that_nobody_counts_is_refused():
    def until(x):
        return lax.while_loop(lambda v: v.sum() < 1e3, lambda v: 2 * v, x)

    with pytest.raises(ValueError, match="depend on data"):
        simulate(lambda x: priced_as(until, until, x), BOW)(X)


def test_both_programs_can_be_batched():
    def both(x, factor):
        return priced_as(lambda y, f: f * y + 1.0, lambda y, f: jnp.exp(f * y), x, factor)

    rows = np.stack([X, 2 * X])
    batched = jax.vmap(both, in_axes=(0, None))
    found, profile = simulate(batched, BOW)(rows, np.float32(3.0))
    np.testing.assert_allclose(found, 3 * rows + 1.0, rtol=1e-6)
    _, alone = simulate(jax.vmap(lambda x, f: jnp.exp(f * x), (0, None)), BOW)(rows, np.float32(3))
    assert profile.cycles == alone.cycles

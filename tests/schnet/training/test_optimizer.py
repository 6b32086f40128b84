"""Learning rates, and which weights decay."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from schnet.network.config import PAPER_OPTIMIZER, Optimizer
from schnet.training.optimizer import learning_rate, optimizer


def rates(config, updates, steps):
    rule = learning_rate(config, updates)
    return [float(np.asarray(rule(step))) for step in steps]


def test_the_papers_rate():
    """A fifth of the rate at first, all of it after 80,000 updates, and 4 % less every 307,200."""
    steps = [0, 40_000, 80_000, 307_199, 307_200, 3 * 307_200 + 5]
    peak = PAPER_OPTIMIZER.learning_rate
    expected = [0.2 * peak, 0.6 * peak, peak, peak, 0.96 * peak, 0.96**3 * peak]
    assert rates(PAPER_OPTIMIZER, 10**7, steps) == pytest.approx(expected, rel=1e-6)


def test_a_constant_rate_and_a_cosine_with_a_warm_up_in_updates():
    config = Optimizer(schedule="constant", warmup_updates=10, learning_rate=1.0)
    assert rates(config, 100, [0, 5, 10, 99]) == pytest.approx([1 / 11, 6 / 11, 1, 1], rel=1e-6)
    config = Optimizer(warmup_updates=10, warmup_start=0.5, learning_rate=1.0, final_fraction=0.1)
    found = rates(config, 100, [0, 10, 55, 100])
    assert found == pytest.approx([0.5, 1.0, 0.55, 0.1], rel=1e-5)


@pytest.mark.parametrize("biases", [True, False])
def test_biases_decay_on_request(biases):
    rule = optimizer(replace(PAPER_OPTIMIZER, decay_biases=biases, learning_rate=1.0), 100)
    weights = {"matrix": jnp.ones((2, 2)), "bias": jnp.ones(2)}
    nothing = {"matrix": jnp.zeros((2, 2)), "bias": jnp.zeros(2)}
    with jax.numpy_dtype_promotion("standard"):  # as the step does, for optax
        change, _ = rule.update(nothing, rule.init(weights), weights)
    rate = 0.2
    assert float(change["matrix"][0, 0]) == pytest.approx(-rate * 1e-2, rel=1e-5)
    assert float(change["bias"][0]) == pytest.approx(-rate * 1e-2 * biases, rel=1e-5)


@pytest.mark.parametrize(("clip", "length"), [(1.0, 1.0), (0.0, 50.0)])
def test_without_a_clip_a_long_gradient_stays_long(clip, length):
    rule, gradient = optimizer(Optimizer(clip=clip), 10), {"x": jnp.full(1, 50.0)}
    with jax.numpy_dtype_promotion("standard"):
        _, state = rule.update(gradient, rule.init(gradient), gradient)
    moments = [float(leaf[0]) for leaf in jax.tree.leaves(state) if leaf.shape == (1,)]
    assert sorted(moments) == pytest.approx(sorted([0.1 * length, 1e-3 * length**2]), rel=1e-4)

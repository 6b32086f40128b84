import dataclasses
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from packs import TINY, graphs, network, qm9
from toy_forces import toy

from schnet.network.config import Optimizer
from schnet.network.forces import predict_with_forces
from schnet.network.pack import PackShape, empty, fill, stack
from schnet.training.optimizer import (
    FIRST_SCALE,
    GROWS_AFTER,
    LossScale,
    averaged,
    learning_rate,
    optimizer,
    rounded,
)
from schnet.training.step import make_step, mesh, place, replicate, start

pytestmark = pytest.mark.slow

SCALE = 0.5
CONFIG = Optimizer(learning_rate=1e-2, warmup_fraction=0.0, ema=0.9, loss="mse")
SHAPE = PackShape(atoms=128, molecules=10, pairs=1400)
ONE = dataclasses.replace(TINY, interactions=1)
RULE = optimizer(CONFIG, 100)


@pytest.fixture(scope="module")
def devices():
    return mesh(1)


@pytest.fixture(scope="module")
def step(devices):
    """Compiled once for each number of packs."""
    return make_step(RULE, CONFIG, jnp.float32, devices)


@pytest.fixture
def state(devices):
    return first(devices)


def first(devices):
    return replicate(start(network(ONE), RULE), devices)


def packs_of(*groups):
    samples = qm9()
    targets = (samples.targets - samples.targets.mean()) / samples.targets.std()
    return [fill(SHAPE, graphs(), samples, list(group), targets) for group in groups]


def packs_with_forces(*groups):
    samples = toy()
    targets = (samples.targets - samples.targets.mean()) / SCALE
    return [fill(SHAPE, graphs(), samples, list(group), targets, SCALE) for group in groups]


def leaves(tree):
    return [np.asarray(x) for x in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def test_accumulated_packs_give_the_gradient_of_one_large_pack(step, devices):
    a, b = (1, 11, 21), (31, 41)
    parts = packs_of(a, b)
    whole = packs_of((*a, *b))
    _, report_one = step(first(devices), place(stack(parts, (1, 1, 2)), devices))
    _, report_other = step(first(devices), place(stack(whole, (1, 1, 1)), devices))
    assert float(report_one.molecules[0]) == 5.0
    np.testing.assert_allclose(report_one.loss, report_other.loss, rtol=1e-5)
    np.testing.assert_allclose(report_one.gradient_norm, report_other.gradient_norm, rtol=1e-4)
    np.testing.assert_allclose(report_one.absolute_error, report_other.absolute_error, rtol=1e-5)


def test_several_updates_in_a_call_are_several_calls(step, state, devices):
    parts = packs_of((1, 11), (21, 31))
    together, report = step(first(devices), place(stack(parts, (2, 1, 1)), devices))
    losses = []
    for part in parts:
        state, one = step(state, place(stack([part], (1, 1, 1)), devices))
        losses.append(float(one.loss[0]))
    np.testing.assert_allclose(report.loss, losses, rtol=1e-6)
    for x, y in zip(leaves(together), leaves(state), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-7)


def test_a_pack_without_molecules_changes_nothing(step, state, devices):
    before = leaves(state)
    after, report = step(state, place(stack([empty(SHAPE)], (1, 1, 1)), devices))
    assert float(report.molecules[0]) == 0.0
    for x, y in zip(before, leaves(after), strict=True):
        np.testing.assert_array_equal(x, y)


def test_what_is_not_finite_changes_nothing_and_is_reported(step, state, devices):
    pack, good = packs_of((1, 11), (21, 31))
    pack.target[0] = np.nan
    before = leaves(state)
    after, report = step(state, place(stack([pack, good], (2, 1, 1)), devices))
    assert np.isnan(report.loss).tolist() == [True, False]
    for x, y in zip(before, leaves(after), strict=True):
        np.testing.assert_array_equal(x, y)


def test_training_on_one_pack_learns_it(step, state, devices):
    packs = place(stack(packs_of((1, 11, 21)), (1, 1, 1)), devices)
    losses = []
    for _ in range(80):
        state, report = step(state, packs)
        losses.append(float(report.loss[0]))
    assert losses[-1] < 0.05 * losses[0]
    assert int(state.updates) == 80


@pytest.fixture(scope="module")
def forces_step(devices):
    return make_step(RULE, CONFIG, jnp.float32, devices, forces=True)


def test_the_loss_weighs_molecules_and_the_components_of_their_forces(forces_step, state, devices):
    (pack,) = packs_with_forces((1, 11, 21))
    samples = toy().take(np.array([1, 11, 21]))
    found = eqx.filter_jit(predict_with_forces)(network(ONE), jax.tree.map(jnp.asarray, pack))
    _, report = forces_step(state, place(stack([pack], (1, 1, 1)), devices))
    energies = np.asarray(found.energies - pack.target, np.float64)[:3]
    n = samples.atom_offset
    forces = np.asarray(found.forces, np.float64)[: n[-1]] - samples.forces / SCALE
    means = [np.mean(forces[a:b] ** 2) for a, b in pairwise(n)]
    weight = CONFIG.forces_weight
    expected = np.mean(energies**2 + weight * np.array(means)) / (1.0 + weight)
    assert float(report.loss[0]) == pytest.approx(expected, rel=1e-5)
    assert float(report.absolute_error[0]) == pytest.approx(np.abs(energies).sum(), rel=1e-5)
    assert float(report.forces_error[0]) == pytest.approx(np.abs(forces).sum(), rel=1e-5)
    assert float(report.components[0]) == forces.size


def test_forces_add_up_over_packs(forces_step, devices):
    a, b = (1, 11, 21), (31, 41)
    parts, whole = packs_with_forces(a, b), packs_with_forces((*a, *b))
    _, one = forces_step(first(devices), place(stack(parts, (1, 1, 2)), devices))
    _, other = forces_step(first(devices), place(stack(whole, (1, 1, 1)), devices))
    for x, y in zip(one, other, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4)


def test_training_on_one_pack_learns_its_forces(forces_step, state, devices):
    packs = place(stack(packs_with_forces((1, 11, 21)), (1, 1, 1)), devices)
    losses, of_energies = [], []
    for _ in range(80):
        state, report = forces_step(state, packs)
        losses.append(float(report.loss[0]))
        of_energies.append(float(report.absolute_error[0]))
    # The energies' part of the first loss is a third: without the forces' it cannot fall so far.
    assert losses[-1] < 0.15 * losses[0]
    assert of_energies[-1] < 0.3 * of_energies[0]


def test_bfloat16_layers_keep_float32_weights(state, devices):
    step = make_step(RULE, dataclasses.replace(CONFIG, loss="huber"), jnp.bfloat16, devices)
    state, report = step(state, place(stack(packs_of((1, 11)), (1, 1, 1)), devices))
    assert np.isfinite(report.loss).all()
    assert {leaf.dtype for leaf in leaves(state.model)} == {np.dtype(np.float32)}


@pytest.fixture(scope="module")
def half_step(devices):
    return make_step(RULE, CONFIG, jnp.float16, devices)


class TestFloat16:
    def first(self, devices, factor=2.0**10):
        state = start(network(ONE), RULE, half=True)
        scale = LossScale(jnp.asarray(factor, jnp.float32), jnp.zeros((), jnp.int32))
        return replicate(eqx.tree_at(lambda s: s.scale, state, scale), devices)

    @pytest.mark.long
    def test_the_scale_does_not_change_the_gradient(self, devices, step, half_step):
        packs = stack(packs_of((1, 11, 21)), (1, 1, 1))
        _, full = step(first(devices), place(packs, devices))
        norms = []
        for factor in (0.25, 4.0):
            _, half = half_step(self.first(devices, factor), place(packs, devices))
            norms.append(float(half.gradient_norm[0]))
        np.testing.assert_allclose(norms, full.gradient_norm[0], rtol=0.02)

    def test_an_overflow_halves_the_scale_and_changes_nothing_else(self, devices, half_step):
        state = self.first(devices, 2.0**24)
        before = leaves(state.model)
        packs = place(stack(packs_of((1, 11, 21)), (1, 1, 1)), devices)
        state, report = half_step(state, packs)
        assert float(state.scale.factor) == 2.0**23
        assert float(report.gradient_norm[0]) == 0.0
        assert np.isfinite(report.loss).all()
        for a, b in zip(before, leaves(state.model), strict=True):
            np.testing.assert_array_equal(a, b)
        assert int(state.updates) == 0

    def test_it_learns_with_weights_of_float16(self, devices):
        run = make_step(RULE, CONFIG, jnp.float16, devices, rounding=True)
        state = self.first(devices)
        packs = stack(packs_of((1, 11, 21)), (1, 1, 1))
        losses = []
        for _ in range(30):
            state, report = run(state, place(packs, devices))
            losses.append(float(report.loss[0]))
        assert losses[-1] < 0.5 * losses[0]
        for leaf in leaves(state.model):
            np.testing.assert_array_equal(leaf, leaf.astype(np.float16).astype(np.float32))

    def test_the_scale_grows_after_many_updates(self):
        scale = LossScale.first()
        for _ in range(GROWS_AFTER):
            scale = scale.after(jnp.asarray(True))
        assert float(scale.factor) == 2 * FIRST_SCALE
        assert int(scale.since) == 0

    def test_rounding_is_right_in_the_mean(self):
        x = np.array([1.0 + 2.0**-12, -3.14159, 1e-6, 0.0, 2.0**-20 * 1.3], np.float32)
        several = jax.jit(jax.vmap(lambda k: rounded(jnp.asarray(x), k)))
        found = several(jax.random.split(jax.random.key(0), 4000))
        assert set(np.unique(found[:, 0])) == {np.float32(1.0), np.float32(1.0 + 2.0**-10)}
        np.testing.assert_array_equal(
            found, np.asarray(found).astype(np.float16).astype(np.float32)
        )
        steps = np.array([2.0**-10, 2.0**-9, 2.0**-24, 1.0, 2.0**-24])
        assert np.all(np.abs(np.mean(found, axis=0) - x) < 0.05 * steps)


def test_the_rate_rises_then_falls():
    rates = learning_rate(Optimizer(learning_rate=1.0, warmup_fraction=0.1), 100)
    values = [float(rates(i)) for i in range(101)]
    assert values[0] == pytest.approx(1 / 11)
    assert np.argmax(values) == 10
    assert max(values) == pytest.approx(1.0)
    assert values[-1] == pytest.approx(0.01)
    assert all(np.diff(values[10:]) < 0)


def test_only_matrices_decay():
    rule = optimizer(Optimizer(learning_rate=1.0, weight_decay=0.5, warmup_fraction=0.0), 1)
    weights = {"matrix": jnp.ones((2, 2)), "bias": jnp.ones(2)}
    nothing = jax.tree.map(jnp.zeros_like, weights)
    with jax.numpy_dtype_promotion("standard"):
        change, _ = jax.jit(rule.update)(nothing, jax.jit(rule.init)(weights), weights)
    after = optax.apply_updates(weights, change)
    assert float(after["matrix"][0, 0]) < 1.0
    assert float(after["bias"][0]) == 1.0


def test_the_mean_of_the_weights_forgets_the_first_ones():
    mean, target = jnp.zeros(1), jnp.ones(1)
    for k in range(60):
        mean = averaged(mean, target, jnp.asarray(k, jnp.int32), 0.999)
    assert float(mean[0]) > 0.99
    assert float(averaged(jnp.zeros(1), target, jnp.asarray(10**6), 0.9)[0]) == pytest.approx(0.1)

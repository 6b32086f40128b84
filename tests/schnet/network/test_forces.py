"""Forces: against a SchNet in NumPy and float64, invariances, and smoothness at the cutoff."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packs import TINY, network, packed, qm9
from scipy.spatial.transform import Rotation

from schnet.errors import UserError
from schnet.network.forces import predict_with_forces, shares
from schnet.network.pack import PackShape, empty
from schnet.network.predictor import Predictor
from schnet.samples.accuracy import Predicted
from schnet.samples.references import AtomReferences
from schnet.samples.targets import target_of

ELEMENTS = tuple(range(1, 10))
computed = eqx.filter_jit(predict_with_forces)
REFERENCES = AtomReferences(ELEMENTS, (-0.5,) * 9, 0.25, 0.125)


def predictor(target="energy"):
    return Predictor(network(), TINY, REFERENCES, target_of(target), pack_molecules=4)


def moved(samples, change):
    positions = change(samples.positions_bohr.astype(np.float64)).astype(np.float32)
    return dataclasses.replace(samples, positions_bohr=positions)


def energy64(model, numbers, positions):
    """The same network with its equations written out, in float64."""

    def layer(one, x):
        bias = 0.0 if one.bias is None else np.asarray(one.bias, np.float64)
        return x @ np.asarray(one.weight, np.float64) + bias

    def softplus(x):
        return np.logaddexp(0.0, x) - np.log(2.0)

    cutoff = model.cutoff_bohr
    distance = np.linalg.norm(positions[:, None] - positions, axis=-1)
    near = (distance < cutoff) & ~np.eye(len(numbers), dtype=bool)
    weight = np.where(near, 0.5 * (np.cos(np.pi * distance / cutoff) + 1.0), 0.0)[..., None]
    centres = np.linspace(0.0, cutoff, model.n_gaussians)
    gaussians = np.exp(-0.5 * ((distance[..., None] - centres) / centres[1]) ** 2)
    x = np.asarray(model.embedding, np.float64)[numbers]
    for block in model.interactions:
        filters = layer(block.filter_out, softplus(layer(block.filter_in, gaussians))) * weight
        summed = np.einsum("ijf,jf->if", filters, layer(block.before, x))
        x = x + layer(block.mix, softplus(layer(block.after, summed)))
    return layer(model.out_2, softplus(layer(model.out_1, x))).sum()


def test_forces_are_finite_differences_of_a_network_in_float64():
    model, row = network(), qm9([5])[0]
    positions = row.positions_bohr.astype(np.float64)
    found = computed(model, packed(qm9([5]), [0], PackShape(40, 1, 400)))
    assert float(found.energies[0]) == pytest.approx(
        energy64(model, row.numbers, positions), rel=1e-5
    )
    step, expected = 1e-4, np.zeros_like(positions)
    for at in np.ndindex(positions.shape):
        one = np.zeros_like(positions)
        one[at] = step
        plus, minus = (energy64(model, row.numbers, positions + s * one) for s in (1, -1))
        expected[at] = (minus - plus) / (2 * step)
    size = np.abs(expected).max()
    assert size > 1e-2
    np.testing.assert_allclose(found.forces[: len(positions)], expected, atol=2e-5 * size)
    assert not np.asarray(found.forces)[len(positions) :].any()


def test_predicted_forces_are_the_slope_of_predicted_energies():
    """Energies alone come from tables of filters, and with references and scale."""
    ours, samples = predictor("forces+energy"), qm9([5, 30])
    found = ours.predicted(samples)
    np.testing.assert_allclose(found.values, ours(samples), rtol=1e-6)
    random = np.random.default_rng(2).normal(size=found.forces.shape)
    step = 0.02
    values = [ours(moved(samples, lambda r, s=s: r + s * step * random)) for s in (2, 1, -1, -2)]
    slope = np.dot([-1, 8, -8, 1], values) / (12 * step)
    work = -np.add.reduceat((found.forces * random).sum(axis=1), samples.atom_offset[:-1])
    np.testing.assert_allclose(slope, work, rtol=1e-3)


def test_forces_turn_with_the_molecule_and_add_up_to_nothing():
    ours, samples = predictor(), qm9([3, 20, 59, 0, 7])
    found = ours.with_forces(samples)
    turn = Rotation.from_rotvec([0.4, -1.0, 0.2])
    turned = ours.with_forces(moved(samples, lambda r: turn.apply(r) + 2.0))
    size = np.abs(found.forces).max()
    np.testing.assert_allclose(turned.forces, turn.apply(found.forces), atol=1e-4 * size)
    np.testing.assert_allclose(turned.values, found.values, rtol=1e-5)
    torque = np.cross(samples.positions_bohr, found.forces)
    for sums in (found.forces, torque):
        net = np.add.reduceat(sums, samples.atom_offset[:-1])
        np.testing.assert_allclose(net, 0.0, atol=1e-4 * size)


def test_forces_do_not_depend_on_the_pack():
    ours, samples = predictor("forces+energy"), qm9([3, 20, 59, 0, 7])
    together = ours.predicted(samples)
    alone = [ours.predicted(samples.take(np.array([i]))) for i in range(len(samples))]
    np.testing.assert_allclose(together.forces, Predicted.joined(alone).forces, atol=1e-6)


def test_forces_go_to_zero_at_the_cutoff():
    """An atom that leaves: its force is continuous, and nothing is left beyond."""
    samples, sizes = qm9([0]), []
    far = np.zeros_like(samples.positions_bohr)
    far[:, 0] = 0.1 * np.arange(len(far))
    for distance in (0.9, 0.99, 0.999, 0.9999, 1.0001):
        apart = far.copy()
        apart[-1, 0] = apart[-2, 0] + distance * TINY.cutoff_bohr
        one = dataclasses.replace(samples, positions_bohr=apart)
        sizes.append(np.abs(predictor().with_forces(one).forces[-1]).max())
    assert sizes[0] > sizes[1] > sizes[2] > sizes[3] > 0.0
    assert sizes[3] < 1e-3 * sizes[0]
    assert sizes[4] == 0.0


def test_a_component_counts_its_share_of_the_molecule():
    samples = qm9([4, 9])
    found = np.asarray(jax.jit(shares)(packed(samples, [0, 1])))
    n = samples.sizes
    expected = np.repeat(1.0 / (3.0 * n), n)
    np.testing.assert_allclose(found[: n.sum()], expected, rtol=1e-6)
    assert not found[n.sum() :].any()
    assert not np.asarray(
        jax.jit(shares)(jax.tree.map(jnp.asarray, empty(PackShape(8, 2, 8))))
    ).any()


def test_only_energies_have_forces():
    with pytest.raises(UserError, match="predicts gap: forces need one of the energy"):
        predictor("gap").with_forces(qm9([0]))
    assert predictor().predicted(qm9([0])).forces is None
    assert predictor("forces+energy").predicted(qm9([0]).take(np.zeros(0, int))).forces.shape == (
        0,
        3,
    )

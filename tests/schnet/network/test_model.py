import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packs import SHAPE, TINY, graphs, network, output, packed, pyg_weights, qm9
from scipy.spatial.transform import Rotation

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from schnet.network import pyg
from schnet.network.config import PRESETS, ModelConfig
from schnet.network.model import SchNet, count_parameters, pair_distances, shifted_softplus, smear
from schnet.network.pack import PackShape, empty
from schnet.network.packing import shape_for
from schnet.network.predictor import Predictor
from schnet.samples.references import AtomReferences
from schnet.samples.samples import Samples
from schnet.samples.targets import target_of


def moved(samples, change):
    positions = change(samples.positions_bohr.astype(np.float64)).astype(np.float32)
    return dataclasses.replace(samples, positions_bohr=positions)


def test_shifted_softplus_and_its_derivative():
    x = np.linspace(-60.0, 60.0, 2001)
    expected = np.logaddexp(0.0, x) - np.log(2.0)
    found = jax.jit(shifted_softplus)(jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    slope = jax.jit(jax.vmap(jax.grad(shifted_softplus)))(jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose(slope, 1.0 / (1.0 + np.exp(-x)), rtol=2e-6, atol=1e-7)


def test_gaussians_have_their_maxima_at_even_distances():
    distance = jnp.asarray([0.0, 3.0, 12.0], jnp.float32)
    found = np.asarray(smear(distance, 5, 12.0))
    expected = np.exp(-0.5 * (np.array([0.0, 3.0, 12.0])[:, None] / 3.0 - np.arange(5)) ** 2)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("readout", ["sum", "mean", "dipole"])
def test_moving_turning_and_renaming_atoms_changes_nothing(readout):
    config = dataclasses.replace(TINY, readout=readout)
    model, samples = network(config), qm9([3, 30])
    turn = Rotation.from_rotvec([0.4, -1.0, 0.2])
    before = output(model, packed(samples, [0, 1]))
    after = output(model, packed(moved(samples, lambda r: turn.apply(r) + 2.0), [0, 1]))
    np.testing.assert_allclose(before, after, rtol=2e-4, atol=2e-5)
    n = int(samples.sizes[0])
    order = np.random.default_rng(0).permutation(n)
    index = np.concatenate([order, np.arange(n, len(samples.numbers))])
    other = dataclasses.replace(
        samples, numbers=samples.numbers[index], positions_bohr=samples.positions_bohr[index]
    )
    np.testing.assert_allclose(before, output(model, packed(other, [0, 1])), rtol=2e-4, atol=2e-5)


def test_a_molecule_does_not_depend_on_its_pack():
    model, samples = network(), qm9([0, 20, 40])
    together = output(model, packed(samples, [2, 0, 1]))
    for slot, which in enumerate((2, 0, 1)):
        alone = output(model, packed(samples, [which], PackShape(40, 2, 500)))
        np.testing.assert_allclose(together[slot], alone[0], rtol=1e-5)
    assert np.all(np.asarray(together)[3:] == 0.0)


def test_an_empty_pack_gives_zeros_and_no_gradient():
    pack = jax.tree.map(jnp.asarray, empty(SHAPE))
    model = network()
    assert np.all(np.asarray(output(model, pack)) == 0.0)
    gradient = eqx.filter_jit(eqx.filter_grad(lambda m: jnp.sum(output(m, pack))))(model)
    assert all(np.all(np.asarray(leaf) == 0.0) for leaf in jax.tree.leaves(gradient))


def test_gradients_by_positions_are_finite_differences():
    samples = qm9([5])
    pack, model = packed(samples, [0], PackShape(40, 1, 400)), network()

    @jax.jit
    def total(positions):
        return jnp.sum(model(dataclasses.replace(pack, positions_bohr=positions)))

    gradient = np.asarray(jax.jit(jax.grad(total))(pack.positions_bohr))
    direction = np.random.default_rng(1).normal(size=gradient.shape).astype(np.float32)
    direction[len(samples.numbers) :] = 0.0
    step = 1e-2
    plus = total(pack.positions_bohr + step * direction)
    minus = total(pack.positions_bohr - step * direction)
    slope = float(plus - minus) / (2 * step)
    assert slope == pytest.approx(float((gradient * direction).sum()), rel=2e-2, abs=1e-4)


def test_atoms_beyond_the_cutoff_do_not_interact():
    samples = qm9([2])
    far = samples.positions_bohr.copy()
    far[-1] += 40.0
    farther = far.copy()
    farther[-1] += 10.0
    shape = PackShape(40, 1, 400)
    one = dataclasses.replace(samples, positions_bohr=far)
    other = dataclasses.replace(samples, positions_bohr=farther)
    found = output(network(), packed(one, [0], shape)), output(network(), packed(other, [0], shape))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_distances_are_those_of_the_pairs():
    samples = qm9([7])
    pack = packed(samples, [0], PackShape(40, 1, 400))
    distance = np.asarray(jax.jit(pair_distances)(pack))
    xyz = samples.positions_bohr
    count = int(np.asarray(pack.to_i).sum())
    i, j = np.asarray(pack.pair_i)[:count], np.asarray(pack.pair_j)[:count]
    np.testing.assert_allclose(distance[:count], np.linalg.norm(xyz[i] - xyz[j], axis=1), rtol=1e-5)
    assert np.all(distance[count:] == 1.0)


def test_the_preset_has_the_size_of_the_paper():
    model = eqx.filter_eval_shape(SchNet, PRESETS["schnet-9m"], jax.random.key(0))
    leaves = [leaf.size for leaf in jax.tree.leaves(model)]
    assert 8.5e6 < sum(leaves) < 9.5e6
    assert count_parameters(network()) == sum(
        leaf.size for leaf in jax.tree.leaves(eqx.filter(network(), eqx.is_array))
    )


def test_bfloat16_layers_are_near_float32():
    model, pack = network(), packed(qm9([1]), [0], PackShape(40, 1, 400))
    small = jax.tree.map(lambda x: x.astype(jnp.bfloat16) if eqx.is_array(x) else x, model)
    found = output(small, pack)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, output(model, pack), rtol=0.1, atol=0.1)


@pytest.mark.parametrize(
    ("readout", "name"), [("sum", "add"), ("mean", "mean"), ("dipole", "dipole")]
)
def test_weights_of_pytorch_geometric_give_its_output(readout, name):
    weights, outputs = pyg_weights()
    found = pyg.convert(weights, readout, neighbours=32)
    sizes = {"width": 32, "filters": 24, "interactions": 2, "gaussians": 16, "neighbours": 32}
    cutoff_bohr = 6.0 / BOHR_TO_ANGSTROM
    assert found.config == ModelConfig(**sizes, cutoff_bohr=cutoff_bohr, readout=readout)
    samples = qm9()
    references = AtomReferences(tuple(range(1, 10)), (0.0,) * 9, 0.0, 1.0)
    predicted = Predictor(found.model, found.config, references, target_of("gap"))(samples)
    expected = outputs[f"output_{name}"]
    assert len(expected) >= 50
    assert np.std(expected) > 1e-3 * np.abs(expected).mean()
    # A dipole may vanish, so its error is compared with the size of the others.
    atol = 1e-5 * np.median(expected) if readout == "dipole" else 0.0
    np.testing.assert_allclose(predicted, expected, rtol=1e-5, atol=atol)


def test_mean_and_std_of_pytorch_geometric_act_on_every_atom():
    weights, _ = pyg_weights()
    samples = qm9([0, 1])
    shape = shape_for({int(n): 1 for n in samples.sizes}, graphs(), 2)
    plain = pyg.convert(weights, "sum", 32)
    scaled = pyg.convert(weights, "sum", 32, mean=0.25, std=3.0)
    pack = packed(samples, [0, 1], shape, plain.config)
    expected = 3.0 * output(plain.model, pack) + 0.25 * jnp.asarray(samples.sizes, jnp.float32)
    np.testing.assert_allclose(output(scaled.model, pack), expected, rtol=1e-5)


def test_a_foreign_state_dict_is_refused():
    with pytest.raises(pyg.UserError, match="state_dict of a SchNet"):
        pyg.convert({"weight": np.zeros(3)}, "sum", 32)


def test_samples_of_one_atom_have_no_pairs():
    samples = qm9([0])
    numbers, origin = np.array([6], np.uint8), np.zeros((1, 3), np.float32)
    one = Samples.of([samples[0]._replace(numbers=numbers, positions_bohr=origin)])
    found = output(network(), packed(one, [0]))
    assert np.isfinite(found).all()

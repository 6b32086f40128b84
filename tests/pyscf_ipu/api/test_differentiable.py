"""`energy_function`: JAX's transformations of the energy, against `rks` and `forces`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pyscf_ipu as pi

HF = pi.Settings(xc="hf")
WATER = pi.Molecule([1, 8, 1], [[1.4, 1.1, 0.1], [0.0, 0.0, 0.0], [-1.5, 1.0, 0.0]])


@pytest.fixture(scope="module")
def energy():
    return pi.energy_function(WATER, HF)


@pytest.fixture(scope="module")
def both(energy):
    """Value and gradient, compiled once."""
    return jax.jit(jax.value_and_grad(energy))


@pytest.fixture(scope="module")
def expected():
    return pi.rks(WATER, xc="hf", forces=True)


def test_value_and_gradient_are_those_of_the_engine(both, expected):
    value, gradient = both(jnp.asarray(WATER.positions, jnp.float32))
    assert float(value) == pytest.approx(float(expected.energy), abs=2e-5)
    assert gradient.shape == (3, 3)
    np.testing.assert_allclose(gradient, -expected.forces, atol=2e-5)


def test_the_derivative_is_that_of_the_function(both):
    """Along a direction, against a central difference, whose own error is that of float32."""
    x = np.asarray(WATER.positions, np.float32)
    step = np.zeros_like(x)
    step[0, 0] = 0.05
    slope = float((both(x + step)[0] - both(x - step)[0]) / 0.1)
    assert float(both(x)[1][0, 0]) == pytest.approx(slope, abs=1e-3)


def test_vmap_computes_each_by_itself(energy, both):
    x = np.asarray(WATER.positions, np.float32)
    several = np.stack([x, x * np.float32(1.02)])
    values, gradients = jax.jit(jax.vmap(jax.value_and_grad(energy)))(several)
    for k in range(2):
        value, gradient = both(several[k])
        assert float(values[k]) == pytest.approx(float(value), abs=1e-5)
        np.testing.assert_allclose(gradients[k], gradient, atol=5e-5)


def test_the_place_of_the_molecule_does_not_matter(both):
    x = np.asarray(WATER.positions, np.float32)
    moved = both(x + np.float32(64.0))
    here = both(x)
    assert float(moved[0]) == pytest.approx(float(here[0]), abs=2e-5)


def test_what_does_not_converge_is_nan():
    energy = pi.energy_function(WATER, pi.Settings(xc="hf", max_cycles=1))
    both = jax.jit(jax.value_and_grad(energy))
    value, gradient = both(jnp.asarray(WATER.positions, jnp.float32))
    assert np.isnan(value)
    assert np.all(np.isnan(gradient))


def test_atoms_too_close_are_refused_as_by_rks(energy, both):
    """Inside a transformation the positions are not known, so NaN says it."""
    x = np.asarray(WATER.positions, np.float32)
    x[0] = x[1] + np.float32([0.4, 0.4, 0.0])
    with pytest.raises(pi.InvalidMolecule, match=r"at least 0\.7 Bohr"):
        pi.rks(pi.Molecule(WATER.numbers, x), xc="hf", throw=True)
    with pytest.raises(pi.InvalidMolecule, match=r"atoms 0 \(H\) and 1 \(O\) only 0\.566"):
        energy(x)
    value, gradient = both(x)
    assert np.isnan(value)
    assert np.all(np.isnan(gradient))


def test_forward_mode_gives_the_same_derivative(energy, both):
    x, step = np.asarray(WATER.positions, np.float32), np.float32([[0.1, 0.2, 0.3]] * 3)
    step[0] *= -2
    value, slope = jax.jvp(energy, (x,), (step,))
    assert float(value) == pytest.approx(float(both(x)[0]), abs=1e-5)
    assert float(slope) == pytest.approx(float(np.vdot(both(x)[1], step)), abs=1e-4)


@pytest.mark.long
def test_numbers_in_float64_keep_their_places_far_away(energy):
    near = float(energy(WATER.positions))
    assert float(energy(WATER.positions + 1e5)) == pytest.approx(near, abs=2e-5)
    rounded = (WATER.positions + 1e5).astype(np.float32)  # to 0.008 Bohr
    assert float(energy(rounded)) != pytest.approx(near, abs=2e-5)
    with jax.enable_x64(True):  # also where only their traces are known
        traced = jax.jit(energy)(jnp.asarray(WATER.positions + 1e5))
        assert float(traced) == pytest.approx(near, abs=2e-5)


def test_without_its_64_bits_the_function_refuses(energy):
    with jax.enable_x64(True):
        exact = pi.energy_function(WATER, pi.Settings(xc="hf", precision="float64"))
    for call in (exact, jax.grad(exact)):
        with pytest.raises(pi.UsageError, match=r"enable_x64"):
            call(WATER.positions)


def test_what_cannot_be_done_is_said(energy):
    x = jnp.asarray(WATER.positions, jnp.float32)
    with pytest.raises(NotImplementedError, match=r"jax\.grad.*once"):
        jax.grad(lambda y: jnp.sum(jax.grad(energy)(y) ** 2))(x)
    with pytest.raises(ValueError, match=r"\(3, 3\), in Bohr"):
        energy(x[:2])
    with pytest.raises(ValueError, match="enable_x64"):
        pi.energy_function(WATER, pi.Settings(xc="hf", precision="mixed"))
    with pytest.raises(ValueError, match="turns with the molecule"):
        pi.energy_function(
            WATER, pi.Settings(grid_level=(20, 50), prune=False, grid_kind="gaussian")
        )

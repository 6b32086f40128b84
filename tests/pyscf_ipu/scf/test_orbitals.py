"""Orthonormal bases, orbitals and densities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.scf.orbitals import (
    DROPPED_SHIFT,
    density_of,
    fermi_dirac,
    orthonormal,
    purified,
    reorthonormalise,
    similar,
)

N = 6


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def model():
    """Overlap and a core Hamiltonian of a chain."""
    rng = np.random.default_rng(8)
    overlap = np.eye(N) + 0.15 * (np.eye(N, k=1) + np.eye(N, k=-1))
    return overlap, np.diag(rng.normal(size=N)) - 0.8 * (np.eye(N, k=1) + np.eye(N, k=-1))


def test_orthonormal_is_the_square_root(model):
    overlap, _ = model
    basis = orthonormal(Pair(jnp.asarray(overlap), jnp.zeros((N, N))))
    np.testing.assert_allclose(basis.inverse @ overlap @ basis.inverse, np.eye(N), atol=1e-13)
    np.testing.assert_allclose(basis.root @ basis.root, overlap, atol=1e-13)
    np.testing.assert_allclose(basis.inverse, basis.inverse.T, atol=1e-14)


def test_what_is_left_out_is_lifted():
    """Three AOs, two of them nearly the same, and a padded one."""
    overlap = np.eye(4)
    overlap[0, 1] = overlap[1, 0] = 1 - 1e-7
    overlap[:2, 2] = overlap[2, :2] = 0.3
    words = Pair(jnp.asarray(overlap), jnp.zeros((4, 4)))
    kept = orthonormal(words)
    exact = np.linalg.eigvalsh(overlap)[0]
    for basis, dropped in ((kept, 0), (orthonormal(words, drop_below=1e-6), 1)):
        assert float(basis.smallest) == pytest.approx(exact, abs=1e-12)
        assert int(basis.dropped) == dropped
        inside = basis.inverse @ overlap @ basis.inverse
        assert np.linalg.eigvalsh(inside) == pytest.approx([1 - dropped, 1, 1, 1], abs=1e-6)
        levels = np.linalg.eigvalsh(basis.matrix(jnp.asarray(overlap)))
        assert levels == pytest.approx([1, 1, 1, DROPPED_SHIFT if dropped else 1], abs=1e-6)


@pytest.mark.parametrize(
    ("electrons", "shares"),
    [
        (0, [0, 0, 0, 0, 0]),
        (1, [1, 0, 0, 0, 0]),
        (2, [1, 1 / 3, 1 / 3, 1 / 3, 0]),
        (4, [1, 1, 1, 1, 0]),
        (5, [1, 1, 1, 1, 1]),
    ],
)
def test_orbitals_of_one_level_share_electrons(electrons, shares):
    levels = jnp.asarray([-1.0, -0.1, -0.1, -0.1, 0.6])
    found = fermi_dirac(levels, jnp.int32(electrons), smearing=jnp.asarray(0.01))
    np.testing.assert_allclose(found, shares, atol=1e-9)


def test_a_fock_matrix_between_nearly_dependent_aos():
    """The inverse root has elements of 100: of their products with F most cancels."""
    rng = np.random.default_rng(1)
    vectors = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    overlap = (vectors * np.geomspace(1e-4, 3, 40)) @ vectors.T
    root = (vectors * np.sqrt(np.geomspace(1e-4, 3, 40))) @ vectors.T
    fock = (root @ (lambda x: x + x.T)(rng.normal(size=(40, 40))) @ root).astype(np.float32)
    words = Pair(jnp.asarray(overlap, jnp.float32), jnp.zeros((40, 40), jnp.float32))
    basis = jax.jit(orthonormal)(words)
    x = np.asarray(basis.inverse, np.float64)
    exact = x @ fock.astype(np.float64) @ x
    found, plain = jax.jit(basis.matrix)(fock), jax.jit(similar)(fock, basis.inverse)
    error, before = (np.abs(np.asarray(m) - exact).max() for m in (found, plain))
    assert before > 3e-5 * np.abs(exact).max()
    assert error < before / 30


def test_occupation_is_data(model):
    _, vectors = np.linalg.eigh(model[1])
    run = jax.jit(density_of)
    for n in range(N + 1):
        density = run(jnp.asarray(vectors), jnp.int32(n))
        assert float(jnp.trace(density)) == pytest.approx(2 * n)


@pytest.mark.parametrize(
    ("dtype", "disturbance", "bound"), [(np.float32, 1e-4, 1e-6), (np.float64, 1e-8, 1e-14)]
)
def test_reorthonormalise(dtype, disturbance, bound):
    rng = np.random.default_rng(0)
    overlap = np.eye(5) + 0.05 * rng.normal(size=(5, 5))
    overlap = overlap @ overlap.T
    values, vectors = np.linalg.eigh(overlap)
    exact = vectors / np.sqrt(values)
    # An overlap in two words: the low one counts.
    words = Pair(jnp.asarray(overlap - 1e-3, dtype), jnp.full((5, 5), 1e-3, dtype))
    wrong = exact + disturbance * rng.normal(size=(5, 5))
    found = np.float64(reorthonormalise(jnp.asarray(wrong, dtype), words))
    np.testing.assert_allclose(found.T @ overlap @ found, np.eye(5), atol=bound)


def test_purified_has_whole_occupations(model):
    overlap, core = model
    basis = orthonormal(Pair(jnp.asarray(overlap), jnp.zeros((N, N))))
    _, vectors = np.linalg.eigh(core)
    exact = density_of(basis.inverse @ vectors, jnp.int32(2))
    noise = 1e-5 * np.random.default_rng(1).normal(size=(N, N))
    found = purified(exact + noise + noise.T, jnp.asarray(overlap))
    np.testing.assert_allclose(found @ overlap @ found, 2 * found, atol=1e-14)
    assert float(jnp.sum(found * overlap)) == pytest.approx(4, abs=1e-12)
    assert 1e-7 < float(jnp.max(jnp.abs(found - exact))) < 1e-4

"""Densities as columns: as many as there are electron pairs, and of changes, too."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.numerics.columns import columns_of_change, columns_of_density


def whole(columns):
    vectors, signs = np.asarray(columns.vectors), np.asarray(columns.signs)
    return (vectors * signs) @ vectors.T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_density_has_a_column_per_pair_of_electrons(dtype):
    rng = np.random.default_rng(3)
    orbitals = np.linalg.qr(rng.normal(size=(37, 37)))[0][:, :9]
    density = (2 * orbitals @ orbitals.T).astype(dtype)
    with jax.enable_x64(dtype == np.float64):
        found = jax.jit(columns_of_density)(jnp.asarray(density))
    count = int(found.count)
    assert 9 <= count <= 12  # one or the other is rounding
    assert found.vectors.dtype == dtype
    assert not np.asarray(found.vectors)[:, count:].any()
    np.testing.assert_allclose(whole(found), density, rtol=0, atol=40 * np.finfo(dtype).eps)


def test_empty_functions_have_none():
    density = np.zeros((20, 20), np.float32)
    density[:3, :3] = np.eye(3)
    found = jax.jit(columns_of_density)(density)
    assert int(found.count) == 3
    np.testing.assert_array_equal(whole(found), density)


def test_a_change_may_have_any_sign():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 18, 2)).astype(np.float32)
    change = a @ b.T + b @ a.T
    found = jax.jit(columns_of_change)(change)
    assert 4 <= int(found.count) <= 8
    assert sorted(np.asarray(found.signs)[:4]) == [-1, -1, 1, 1]
    np.testing.assert_allclose(whole(found), change, rtol=0, atol=1e-5)

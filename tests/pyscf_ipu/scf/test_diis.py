"""DIIS: exact where Pulay's equations are, and stable where float32 would break them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.scf.diis import diis_start, diis_step

N = 4


def pulay(errors, focks):
    """Textbook DIIS in float64: minimise |sum c_i e_i| under sum c_i = 1."""
    m = len(errors)
    b = np.ones((m + 1, m + 1))
    b[:m, :m] = [[np.vdot(x, y) for y in errors] for x in errors]
    b[m, m] = 0.0
    scale = np.trace(b[:m, :m])
    b[:m, :m] /= scale
    c = np.linalg.solve(b, np.r_[np.zeros(m), 1.0])[:m]
    return np.tensordot(c, focks, 1)


def history(errors, focks, dtype, depth=8, lasting=True):
    with jax.enable_x64(dtype == np.float64):
        state = diis_start(depth, N, dtype)
        step = jax.jit(diis_step)
        for cycle, (e, f) in enumerate(zip(errors, focks, strict=True)):
            last = jnp.bool_(lasting or cycle > 0)
            fock, error = jnp.asarray(f, dtype), jnp.asarray(e, dtype)
            state, out = step(state, jnp.int32(cycle), fock, error, last)
            assert out.dtype == dtype
    return state, np.asarray(out, np.float64)


@pytest.fixture
def matrices():
    rng = np.random.default_rng(4)
    errors = rng.normal(size=(5, N, N))
    return errors, rng.normal(size=(5, N, N))


def test_the_first_cycle_is_plain(matrices):
    errors, focks = matrices
    _, out = history(errors[:1], focks[:1], np.float64)
    np.testing.assert_allclose(out, focks[0], rtol=1e-13)


def test_it_solves_pulay_s_equations(matrices):
    errors, focks = matrices
    _, out = history(errors, focks, np.float64)
    np.testing.assert_allclose(out, pulay(errors, focks), rtol=1e-9, atol=1e-11)


def test_the_oldest_entry_is_forgotten(matrices):
    errors, focks = matrices
    _, out = history(errors, focks, np.float64, depth=3)
    np.testing.assert_allclose(out, pulay(errors[2:], focks[2:]), rtol=1e-9, atol=1e-11)


def test_an_entry_that_does_not_last_serves_its_own_cycle_alone(matrices):
    errors, focks = matrices
    _, first = history(errors[:1], focks[:1], np.float64, lasting=False)
    np.testing.assert_allclose(first, focks[0], rtol=1e-13)
    state, out = history(errors, focks, np.float64, lasting=False)
    np.testing.assert_allclose(out, pulay(errors[1:], focks[1:]), rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(state.fock[0], focks[0])


def test_errors_over_six_decades_in_float32(matrices):
    """An SCF's errors shrink by orders of magnitude: their Gram matrix is singular in float32."""
    errors, focks = matrices
    errors = errors * 10.0 ** -np.arange(0, 10, 2)[:, None, None]
    _, out = history(errors, focks, np.float32)
    np.testing.assert_allclose(out, pulay(errors, focks), rtol=2e-3, atol=2e-3)


def test_no_error_at_all_is_no_nan(matrices):
    _, focks = matrices
    zero = np.zeros((3, N, N))
    _, out = history(zero, focks[:3], np.float32)
    assert np.all(np.isfinite(out))

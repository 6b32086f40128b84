"""Rotations of all pairs at once against LAPACK in float64."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params
from symmetric_matrices import EPS, normal, symmetric, with_spectrum

from pyscf_ipu.ipu.engine.spread.all_pairs import MAX_STEPS, all_pairs_eigh

N = 36
TILES = tuple(range(1, 200))
solver = jax.jit(partial(all_pairs_eigh, tiles=TILES))


def solve(matrix, start=None, accuracy=0.0):
    start = np.eye(len(matrix), dtype=np.float32) if start is None else start
    return solver(jnp.asarray(matrix), jnp.asarray(start), jnp.float32(accuracy))


def assert_solved(matrix, values, vectors):
    exact = np.asarray(matrix, np.float64)
    expected = np.linalg.eigvalsh(exact)
    values, vectors = np.asarray(values, np.float64), np.asarray(vectors, np.float64)
    rounding = (2 + 3 * np.sqrt(len(values))) * EPS * np.abs(expected).max()
    np.testing.assert_allclose(values, expected, rtol=0, atol=rounding)
    assert np.all(np.diff(values) >= 0)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=8 * EPS)
    np.testing.assert_allclose(exact @ vectors, vectors * values, rtol=0, atol=3 * rounding)


SPECTRA = {
    "graded": np.logspace(-6, 1, N),
    "degenerate": np.repeat([-2.0, 0.0, 1.0], N // 3),
    "pairs of close ones": np.repeat(np.linspace(-2, 2, N // 2), 2) + 1e-5 * normal(N),
    "pairs of both signs": np.r_[np.linspace(1, 2, N // 2), -np.linspace(1, 2, N // 2)],
    "core levels": np.r_[np.linspace(-10.2, -10, 5), np.linspace(-1, 2, N - 5)],
    "far from zero": 100 + normal(N),
}


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_spectra_from_a_cold_start(spectrum):
    matrix = with_spectrum(SPECTRA[spectrum])
    values, vectors, steps = solve(matrix)
    assert_solved(matrix, values, vectors)
    assert int(steps) < MAX_STEPS


@pytest.mark.parametrize("n", [1, 7])
def test_small_matrices(n):
    matrix = symmetric(n)
    values, vectors, steps = solve(matrix)
    assert_solved(matrix, values, vectors)
    assert int(steps) < 12


def test_the_accuracy_is_kept_and_costs_fewer_steps():
    matrix = symmetric(N)
    left, steps = [], []
    for accuracy in (1.0, 1e-2, 0.0):
        _, vectors, done = solve(matrix, accuracy=accuracy)
        vectors = np.asarray(vectors, np.float64)
        found = vectors.T @ matrix @ vectors
        left.append(np.abs(found - np.diag(np.diag(found))).max())
        steps.append(int(done))
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(N), atol=8 * EPS)
    assert left[0] < 1.0 / 6
    assert left[1] < 1e-2 / 6
    assert steps[0] < steps[1] < steps[2]


def test_a_warm_start_squares_the_error_in_a_step():
    matrix = with_spectrum(np.linspace(-10, 3, N))
    vectors = solve(matrix)[1]
    near = matrix + symmetric(N, scale=1e-4, seed=1)
    values, found, steps = solve(near, vectors)
    assert_solved(near, values, found)
    assert int(steps) <= 2


def test_errors_do_not_add_up_over_a_chain_of_warm_starts():
    matrix = symmetric(N)
    vectors = solve(matrix)[1]
    for k in range(10):
        matrix = matrix + symmetric(N, scale=1e-2, seed=k + 1)
        values, vectors, _ = solve(matrix, vectors)
    assert_solved(matrix, values, vectors)


def test_sweeps_do_the_work_where_rotations_come_to_no_end():
    """Twelve eigenvalues within some roundings of each other, three times."""
    matrix = with_spectrum(np.repeat([-2.0, 0.0, 1.0], N // 3) + 1e-5 * normal(N))
    values, vectors, steps = solve(matrix)
    assert int(steps) == MAX_STEPS
    assert_solved(matrix, values, vectors)


def test_not_a_number_comes_to_an_end():
    values, _, steps = solve(np.full((N, N), np.nan, np.float32))
    assert np.isnan(values).all()
    assert int(steps) <= 1


def test_a_step_is_five_products_and_three_compute_sets():
    def counted(jaxpr, name):
        own = sum(e.primitive.name == name for e in jaxpr.eqns)
        calls = (e for e in jaxpr.eqns if e.primitive.name in ("jit", "pjit"))
        return own + sum(counted(j, name) for e in calls for j in jaxprs_in_params(e.params))

    program = partial(all_pairs_eigh, accuracy=jnp.float32(0), tiles=TILES)
    jaxpr = jax.make_jaxpr(program)(symmetric(N), np.eye(N, dtype=np.float32)).jaxpr
    (loop,) = (e for e in jaxpr.eqns if e.primitive.name == "while")
    body = loop.params["body_jaxpr"].jaxpr
    assert counted(body, "dot_general") == 5
    assert counted(body, "tile_map") == 3

"""The eigensolver on tiles against LAPACK in float64, and the shape of its program."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params
from symmetric_matrices import EPS, normal, symmetric, with_spectrum

from pyscf_ipu.ipu.engine.algorithms.jacobi import MAX_SWEEPS, jacobi_eigh


@cache
def solver(**options):
    return jax.jit(partial(jacobi_eigh, **options))


def solve(matrix, start=None, **options):
    return solver(**options)(jnp.asarray(matrix), start)


def off_diagonal(matrix, vectors):
    """Largest off-diagonal element of V^T A V, in float64."""
    vectors = np.asarray(vectors, np.float64)
    found = vectors.T @ matrix.astype(np.float64) @ vectors
    return np.abs(found - np.diag(np.diag(found))).max(initial=0.0)


def assert_solved(matrix, values, vectors):
    """To a few roundings: orthogonal whatever N, while the residual grows as its root."""
    exact = np.asarray(matrix, np.float64)
    expected = np.linalg.eigvalsh(exact)
    norm = np.abs(expected).max()
    values, vectors = np.asarray(values, np.float64), np.asarray(vectors, np.float64)
    rounding = (2 + 3 * np.sqrt(len(values))) * EPS * norm
    assert np.all(np.diff(values) >= 0)
    np.testing.assert_allclose(values, expected, rtol=0, atol=rounding)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=5 * EPS)
    np.testing.assert_allclose(exact @ vectors, vectors * values, rtol=0, atol=rounding)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 37, 60])
def test_random_matrices(n):
    matrix = symmetric(n)
    values, vectors, sweeps = solve(matrix)
    assert (values.dtype, vectors.dtype, sweeps.dtype) == (jnp.float32, jnp.float32, jnp.int32)
    assert_solved(matrix, values, vectors)
    assert int(sweeps) < MAX_SWEEPS


SPECTRA = {
    "graded": np.logspace(-6, 1, 40),
    "degenerate": np.repeat([-2.0, 0.0, 1.0], 12),
    "nearly degenerate": np.repeat([-2.0, 0.0, 1.0], 12) + 1e-5 * normal(36),
    "pairs of both signs": np.r_[np.linspace(1, 2, 15), -np.linspace(1, 2, 15)],
    "core levels": np.r_[np.linspace(-10.2, -10, 5), np.linspace(-1, 2, 30)],
    "far from zero": 100 + normal(21),
}


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_spectra(spectrum):
    matrix = with_spectrum(SPECTRA[spectrum])
    values, vectors, sweeps = solve(matrix)
    assert_solved(matrix, values, vectors)
    assert int(sweeps) < MAX_SWEEPS


@pytest.mark.parametrize("diagonal", [np.zeros(5), -3.0 * np.ones(4), np.array([3.0, 1.0, 2.0])])
def test_a_diagonal_matrix_needs_no_rotation(diagonal):
    matrix = np.diag(diagonal).astype(np.float32)
    values, vectors, sweeps = solve(matrix)
    np.testing.assert_array_equal(values, np.sort(diagonal))
    np.testing.assert_array_equal(np.abs(vectors), np.eye(len(diagonal))[:, np.argsort(diagonal)])
    assert int(sweeps) == 1


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_products_neither_overflow_nor_underflow(scale):
    matrix = symmetric(9, scale)
    values, vectors, _ = solve(matrix)
    assert_solved(matrix / np.float32(scale), values / np.float32(scale), vectors)


def test_more_sweeps_leave_smaller_off_diagonal_elements():
    matrix = symmetric(24)
    left = []
    for sweeps in (4, 5, 6):
        _, vectors, done = solve(matrix, sweeps=sweeps)
        assert int(done) == sweeps
        left.append(off_diagonal(matrix, vectors))
    assert left[0] > 10 * left[1] > 100 * left[2]


@pytest.mark.parametrize("tolerance", [1.0, 1e-1, 1e-2, 1e-3])
def test_the_tolerance_is_kept(tolerance):
    matrix = symmetric(40)
    _, vectors, sweeps = solve(matrix, tolerance=tolerance)
    assert off_diagonal(matrix, vectors) < tolerance
    assert int(sweeps) <= int(solve(matrix)[2])
    cosines = np.asarray(vectors.T @ vectors)
    np.testing.assert_allclose(cosines, np.eye(40), atol=10 * EPS + (0.1 * tolerance) ** 2)


def test_the_tolerance_may_be_computed():
    matrix = jnp.asarray(symmetric(12))
    solved = jax.jit(lambda a, x: jacobi_eigh(a, tolerance=x))
    loose, tight = (int(solved(matrix, jnp.float32(x))[2]) for x in (1e-1, 1e-6))
    assert loose < tight


def test_a_warm_start_takes_fewer_sweeps():
    matrix = symmetric(40)
    _, vectors, cold = solve(matrix)
    near = matrix + symmetric(40, 1e-3, seed=1)
    values, found, warm = solve(near, vectors)
    assert_solved(near, values, found)
    assert int(warm) <= int(cold) - 2
    assert int(solve(matrix, vectors)[2]) == 1


def test_errors_do_not_add_up_over_a_chain_of_warm_starts():
    matrix = symmetric(20)
    vectors = solve(matrix)[1]
    for k in range(10):
        matrix = matrix + symmetric(20, 1e-2, seed=k + 1)
        values, vectors, _ = solve(matrix, vectors)
    assert_solved(matrix, values, vectors)


def equations(jaxpr):
    for equation in jaxpr.eqns:
        yield equation
        for inner in jaxprs_in_params(equation.params):
            if equation.primitive.name != "tile_map":
                yield from equations(inner)


@pytest.mark.parametrize("options", [{}, {"sweeps": 3}])
def test_a_round_is_two_compute_sets_and_the_only_place_of_tile_map(options):
    jaxpr = jax.make_jaxpr(partial(jacobi_eigh, **options))(symmetric(9)).jaxpr
    names = [e.params["name"] for e in equations(jaxpr) if e.primitive.name == "tile_map"]
    assert names == ["jacobi_rotations", "jacobi_update"]
    (rounds,) = [
        e
        for e in equations(jaxpr)
        if e.primitive.name == "scan"
        and any(x.primitive.name == "tile_map" for x in e.params["jaxpr"].jaxpr.eqns)
    ]
    assert rounds.params["length"] == 9  # 10 columns with the padded one
    assert sum(e.primitive.name == "tile_map" for e in rounds.params["jaxpr"].jaxpr.eqns) == 2


def test_six_workers_on_each_of_the_given_tiles():
    jaxpr = jax.make_jaxpr(partial(jacobi_eigh, tiles=(7, 5, 9)))(symmetric(4)).jaxpr
    for equation in equations(jaxpr):
        if equation.primitive.name == "tile_map":
            assert equation.params["tiles"] == (7,) * 6 + (5,) * 6
            assert all(v.aval.dtype == jnp.float32 for v in equation.invars)


def test_batches():
    matrices = np.stack([symmetric(7), np.eye(7, dtype=np.float32), symmetric(7, 1e-3)])
    values, vectors, sweeps = jax.jit(jax.vmap(jacobi_eigh))(jnp.asarray(matrices))
    for b, matrix in enumerate(matrices):
        assert_solved(matrix, values[b], vectors[b])
    alone = [int(solve(m)[2]) for m in matrices]
    np.testing.assert_array_equal(sweeps, alone)


def test_not_a_number_ends_the_sweeps():
    values, _, sweeps = solve(np.full((4, 4), np.nan, np.float32))
    assert np.isnan(values).all()
    assert int(sweeps) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"matrix": np.zeros((2, 3), np.float32)}, "square"),
        ({"matrix": np.zeros((0, 0), np.float32)}, "square"),
        ({"start": np.eye(3, dtype=np.float32)}, "shape and dtype"),
        ({"start": np.eye(4, dtype=np.float16)}, "shape and dtype"),
        ({"tiles": (1,)}, "need 2 tiles"),
        ({"sweeps": 2, "tolerance": 0.1}, "not both"),
    ],
)
def test_errors_say_what_is_needed(options, words):
    options = {"matrix": np.eye(4, dtype=np.float32)} | options
    arrays = {k: jnp.asarray(v) for k, v in options.items() if isinstance(v, np.ndarray)}
    with pytest.raises(ValueError, match=words):
        jacobi_eigh(**(options | arrays))

"""Hermite Coulomb integrals against the recursion as it stands in the book."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.numerics.boys import boys_reference
from pyscf_ipu.numerics.hermite import (
    hermite_coulomb,
    hermite_powers,
    hermite_sign,
    n_hermite,
    product_index,
)

LANES = 16


@pytest.fixture
def arguments():
    """alpha, prefactor and r [3] of some lanes; the last lane is r = 0."""
    rng = np.random.default_rng(3)
    alpha = 10 ** rng.uniform(-1, 1.5, LANES)
    r = rng.normal(size=(3, LANES)) * 2
    r[:, -1] = 0.0
    return alpha, rng.uniform(0.5, 2.0, LANES), r


def book_recursion(alpha, r, power):
    """R_tuv of one point: Helgaker, Jorgensen, Olsen, eq. 9.9.18-20, without any reordering."""

    @functools.cache
    def value(n, t, u, v):
        if min(t, u, v) < 0:
            return 0.0
        for axis, count in enumerate((t, u, v)):
            if count:
                down = [t, u, v]
                down[axis] -= 1
                lower = list(down)
                lower[axis] -= 1
                return r[axis] * value(n + 1, *down) + (count - 1) * value(n + 1, *lower)
        return (-2 * alpha) ** n * float(boys_reference(n, np.array(alpha * (r @ r))))

    return value(0, *power)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 4, 6])
def test_coulomb_is_the_book_recursion(order, arguments):
    alpha, prefactor, r = arguments
    expected = np.array(
        [
            [prefactor[k] * book_recursion(alpha[k], r[:, k], h) for k in range(LANES)]
            for h in hermite_powers(order)
        ]
    )
    with jax.enable_x64(True):
        found = jax.jit(lambda a, c, x, y, z: hermite_coulomb(order, a, c, [x, y, z]))(
            jnp.asarray(alpha), jnp.asarray(prefactor), *(jnp.asarray(x) for x in r)
        )
    scale = np.abs(expected).max(axis=0)
    assert found.shape == (n_hermite(order), LANES)
    assert np.max(np.abs(np.asarray(found) - expected) / scale) < 1e-12


def test_float32_has_no_bias(arguments):
    rng = np.random.default_rng(5)
    n = 4000
    alpha, prefactor = 10 ** rng.uniform(-1, 1, n), np.ones(n)
    r = rng.normal(size=(3, n)) * 2
    inputs = [x.astype(np.float32) for x in (alpha, prefactor, *r)]

    def table(dtype):
        with jax.enable_x64(dtype == np.float64):
            a, c, x, y, z = (jnp.asarray(x, dtype) for x in inputs)
            return np.asarray(jax.jit(lambda *r: hermite_coulomb(4, a, c, list(r)))(x, y, z))

    exact, single = table(np.float64), table(np.float32)
    error = (single - exact) / np.abs(exact).max(axis=0)
    assert np.max(np.abs(error)) < 5e-6
    assert np.max(np.abs(error.mean(axis=1))) < 8e-8


@pytest.mark.parametrize("order", range(5))
def test_powers_are_counted_and_ordered_by_degree(order):
    powers = hermite_powers(order)
    assert len(powers) == len(set(powers)) == n_hermite(order)
    degrees = [sum(h) for h in powers]
    assert degrees == sorted(degrees)
    np.testing.assert_array_equal(hermite_sign(order), [(-1) ** d for d in degrees])


def test_product_index_finds_the_sum_of_two_powers():
    rows = product_index(2, 3)
    for i, a in enumerate(hermite_powers(2)):
        for j, b in enumerate(hermite_powers(3)):
            assert hermite_powers(5)[rows[i, j]] == tuple(np.add(a, b))

"""The Boys function: against quadrature, over all arguments, without a bias."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyscf_ipu.numerics.boys import boys, boys_reference

ORDERS = range(9)
DTYPES = [np.float32, np.float64]


def tolerance(order, dtype):
    """Relative error allowed: the highest order is a product of 2 order + 1 roots.

    The largest error over 600,000 arguments is 31.3 eps in float32, at order 8.
    """
    if dtype == np.float64:
        return 1e-13
    return (6 + 3.5 * order) * float(np.finfo(np.float32).eps)


def quadrature(order, t):
    """F_order(t) from its definition, by Gauss-Legendre over the part that matters."""
    nodes, weights = np.polynomial.legendre.leggauss(160)
    upper = np.minimum(1.0, 8.0 / np.sqrt(np.maximum(t, 1e-300)))
    u = 0.5 * upper[:, None] * (nodes + 1.0)
    values = u ** (2 * order) * np.exp(-t[:, None] * u * u)
    return 0.5 * upper * (values @ weights)


@functools.partial(jax.jit, static_argnums=0)
def compiled(order, t):
    return boys(order, t)


def evaluate(order, t, dtype):
    """All orders up to `order` as float64 arrays, at exactly the argument that the dtype holds."""
    with jax.enable_x64(dtype == np.float64):
        values = compiled(order, jnp.asarray(t, dtype))
        assert all(v.dtype == dtype for v in values)
    return [np.asarray(v, np.float64) for v in values]


@pytest.mark.parametrize("order", ORDERS)
def test_reference_is_the_integral(order):
    t = np.concatenate([[0.0], np.logspace(-12, 6, 400), np.linspace(30.0, 40.0, 50)])
    np.testing.assert_allclose(boys_reference(order, t), quadrature(order, t), rtol=2e-13, atol=0)


ARGUMENTS = st.lists(
    st.one_of(st.floats(0.0, 60.0), st.floats(-12.0, 6.0).map(lambda x: 10.0**x)),
    min_size=64,
    max_size=64,
)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=15)
@given(arguments=ARGUMENTS)
def test_every_order_at_any_argument(order, dtype, arguments):
    t = np.array([0.0, 1e6, *arguments]).astype(dtype)
    smallest = float(np.finfo(dtype).tiny)  # below it, float32 has no full precision to offer
    for n, values in enumerate(evaluate(order, t, dtype)):
        expected = boys_reference(n, t.astype(np.float64))
        np.testing.assert_allclose(values, expected, rtol=tolerance(order, dtype), atol=smallest)


@pytest.mark.parametrize("order", [2, 4])
def test_float32_errors_have_no_bias(order):
    """Errors of one sign would add up over the integrals of a large molecule."""
    t = np.concatenate([np.linspace(0.0, 60.0, 3001), np.logspace(-6, 4, 3001)]).astype(np.float32)
    for n, values in enumerate(evaluate(order, t, np.float32)):
        expected = boys_reference(n, t.astype(np.float64))
        seen = expected > 1e-30
        error = (values[seen] / expected[seen] - 1.0) / np.finfo(np.float32).eps
        assert abs(np.mean(error)) < 0.6
        assert np.sqrt(np.mean(error**2)) < 4.0

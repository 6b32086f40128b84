"""Two-float arithmetic must be exact, and stay so when XLA compiles it."""

import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import OPTIMISED

from pyscf_ipu.numerics.precision import PRECISIONS
from pyscf_ipu.numerics.two_words import (
    Pair,
    add,
    compensated_dot,
    compensated_sum,
    difference,
    split,
    to_float64,
    two_product,
    two_sum,
    wide_factor,
    wide_sum,
    wide_terms,
)

DTYPES = [np.float32, np.float64]
MODERATE = st.floats(-1e6, 1e6, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-6)
VECTOR = st.lists(MODERATE, min_size=16, max_size=16)

compiled = functools.partial(jax.jit, compiler_options=OPTIMISED)
sum_compiled = compiled(two_sum)
product_compiled = compiled(two_product)
dot_compiled = compiled(compensated_dot)


def words(pair):
    """Both words of every element as exact fractions, added up."""
    hi, lo = (np.asarray(w).ravel().tolist() for w in pair)
    return [Fraction(h) + Fraction(l) for h, l in zip(hi, lo, strict=True)]


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=40)
@given(a=VECTOR, b=VECTOR)
def test_two_sum_and_two_product_are_exact_under_jit(dtype, a, b):
    a, b = np.array(a, dtype), np.array(b, dtype)
    with jax.enable_x64(dtype == np.float64):
        x, y = jnp.asarray(a), jnp.asarray(b)
        total, product = sum_compiled(x, y), product_compiled(x, y)
        np.testing.assert_array_equal(total.hi, a + b)
        np.testing.assert_array_equal(product.hi, a * b)
    left, right = map(Fraction, a.tolist()), map(Fraction, b.tolist())
    pairs = list(zip(left, right, strict=True))
    assert words(total) == [p + q for p, q in pairs]
    assert words(product) == [p * q for p, q in pairs]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_compensated_dot_of_an_ill_conditioned_sum(dtype, n):
    """The terms cancel to a small part of their size: one word alone would lose everything."""
    rng = np.random.default_rng(n)
    a = rng.normal(size=n) * 10 ** rng.uniform(-3, 3, n)
    b = rng.normal(size=n)
    a, b = np.concatenate([a, a]).astype(dtype), np.concatenate([b, -b]).astype(dtype)
    b[0] += dtype(2.0**-12) * b[0]
    with jax.enable_x64(dtype == np.float64):
        found = words(dot_compiled(jnp.asarray(a), jnp.asarray(b)))[0]
    terms = [Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    size = float(sum(map(abs, terms)))
    # Twice the working precision, and a few units of it lost on the way.
    assert (
        abs(float(found - sum(terms))) < 8 * math.log2(2 * n + 1) * np.finfo(dtype).eps ** 2 * size
    )


def test_compensated_sum_against_fsum():
    rng = np.random.default_rng(0)
    values = (rng.normal(size=999) * 10 ** rng.uniform(-6, 6, 999)).astype(np.float32)
    pair = compiled(compensated_sum)(Pair(jnp.asarray(values), jnp.zeros(999, jnp.float32)))
    exact = math.fsum(values.tolist())
    assert abs(float(words(pair)[0]) - exact) < 1e-12 * np.abs(values).sum()
    assert abs(float(jnp.sum(jnp.asarray(values))) - exact) > 1e-10 * np.abs(values).sum()


@given(st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=1, max_size=20))
def test_a_float64_survives_the_journey_in_float32_words(values):
    values = np.array(values)
    pair = split(values, np.float32)
    assert pair.hi.dtype == pair.lo.dtype == np.float32
    # The low word rounds away what lies 2^-48 below the value, or below the smallest float32.
    assert np.all(np.abs(to_float64(pair) - values) <= np.abs(values) * 2.0**-48 + 1e-38)
    whole = split(values, np.float64)
    np.testing.assert_array_equal(whole.hi, values)
    assert not whole.lo.any()


def test_astype_recovers_float64_inside_a_program():
    values = np.array([1 / 3, np.pi, -1e-3 / 7])
    pair = split(values, np.float32)
    with jax.enable_x64(True):
        wide = compiled(lambda p: p.astype(np.float64))(pair)
        assert wide.dtype == np.float64
        np.testing.assert_allclose(wide.value(), values, rtol=2.0**-48)
    assert pair.astype(np.float32) is pair


def test_difference_of_neighbours_loses_nothing():
    a, b = 1000.0 + 1 / 3, 1000.0 + 1 / 3 + 1e-4
    found = compiled(difference)(split(np.array(b), np.float32), split(np.array(a), np.float32))
    assert float(found) == pytest.approx(1e-4, rel=2e-6)
    assert abs(float(np.float32(b) - np.float32(a)) - 1e-4) > 1e-6  # what plain float32 gives


def test_add_keeps_the_low_words():
    one = split(np.array(1 / 3), np.float32)
    big = split(np.array(4096 + 1 / 7), np.float32)
    total = compiled(add)(big, one)
    assert float(words(total)[0]) == pytest.approx(4096 + 1 / 7 + 1 / 3, rel=1e-13)


def test_index_takes_both_words():
    pair = split(np.array([[1 / 3], [2 / 3]]), np.float32).at(1)
    np.testing.assert_allclose(to_float64(pair), [2 / 3], rtol=1e-14)


def test_policies():
    assert set(PRECISIONS) == {"float32", "mixed", "float64"}
    assert PRECISIONS["float32"].energy_dtype == np.float32
    assert [p.refines for p in PRECISIONS.values()] == [p == "mixed" for p in PRECISIONS]
    for name, precision in PRECISIONS.items():
        with precision.scope():
            assert jax.config.jax_enable_x64 == (name != "float32")
    assert not jax.config.jax_enable_x64


def wide_product(a, b):
    terms = wide_terms(wide_factor(a, 1), wide_factor(b, 0))
    return wide_sum(*(jnp.matmul(x, y, precision="highest") for x, y in terms))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 7, 64, 200])
def test_wide_product(dtype, n):
    """Rows and columns of very different sizes, and one of zeros, against integers of Python."""
    rng = np.random.default_rng(n)
    sizes = 2.0 ** rng.integers(-12, 12, n)
    with jax.enable_x64(dtype == np.float64):
        a = (rng.normal(size=(n, n)) * sizes[:, None]).astype(dtype)
        b = (rng.normal(size=(n, n)) * sizes).astype(dtype)
        a[n // 2], b[:, n // 3] = 0, 0
        found = words(compiled(wide_product)(a, b))
    some = rng.integers(0, n * n, 20)
    exact = [
        np.dot([*map(Fraction, a[k // n].tolist())], [*map(Fraction, b[:, k % n].tolist())])
        for k in some
    ]
    bound = np.finfo(dtype).eps / 100 * np.abs(a).max(1, keepdims=True) * np.abs(b).max(0) * n
    for k, value in zip(some, exact, strict=True):
        assert abs(found[k] - value) <= bound.ravel()[k]

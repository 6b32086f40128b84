"""Native solution of a fit, J and K from it, against their portable forms and against NumPy.

Sizes vectorise badly: AOs that fill no vector and no panel, functions that fill no block.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import NATIVE, native_and_portable

from pyscf_ipu.fitting.operators import FittedProducts, solution
from pyscf_ipu.fitting.plan_rows import times_columns, with_columns
from pyscf_ipu.fitting.repulsion import coulomb_exchange
from pyscf_ipu.numerics.columns import Columns

pytestmark = NATIVE

TOLERANCE = {np.float32: 3e-6, np.float64: 1e-13}


def packed(square):
    return square[..., *np.tril_indices(square.shape[-1])]


def symmetric(rng, *shape):
    square = rng.normal(size=shape)
    return square + np.swapaxes(square, -1, -2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "reach", "functions", "count", "signs", "coulomb"),
    [
        (70, 70, 21, 13, 1, True),
        (17, 17, 5, 7, -1, True),
        (33, 33, 6, 12, 1, False),
        (33, 33, 7, 0, 1, True),
        (101, 20, 6, 14, -1, True),
        (70, 0, 5, 3, 1, True),
    ],
    ids=["three panels", "signs", "K alone", "J alone", "pairs far apart", "empty panels"],
)
def test_coulomb_and_exchange(dtype, n, reach, functions, count, signs, coulomb):
    """AOs whose numbers are further apart than `reach` have no product, and AOs 40 to 50 none; the
    last function is zero, as behind a metric without full rank."""
    rng = np.random.default_rng(n)
    square, density = symmetric(rng, functions, n, n), symmetric(rng, n, n)
    one, other = np.indices((n, n))
    exists = np.abs(one - other) < reach
    if reach < n:
        exists[40:50], exists[:, 40:50] = False, False
    square *= exists
    square[-1] = 0.0
    present = packed(exists).astype(np.int32)
    vectors = rng.normal(size=(n, 16))
    sign = np.where(np.arange(16) % 3 == 1, signs, 1)
    doubled = packed(density) * packed(2.0 - np.eye(n))
    arrays = [x.astype(dtype) for x in (packed(square), doubled, vectors, sign)]
    used = (vectors * sign)[:, :count] @ vectors[:, :count].T
    charge = np.einsum("fab,ab->f", square, density) * coulomb
    expected = [
        charge,
        packed(np.einsum("f,fab->ab", charge, square)),
        packed(np.einsum("fac,cd,fdb->ab", square, used, square)),
    ]

    def both(b, d, vectors, signs):
        columns = Columns(vectors, signs, np.array(count, np.int32))
        products = FittedProducts(b, present, np.array(functions - 1, np.int32))
        return tuple(coulomb_exchange(products, d, columns, coulomb=coulomb))

    with jax.enable_x64(dtype == np.float64):
        native, portable, names = native_and_portable(both, *arrays)
    assert names == ["fitting_repulsion"]
    for found in (native, portable):
        for mine, right in zip(found, expected, strict=True):
            scale = max(1.0, np.abs(right).max())
            np.testing.assert_allclose(mine, right, rtol=0, atol=TOLERANCE[dtype] * scale)
            assert mine.dtype == dtype


def test_rough_exchange_is_that_of_float32():
    rng = np.random.default_rng(8)
    n, functions = 40, 6
    b = packed(symmetric(rng, functions, n, n))
    vectors, signs = rng.normal(size=(n, 16)), np.ones(16)
    columns = Columns(vectors, signs, np.array(11, np.int32))
    products = FittedProducts(b, np.ones(b.shape[1], np.int32), np.array(functions, np.int32))

    def of(density, in_float32):
        return coulomb_exchange(products, density, columns, rough=in_float32)

    with jax.enable_x64(True):
        right, rough = jax.jit(of)(b[0], False), jax.jit(of)(b[0], True)
    np.testing.assert_array_equal(rough.coulomb, right.coulomb)
    off = np.abs(rough.exchange - right.exchange).max() / np.abs(right.exchange).max()
    assert 1e-10 < off < 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_solution(dtype):
    """Among the pairs is a whole panel of zeros, which is left out, and rows in another order."""
    rng = np.random.default_rng(3)
    functions, rows = 20, 190
    factor = np.tril(rng.normal(size=(functions, functions))) + 5 * np.eye(functions)
    integrals = rng.normal(size=(rows, functions))
    pairs = rng.permutation(rows)[:171].astype(np.int32)
    integrals[pairs[64:128]] = 0.0
    with jax.enable_x64(True):
        native, portable, names = native_and_portable(
            lambda *given: solution(*given, pairs=pairs, dtype=dtype)[:2], factor, integrals
        )
    assert names == ["fitting_solution"]
    expected = np.linalg.solve(factor, integrals[pairs].T)
    for found in (native[0], portable[0]):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[dtype])
    assert not native[0][:, 64:128].any()
    for _, present in (native, portable):
        assert present.dtype == np.int32
        np.testing.assert_array_equal(present, expected.any(axis=0))


def test_a_nan_reaches_the_results():
    integrals = np.zeros((40, 3))
    integrals[7, 1] = np.nan
    pairs = np.arange(40, dtype=np.int32)
    with jax.enable_x64(True):
        found = jax.jit(partial(solution, pairs=pairs, dtype=np.float32))(np.eye(3), integrals)
    assert np.isnan(found.b[:, 7]).any()
    assert not np.isnan(found.b[:, 8:]).any()
    assert found.present.tolist() == [0] * 7 + [1] + [0] * 32


@pytest.mark.parametrize("functions", [3, 70])
@pytest.mark.parametrize("used", [1, 13, 32])
def test_columns_and_weights(functions, used):
    """More AOs than are copied at a time; `used` columns, the others zero."""
    rng = np.random.default_rng(used)
    n, width = 67, 32
    square = np.zeros((n, n), int)
    square[np.tril_indices(n)] = rng.permutation(n * (n + 1) // 2)
    rows = np.maximum(square, square.T)
    integrals = rng.normal(size=(rows.max() + 1, functions))
    c = rng.normal(size=(n, width))
    c[:, used:] = 0.0
    w = np.einsum("bi,ijf->bjf", c, symmetric(rng, functions, width, width).transpose(1, 2, 0))

    def both(integrals, c, w):
        count = jnp.asarray(used, jnp.int32)
        half = times_columns(integrals, rows, c, used=count)
        return half, with_columns(integrals, rows, c, used=count, w=w)

    with jax.enable_x64(True):
        native, portable, names = native_and_portable(both, integrals, c, w)
    assert sorted(names) == ["fitting_columns", "fitting_weights"]
    z = np.einsum("ai,bif->abf", c, w)
    added = z + z.transpose(1, 0, 2)
    added[np.arange(n), np.arange(n)] = z[np.arange(n), np.arange(n)]
    weights = integrals.copy()
    weights[rows] += added
    for half, total in (native, portable):
        np.testing.assert_allclose(half, np.einsum("abf,bi->aif", integrals[rows], c), atol=1e-11)
        np.testing.assert_allclose(total, weights, atol=1e-10)

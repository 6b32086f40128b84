"""Native solution of a fit, J and K from it, against their portable forms and against NumPy.

Sizes vectorise badly: AOs that fill no vector and no panel, functions that fill no block.
"""

from functools import partial

import jax
import numpy as np
import pytest
from oracle import NATIVE, native_and_portable

from pyscf_ipu.fitting.operators import FittedProducts, solution
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
    """AOs whose numbers are further apart than `reach` have no product, and AOs 40 to 50 none."""
    rng = np.random.default_rng(n)
    square, density = symmetric(rng, functions, n, n), symmetric(rng, n, n)
    one, other = np.indices((n, n))
    exists = np.abs(one - other) < reach
    if reach < n:
        exists[40:50], exists[:, 40:50] = False, False
    square *= exists
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
        return tuple(coulomb_exchange(FittedProducts(b, present), d, columns, coulomb))

    with jax.enable_x64(dtype == np.float64):
        native, portable, names = native_and_portable(both, *arrays)
    assert names == ["fitting_repulsion"]
    for found in (native, portable):
        for mine, right in zip(found, expected, strict=True):
            scale = max(1.0, np.abs(right).max())
            np.testing.assert_allclose(mine, right, rtol=0, atol=TOLERANCE[dtype] * scale)
            assert mine.dtype == dtype


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
            partial(solution, pairs=pairs, dtype=dtype), factor, integrals
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

"""Rows of many tables: the native codelet and its portable form against NumPy."""

import jax
import numpy as np
import pytest
from oracle import NATIVE

from pyscf_ipu.codelets.look_up import look_up
from pyscf_ipu.numerics.two_words import Pair

ROW = np.array([2, 0, 1, 1], np.int32)


def wanted(dtype):
    """Two results, of two tables and of one, with rows of one and of two axes."""
    rng = np.random.default_rng(2)
    sizes = ((3, 4), (2, 4), (3, 2, 5))
    tables = [Pair(*rng.normal(size=(2, *size)).astype(dtype)) for size in sizes]
    places = [np.array(x, np.int32) for x in ([0, 3], [1, 2, 3], [2, 0])]
    first, second, third = zip(tables, places, strict=True)
    return [[first, second], [third]]


@NATIVE
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_those_of_the_tables(dtype):
    with jax.enable_x64(dtype == np.float64):
        given = wanted(dtype)
        exact = [
            [np.concatenate([table[word][ROW[p]] for table, p in rows]) for word in (0, 1)]
            for rows in given
        ]
        native = jax.jit(lambda row: look_up(row, given))(ROW)
        portable = jax.jit(jax.vmap(lambda row: look_up(row, given)))(ROW[None])
        for want, one, other in zip(exact, native, portable, strict=True):
            np.testing.assert_array_equal(one, want)
            np.testing.assert_array_equal(np.stack(other)[:, 0], want)

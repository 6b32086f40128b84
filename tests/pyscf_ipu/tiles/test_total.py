"""Sums over everything in twofold precision, cut over tiles."""

from fractions import Fraction

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyscf_ipu.numerics.two_words import Pair, to_float64
from pyscf_ipu.tiles import tile_dot, tile_total


def exact(*columns):
    """sum of products, without rounding."""
    numbers = [map(Fraction, np.asarray(c, float).ravel().tolist()) for c in columns]
    return float(sum(a * b for a, b in zip(*numbers, strict=True)))


@settings(max_examples=20)
@given(size=st.integers(1, 300), seed=st.integers(0, 2**31))
def test_any_size(size, seed):
    rng = np.random.default_rng(seed)
    hi = (rng.normal(size=size) * 10.0 ** rng.uniform(-3, 5, size)).astype(np.float32)
    hi[1::2] = -hi[::2][: hi[1::2].size]  # what is left is far smaller than the terms
    lo = (rng.normal(size=size) * 1e-9 * np.abs(hi)).astype(np.float32)
    found = float(to_float64(tile_total(Pair(jax.numpy.asarray(hi), jax.numpy.asarray(lo)))))
    wanted = exact(hi, np.ones(size)) + exact(lo, np.ones(size))
    assert abs(found - wanted) <= 1e-12 * np.abs(hi).sum()


@pytest.mark.parametrize("shape", [(1,), (33,), (7, 11, 5), (5000,)])
def test_dot(shape):
    rng = np.random.default_rng(0)
    a, hi = (jax.numpy.asarray(rng.normal(size=shape), "float32") for _ in range(2))
    lo = jax.numpy.asarray(1e-9 * rng.normal(size=shape), "float32")
    size = np.abs(a * hi).sum()
    one = float(to_float64(tile_dot(a, hi)))
    two = float(to_float64(tile_dot(a, Pair(hi, lo))))
    assert abs(one - exact(a, hi)) <= 1e-12 * size
    assert abs(two - exact(a, hi) - exact(a, lo)) <= 1e-12 * size


def test_operands_that_are_not_alike_are_refused():
    ones = jax.numpy.ones
    with pytest.raises(ValueError, match="make them alike"):
        tile_dot(ones((4, 3)), ones((1, 3)))
    with pytest.raises(ValueError, match="make them alike"):
        tile_total(Pair(ones(4, "float32"), ones(4, "float16")))


def test_few_compute_sets():
    def sets(size):
        zeros = jax.numpy.zeros(size, "float32")
        portable = (
            jax.make_jaxpr(lambda x: tile_total(Pair(x, x)))(zeros).eqns[-1].params["portable"]
        )
        jaxpr = jax.make_jaxpr(portable)(zeros, zeros)
        return [e.params["tiles"] for e in jaxpr.eqns if e.primitive.name == "tile_map"]

    assert len(sets(20)) == 1
    long = sets(8000)
    assert len(long) == 3
    assert max(long[0]) == 400 // 6 - (400 % 6 == 0)  # six workers on a tile

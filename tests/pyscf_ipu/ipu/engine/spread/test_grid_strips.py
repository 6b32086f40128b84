"""Density and matrix in strips against those of whole matrices, and what they save."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.grid.ao_blocks import AoBlocks
from pyscf_ipu.grid.xc_matrix import PORTABLE, xc_density, xc_potential
from pyscf_ipu.ipu import BOW, memory_of
from pyscf_ipu.ipu.engine.spread.grid_strips import (
    STRIP_BYTES,
    spread_products,
    strip_rows,
    strips_density,
    strips_potential,
)

N, BLOCKS, POINTS = 130, 7, 6
random = np.random.default_rng(0)
AO = random.normal(size=(BLOCKS, 4, N, POINTS)).astype(np.float32)
FACTORS = random.normal(size=(BLOCKS, 4, POINTS)).astype(np.float32)
DENSITY = random.normal(size=(N, N)).astype(np.float32)
DENSITY = DENSITY + DENSITY.T


def test_strips_are_alike_and_cover_the_matrix():
    assert strip_rows(37) == 37
    assert strip_rows(64) == 64
    assert strip_rows(N) == 26  # five, where 31 rows would fit
    for n in (1, 65, 250, 1000):
        rows = strip_rows(n)
        assert 4 * n * rows <= STRIP_BYTES
        assert (-(-n // rows) - 1) * rows < n


@pytest.mark.parametrize(
    ("strips", "whole", "other"),
    [(strips_density, xc_density, DENSITY), (strips_potential, xc_potential, FACTORS)],
    ids=["density", "matrix"],
)
def test_the_sum_of_strips_is_the_whole(strips, whole, other):
    ao = AoBlocks(jnp.asarray(AO))
    found, expected = (jax.jit(f)(ao, jnp.asarray(other)) for f in (strips, whole))
    assert found.shape == expected.shape
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * scale)


def test_a_tile_holds_two_strips_and_not_two_matrices():
    def fullest(products):
        def run(values, density, factors):
            ao = AoBlocks(values)
            found = products.moments(ao, density, False)
            return products.matrix(ao, found * factors, density.dtype)

        memory = memory_of(run, BOW, 1, AO, DENSITY, FACTORS)
        held = memory.by_category["Variables"] + memory.by_category["Vertex Scratch"]
        return held.max()

    saved = fullest(PORTABLE) - fullest(spread_products())
    assert saved > 4 * N * (N - 2 * strip_rows(N))

import jax
import numpy as np
import pytest

from pyscf_ipu.integrals.supermatrix import (
    half_of,
    pair_order,
    repulsion,
    supermatrix_vertex,
)
from pyscf_ipu.machines.supermatrix_kernel import full_repulsion, full_supermatrix
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan

PLAN = tile_plan(shape_of([6, 8, 1, 1, 1, 1], "sto-3g", False, 0))


@pytest.fixture(scope="module")
def integrals():
    values = np.random.default_rng(0).normal(size=(PLAN.n_rows, PLAN.n_rows))
    return (values + values.T).astype(np.float32)


@pytest.mark.parametrize("exchange", [0.0, 0.2])
def test_the_whole_supermatrix(integrals, exchange):
    for own in (integrals, integrals[::-1, ::-1]):
        found = jax.jit(lambda m, k: full_supermatrix(PLAN, (m, k, exchange)))(integrals, own)
        want = jax.jit(lambda m, k: supermatrix_vertex(PLAN, m, k, exchange))(integrals, own)
        np.testing.assert_array_equal(found, want)


def test_its_product_is_that_of_the_stored_half(integrals):
    full = jax.jit(lambda m: full_supermatrix(PLAN, (m, m, 0.2)))(integrals)
    half = jax.jit(lambda m: half_of(PLAN, (m, m, 0.2)))(integrals)
    d = np.random.default_rng(1).normal(size=full.shape[0]).astype(np.float32)
    found, energy = jax.jit(full_repulsion)(full, d)
    want, wanted = jax.jit(lambda half, d: repulsion(half, d, pair_order(PLAN)))(half, d)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(energy.value(), wanted.value(), rtol=1e-5)

"""The supermatrix and its packing, from PySCF's own integrals: no vertex is involved here."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import WATER, mole_of
from pyscf import scf

from pyscf_ipu import Settings
from pyscf_ipu.integrals.supermatrix import (
    MOST_AOS,
    elements_before,
    half_of,
    pack_density,
    packed_indices,
    packed_rows,
    pair_order,
    pair_places,
    repulsion,
    rows_of,
    unpack,
)
from pyscf_ipu.shapes import conformer
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan


@pytest.fixture(scope="module")
def system():
    """Exact integrals of water in the row order of a plan without padding."""
    settings = Settings(precision="float64", basis="6-31g", grid_level=0)
    shape = shape_of(WATER.numbers, settings.basis, False, 0, pad=False)
    plan = tile_plan(shape, 1, 40)
    order = np.argsort(conformer.ao_order(WATER, shape, settings))
    mole = mole_of(WATER, settings.basis)
    eri = mole.intor("int2e")[np.ix_(order, order, order, order)]
    i, j = packed_indices(shape.n_ao)
    rows = plan.row_of[i, j]
    # Rows that no AO pair owns must not be read: they hold NaN.
    matrix = np.full((plan.n_rows, plan.n_rows), np.nan)
    matrix[rows[:, None], rows] = eri[i[:, None], j[:, None], i, j]
    return plan, matrix, mole, order


def random_density(n):
    d = np.random.default_rng(1).normal(size=(n, n))
    return d + d.T


@pytest.mark.parametrize("x", [0.0, 0.2, 1.0])
def test_one_product_is_coulomb_and_exchange(system, x):
    plan, matrix, mole, order = system
    density = random_density(mole.nao)

    def two_electron(matrix, density):
        g = half_of(plan, (matrix, matrix, x))
        d = pack_density(density)
        product, energy = repulsion(g, d, pair_order(plan))
        return rows_of(g, len(d)), unpack(product, mole.nao), energy

    with jax.enable_x64(True):
        half, fock, energy = jax.jit(two_electron)(matrix, density)
    assert not np.triu(half, 1).any()
    back = np.argsort(order)
    coulomb, exchange = scf.hf.get_jk(mole, density[np.ix_(back, back)])
    expected = (coulomb - 0.5 * x * exchange)[np.ix_(order, order)]
    np.testing.assert_allclose(fock, expected, rtol=0, atol=1e-11)
    assert float(energy.hi) + float(energy.lo) == pytest.approx(0.5 * np.vdot(density, expected))


def test_rows_are_packed_and_unpacked():
    matrix = np.random.default_rng(3).normal(size=(19, 19)).astype(np.float32)
    order = np.random.default_rng(4).permutation(19).astype(np.int32)
    packed = jax.jit(lambda x: packed_rows(x, order))(matrix)
    matrix = matrix[order][:, order]
    np.testing.assert_array_equal(packed, matrix[np.tril_indices(19)])
    np.testing.assert_array_equal(jax.jit(lambda x: rows_of(x, 19))(packed), np.tril(matrix))


def test_products_of_two_shells_are_neighbours_and_many_of_them_come_first(system):
    plan, *_ = system
    i, j = packed_indices(plan.layout.shape.n_ao)
    order, places = pair_order(plan), pair_places(plan)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(i)))
    np.testing.assert_array_equal(places, places.T)
    np.testing.assert_array_equal(places[i[order], j[order]], np.arange(len(i)))
    size, start = {}, {}
    for group in plan.layout.groups:
        for ao in group.ao:
            for f in range(group.kind.n_functions):
                size[int(ao) + f], start[int(ao) + f] = group.kind.n_functions, int(ao)
    # Pairs of one shell have fewer places than products.
    products = [
        size[a] * size[b] for a, b in zip(i[order].tolist(), j[order].tolist(), strict=True)
    ]
    assert products == sorted(products, reverse=True)
    pairs = [
        tuple(sorted((start[a], start[b])))
        for a, b in zip(i[order].tolist(), j[order].tolist(), strict=True)
    ]
    changes = sum(a != b for a, b in pairwise(pairs))
    assert changes + 1 == len(set(pairs))


def test_packing_keeps_traces():
    a, b = random_density(7), random_density(7).T ** 3
    i, j = packed_indices(7)
    with jax.enable_x64(True):
        packed = pack_density(jnp.asarray(a))
        np.testing.assert_array_equal(unpack(jnp.asarray(b[i, j]), 7), b)
    assert packed.shape == (28,)
    assert float(np.dot(packed, b[i, j])) == pytest.approx(np.vdot(a, b))


def test_energy_in_float32_has_the_digits_of_the_matrix():
    """Sums of a million terms of both signs, good to what rounding G and d to float32 leaves."""
    rng = np.random.default_rng(2)
    g = rng.normal(size=(500, 500)).astype(np.float32)
    d = rng.normal(size=500).astype(np.float32)
    g = g + g.T
    half = (g - 0.5 * np.diag(np.diag(g)))[np.tril_indices(500)]
    product, energy = jax.jit(lambda l, d: repulsion(l, d))(half, d)
    np.testing.assert_allclose(product, g.T @ d, atol=1e-4)
    exact = 0.5 * d.astype(np.float64) @ g.astype(np.float64) @ d.astype(np.float64)
    size = 0.5 * np.abs(d) @ np.abs(g) @ np.abs(d)
    assert abs(float(energy.hi) + float(energy.lo) - exact) < 2e-8 * size


def test_places_of_the_largest_half_fit_into_int32():
    pairs = MOST_AOS * (MOST_AOS + 1) // 2
    rows = jnp.asarray([0, 1, 2, 46340, 46341, 65000, pairs - 1], jnp.int32)
    found = np.asarray(elements_before(rows))
    exact = [int(row) * (int(row) + 1) // 2 for row in rows]
    np.testing.assert_array_equal(found, exact)
    assert exact[-1] + pairs < 2**31

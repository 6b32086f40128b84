"""The native codelets of the exchange-correlation matrix against their portable vertices."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import NATIVE

from pyscf_ipu.grid.ao_blocks import AoBlocks, pack
from pyscf_ipu.grid.orbital_products import ORBITALS
from pyscf_ipu.grid.xc_matrix import (
    xc_density,
    xc_density_vertex,
    xc_potential,
    xc_potential_vertex,
)
from pyscf_ipu.kohn_sham.nearby import projection
from pyscf_ipu.numerics.columns import Columns

pytestmark = NATIVE

TOLERANCE = {np.float32: 2e-6, np.float64: 1e-14}
# Blocks, AOs, points: whole vectors, remainders of both, and fewer AOs than one register block.
FEW = [(2, 59, 128), (1, 7, 1), (3, 17, 17), (1, 65, 100)]
MORE = [(2, 16, 15), (1, 90, 70), (2, 5, 192)]
SIZES = [*FEW, *(pytest.param(size, marks=pytest.mark.long) for size in MORE)]


def arrays(size, planes, dtype):
    """AO values [T, D, N, Gb], a symmetric density [N, N] and factors [T, D, Gb]."""
    tiles, n, points = size
    rng = np.random.default_rng(n)
    ao = rng.normal(size=(tiles, planes, n, points))
    density = rng.normal(size=(n, n))
    factors = rng.normal(size=(tiles, planes, points))
    return [x.astype(dtype) for x in (ao, density + density.T, factors)]


def run(function, *args):
    with jax.enable_x64(jax.tree.leaves(args)[-1].dtype == np.float64):
        return np.asarray(jax.jit(function)(*jax.tree.map(jnp.asarray, args)))


def whole(ao):
    """Values of which none is left out."""
    with jax.enable_x64(ao.dtype == np.float64):
        return AoBlocks(jnp.asarray(ao))


def check(native, exact, portable, dtype):
    """Both against the float64 result, to the same fraction of its largest element."""
    assert native.dtype == dtype
    bound = TOLERANCE[dtype] * np.max(np.abs(exact))
    assert np.max(np.abs(native - exact)) < bound
    np.testing.assert_allclose(native, portable, atol=bound)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("planes", [1, 4])
@pytest.mark.parametrize("size", SIZES)
def test_density(size, planes, dtype):
    ao, density, _ = arrays(size, planes, dtype)
    native = run(xc_density, whole(ao), density)
    exact = np.einsum("ij,tjg,tdig->tdg", *(x.astype(np.float64) for x in (density, ao[:, 0], ao)))
    exact[:, 1:] *= 2
    check(native, exact, run(jax.vmap(xc_density_vertex, (0, None)), ao, density), dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("planes", [1, 4])
@pytest.mark.parametrize("size", SIZES)
def test_potential(size, planes, dtype):
    ao, _, factors = arrays(size, planes, dtype)
    native = run(xc_potential, whole(ao), factors)
    exact = np.einsum("tig,tdg,tdjg->ij", *(x.astype(np.float64) for x in (ao[:, 0], factors, ao)))
    check(native, exact, run(jax.vmap(xc_potential_vertex), ao, factors).sum(0), dtype)


def columns(n, dtype):
    """Columns of a density with signs, the last two of which do not count; and the density."""
    rng = np.random.default_rng(n)
    width = n // 2 + 5
    vectors, signs = rng.normal(size=(n, width)), rng.choice([-1.0, 1.0], width)
    count = width - 2
    density = (vectors * signs)[:, :count] @ vectors[:, :count].T
    return Columns(vectors.astype(dtype), signs.astype(dtype), np.int32(count)), density


def native_and_portable(function, ao, other, dtype):
    """What a product of `ORBITALS` gives by its codelet, and by its portable form."""
    with jax.enable_x64(dtype == np.float64):
        given = jax.tree.map(jnp.asarray, (AoBlocks(ao), other))
        native = jax.jit(function)(*given)
        batch = jax.tree.map(lambda x: x[None], given)
        return np.asarray(native), np.asarray(jax.jit(jax.vmap(function))(*batch)[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("moments", [1, 4, 5])
@pytest.mark.parametrize("size", SIZES)
def test_moments_by_orbitals(size, moments, dtype):
    ao = arrays(size, min(moments, 4), dtype)[0]
    of, density = columns(size[1], dtype)
    both = native_and_portable(partial(ORBITALS.moments, tau=moments == 5), ao, of, dtype)
    values = ao.astype(np.float64)
    exact = np.einsum("ij,tjg,tdig->tdg", density, values[:, 0], values)
    exact[:, 1:] *= 2
    if moments == 5:
        kinetic = 0.5 * np.einsum("ij,tdjg,tdig->tg", density, values[:, 1:], values[:, 1:])
        exact = np.concatenate([exact, kinetic[:, None]], axis=1)
    check(both[0], exact, both[1], dtype)


def ao_and_factors(size, moments, dtype):
    """AO values, and factors for each of the moments [T, moments, Gb]."""
    rng = np.random.default_rng(moments)
    factors = rng.normal(size=(size[0], moments, size[2])).astype(dtype)
    return arrays(size, min(moments, 4), dtype)[0], factors


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("moments", [1, 4, 5])
@pytest.mark.parametrize("size", [*SIZES, (2, 150, 64)])
def test_matrix_by_orbitals(size, moments, dtype):
    ao, factors = ao_and_factors(size, moments, dtype)
    both = native_and_portable(partial(ORBITALS.matrix, dtype=dtype), ao, factors, dtype)
    exact = matrix(ao, factors)
    check(both[0], exact, both[1], dtype)


def matrix(ao, factors):
    """The matrix in float64."""
    values, factors = ao.astype(np.float64), factors.astype(np.float64)
    planes = values.shape[1]
    half = np.einsum("tig,tdg,tdjg->ij", values[:, 0], factors[:, :planes], values)
    if factors.shape[1] > planes:
        half += np.einsum("tdig,tg,tdjg->ij", values[:, 1:], factors[:, 4], values[:, 1:])
    return half + half.T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("moments", [1, 4, 5])
@pytest.mark.parametrize("size", [*SIZES, (2, 150, 64)])
def test_products_of_the_matrix_with_columns(size, moments, dtype):
    ao, factors = ao_and_factors(size, moments, dtype)
    n, rng = size[1], np.random.default_rng(moments + 10)
    count = min(n, n // 3 + 1)
    vectors = rng.normal(size=(n, n + 3)).astype(dtype)
    few = Columns(vectors, np.ones(n + 3, dtype), np.int32(count))
    with jax.enable_x64(True):
        given = jax.tree.map(jnp.asarray, (AoBlocks(ao), factors, few))
        native = np.asarray(jax.jit(projection)(*given))
        batch = jax.tree.map(lambda x: x[None], given)
        portable = np.asarray(jax.jit(jax.vmap(projection))(*batch)[0])
    exact = np.pad(matrix(ao, factors) @ vectors[:, :count], ((0, 0), (0, n - count)))
    bound = TOLERANCE[dtype] * np.max(np.abs(exact))
    assert native.dtype == np.float64
    assert np.max(np.abs(native - exact)) < bound
    np.testing.assert_allclose(native, portable, atol=bound)


def test_sums_in_float64_lose_nothing_more():
    # Equal chunks, whose sum in float32 would round at every step.
    ao = np.repeat(arrays((1, 20, 64), 4, np.float32)[0], 3000, axis=0)
    factors = np.repeat(np.float32(np.random.default_rng(1).random((1, 5, 64))), 3000, axis=0)
    with jax.enable_x64(True):
        given = AoBlocks(jnp.asarray(ao)), jnp.asarray(factors)
        wide = np.asarray(jax.jit(partial(ORBITALS.matrix, dtype=np.float64))(*given))
    assert wide.dtype == np.float64
    exact = 3000 * matrix(ao[:1], factors[:1])
    narrow, _ = native_and_portable(
        partial(ORBITALS.matrix, dtype=np.float32), ao, factors, np.float32
    )
    assert np.abs(wide - exact).max() < 0.5 * np.abs(narrow - exact).max()


def by_orbitals(ao, of):
    return ORBITALS.moments(ao, of, True)


def matrix_by_orbitals(ao, factors):
    return ORBITALS.matrix(ao, factors, factors.dtype)


PRODUCTS = [xc_density, xc_potential, by_orbitals, matrix_by_orbitals]


def packed(size, dtype):
    """AO values of which 60 % vanish block by block: all of them, and those that do not; and what
    each of PRODUCTS multiplies them by."""
    ao, density, factors = arrays(size, 4, dtype)
    live = np.random.default_rng(3).random((ao.shape[0], ao.shape[2])) < 0.4
    live[0] = False  # nothing at all
    live[-1] = True
    ao = ao * live[:, None, :, None]
    with jax.enable_x64(dtype == np.float64):
        known = pack(jnp.asarray(ao), jnp.asarray(live))
    more = np.concatenate([factors, factors[:, :1]], axis=1)
    return whole(ao), known, (density, factors, columns(ao.shape[2], dtype)[0], more)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [(3, 59, 64), (40, 90, 64), (2, 7, 64), (4, 40, 50)])
def test_aos_that_vanish_are_left_out(size, dtype):
    every, known, others = packed(size, dtype)

    def products(ao, others):
        return [product(ao, by) for product, by in zip(PRODUCTS, others, strict=True)]

    with jax.enable_x64(dtype == np.float64):
        both = [jax.jit(products)(ao, others) for ao in (known, every)]
    for found, expected in zip(*both, strict=True):
        bound = TOLERANCE[dtype] * np.max(np.abs(expected))
        np.testing.assert_allclose(found, expected, atol=bound, rtol=0)


def test_values_that_mean_nothing_are_not_read():
    every, known, others = packed((3, 20, 64), np.float32)
    rows = jnp.arange(20) < known.packed.count[:, None]
    known = known._replace(values=jnp.where(rows[:, None, :, None], known.values, jnp.nan))
    for product, by in zip(PRODUCTS, others, strict=True):
        expected = run(product, every, by)
        close = {"atol": 2e-6 * np.max(np.abs(expected)), "rtol": 0}
        np.testing.assert_allclose(run(product, known, by), expected, **close)
        one = jax.tree.map(lambda x: x[None], by)
        portable = run(jax.vmap(product, (None, 0)), known, one)[0]
        np.testing.assert_allclose(portable, expected, **close)


def test_sums_over_many_points_keep_their_digits():
    size = 17, 8, 1088
    ao, _, factors = arrays(size, 1, np.float32)
    ao, factors = np.abs(ao), np.abs(factors)
    native = run(xc_potential, whole(ao), factors)
    exact = np.einsum(
        "tig,tg,tjg->ij", *(x.astype(np.float64) for x in (ao[:, 0], factors[:, 0], ao[:, 0]))
    )
    assert np.max(np.abs(native - exact) / exact) < 5e-7


def test_a_batch_and_a_derivative_take_the_portable_vertex():
    ao, density, factors = arrays((2, 9, 20), 4, np.float32)
    batch = np.stack([density, 2 * density])
    found = run(jax.vmap(xc_density, (None, 0)), whole(ao), batch)
    np.testing.assert_allclose(found[1], 2 * found[0], rtol=1e-6)

    def energy(density):
        return jnp.sum(xc_density(whole(ao), density) * factors)

    slope = np.asarray(jax.jit(jax.grad(energy))(jnp.asarray(density)))
    matrix = run(xc_potential, whole(ao), factors * np.array([1, 2, 2, 2], np.float32)[:, None])
    np.testing.assert_allclose(slope, matrix.T, rtol=1e-4, atol=1e-4)

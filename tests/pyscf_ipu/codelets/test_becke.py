"""The native codelets "becke_weights" and "becke_gradient" against their portable forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import NATIVE

from pyscf_ipu.elements.atomic_grid import bragg_adjust
from pyscf_ipu.gradient.points.weights import weights_gradient, weights_gradient_of_slots
from pyscf_ipu.grid.becke import Cells, becke_weights, becke_weights_on_tiles
from pyscf_ipu.numerics.two_words import Pair

pytestmark = NATIVE

NUMBERS = np.array([8, 0, 6, 1, 0, 1, 17])


def problem(n_points, dtype, seed=0):
    """Slots 0, 1 (empty), 3 and 6 of a molecule whose empty slots lie on real atoms."""
    rng = np.random.default_rng(seed)
    owner = np.array([0, 1, 3, 6])
    centres = rng.normal(size=(len(NUMBERS), 3)) * 2
    centres[1], centres[4] = centres[0], centres[0]
    high = centres.astype(dtype)
    radius = 10 ** rng.uniform(-2, 1, (len(owner), n_points, 1))
    points = rng.normal(size=(len(owner), n_points, 3)) * radius
    volumes = rng.uniform(size=(len(owner), n_points))
    volumes[:, 1::4] = 0
    floats = (points, volumes, high, centres - high, bragg_adjust(NUMBERS))
    return owner, [np.asarray(x, dtype) for x in floats]


def both(owner, points, volumes, high, low, radius):
    """Native and portable weights in the dtype of the arrays."""
    mask = jnp.asarray(NUMBERS > 0)

    def native(points, volumes, high, low, radius):
        return becke_weights(points, volumes, owner, Cells(Pair(high, low), radius, mask))

    def portable(points, volumes, high, low, radius):
        index = jnp.asarray(owner, np.int32)
        return becke_weights_on_tiles(
            tuple(range(len(points))), points, volumes, index, high, low, radius, mask
        )

    with jax.enable_x64(points.dtype == np.float64):
        arrays = [jnp.asarray(x) for x in (points, volumes, high, low, radius)]
        return [np.asarray(jax.jit(f)(*arrays)) for f in (native, portable)]


@pytest.mark.parametrize("n_points", [1, 15, 17, 100])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-6), (np.float64, 1e-14)])
def test_native_is_portable(n_points, dtype, tolerance):
    owner, arrays = problem(n_points, dtype)
    native, portable = both(owner, *arrays)
    assert native.dtype == dtype
    np.testing.assert_allclose(native, portable, atol=tolerance, rtol=0)
    assert not native[1].any()
    assert not native[arrays[1] == 0].any()


def test_small_cells_keep_their_digits():
    owner, arrays = problem(400, np.float32, seed=1)
    native, _ = both(owner, *arrays)
    _, exact = both(owner, *(x.astype(np.float64) for x in arrays))
    kept = exact > 1e-20
    error = np.abs(native - exact)[kept] / exact[kept]
    assert np.median(error) < 5e-7
    assert np.max(error) < 1e-3


def test_points_where_every_cell_underflows_have_no_weight():
    owner, arrays = problem(17, np.float32)
    arrays[0][:] = 1e30
    native, _ = both(owner, *arrays)
    assert not native.any()


def test_atoms_in_one_place_share_it():
    owner, arrays = problem(17, np.float64)
    arrays[2][3], arrays[3][3] = arrays[2][0], arrays[3][0]
    native, portable = both(owner, *arrays)
    np.testing.assert_allclose(native, portable, atol=1e-14)


@pytest.mark.parametrize("n_points", [1, 17, 100])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-13)])
def test_native_and_portable_derivatives(n_points, dtype, tolerance):
    """With a nucleus in the place of another one, and a point on a nucleus."""
    owner, (points, by_volume, high, low, radius) = problem(n_points, dtype, seed=2)
    high[5], low[5] = high[0], low[0]
    points[2, 0] = 0.0
    arrays = (points, by_volume * np.sign(points[..., 0]), high, low, radius)
    mask = jnp.asarray(NUMBERS > 0)

    def native(points, by_volume, *atoms):
        return weights_gradient(points, by_volume, owner, Cells(Pair(*atoms[:2]), atoms[2], mask))

    def portable(points, by_volume, *atoms):
        index = jnp.asarray(owner, np.int32)
        return weights_gradient_of_slots(points, by_volume, index, *atoms, mask)

    with jax.enable_x64(dtype == np.float64):
        given = [jnp.asarray(x) for x in arrays]
        found, expected = (np.asarray(jax.jit(f)(*given)) for f in (native, portable))
    scale = np.abs(expected).max()
    assert scale > 0
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)
    np.testing.assert_allclose(found.sum(0), 0, atol=tolerance * scale)

"""VV10's pairs of points: native and portable, energies, matrices and forces against PySCF."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import NATIVE, mole_of
from pyscf.dft import numint
from pyscf.grad import rks as rks_gradients

import pyscf_ipu as pi
from pyscf_ipu.grid.nonlocal_correlation import _pairs_row, _slopes_row, pair_gradient, pair_sums
from pyscf_ipu.ipu.engine.command import profile_rks
from pyscf_ipu.xc.registry import functional
from pyscf_ipu.xc.semilocal.vv10 import VV10, energy_and_potential, point_pairs

PARAMETERS = VV10(6.0, 0.01)
WATER = pi.Molecule.from_smiles("O", seed=1)
NAMES = ("wb97x-v", "b97m-v", "wb97m-v")


def some_points(count, seed=0):
    """Points of a cloud with densities of eight powers of ten, some of which are left out."""
    rng = np.random.default_rng(seed)
    rho = 10 ** rng.uniform(-9, 1, count)
    sigma = (rho ** (4 / 3) * rng.uniform(0, 6, count)) ** 2
    weights = rng.uniform(0.1, 1, count)
    weights[::7] = 0
    return rng.normal(size=(count, 3)) * 3, rho, sigma, weights


def prepared(count, dtype=jnp.float64):
    points, *fields = some_points(count)
    return jnp.asarray(points, dtype), point_pairs(
        PARAMETERS, *(jnp.asarray(x, dtype) for x in fields)
    )


@NATIVE
@pytest.mark.parametrize("count", [1, 15, 513, 2100])
@pytest.mark.parametrize("gradient", [False, True])
def test_native_is_portable(count, gradient):
    """Pairs are computed in float32 by the codelet, and in float64 by the portable form."""
    with jax.enable_x64(True):
        points, pairs = prepared(count)
        row = _slopes_row if gradient else _pairs_row
        every = jax.vmap(lambda i: jnp.stack(row(points[i] - points, i, pairs)))
        rows = jax.jit(every)(jnp.arange(count))
        if gradient:
            ours = pair_gradient(points, pairs)
            theirs = 3.0 * pairs.electrons[:, None] * rows
        else:
            ours = jnp.stack(pair_sums(points, pairs), axis=1)
            theirs = jnp.asarray([-1.5, 1.5, 1.5]) * rows
    theirs = np.where(np.asarray(pairs.electrons)[:, None] != 0, theirs, 0.0)
    ours = np.asarray(ours)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=3e-6 * np.abs(theirs).max(initial=1e-30))
    assert not ours[np.asarray(pairs.electrons) == 0].any()


def test_the_portable_form_is_pyscf_s():
    points, rho, sigma, weights = some_points(300)
    slope = np.zeros((3, 300))
    slope[0] = np.sqrt(sigma)
    moments = np.concatenate([rho[None], slope])
    exc, vxc = numint._vv10nlc(moments, points, moments, weights, points, tuple(PARAMETERS))
    slopes, _ = rks_gradients._vv10nlc_grad(
        moments, points, moments, weights, points, tuple(PARAMETERS)
    )
    with jax.enable_x64(True):
        pairs = point_pairs(PARAMETERS, *map(jnp.asarray, (rho, sigma, weights)))
        sums = pair_sums(jnp.asarray(points), pairs)
        energy, by_rho, by_sigma = energy_and_potential(
            PARAMETERS, *map(jnp.asarray, (rho, sigma)), points=pairs, sums=sums
        )
        gradient = pair_gradient(jnp.asarray(points), pairs)
    counts = np.asarray(pairs.electrons) != 0
    close = {"rtol": 3e-6, "atol": 1e-7}
    np.testing.assert_allclose(np.asarray(energy)[counts], (rho * exc)[counts], **close)
    np.testing.assert_allclose(np.asarray(by_rho)[counts], vxc[0][counts], **close)
    np.testing.assert_allclose(np.asarray(by_sigma)[counts], vxc[1][counts], **close)
    theirs = np.where(counts[:, None], slopes * (rho * weights)[:, None], 0)
    np.testing.assert_allclose(gradient, theirs, rtol=1e-5, atol=1e-6 * np.abs(theirs).max())
    assert not np.asarray(energy)[~counts].any()


def test_forces_of_pairs_add_up_to_zero():
    with jax.enable_x64(True):
        points, pairs = prepared(700)
        gradient = np.asarray(pair_gradient(points, pairs))
    assert np.abs(gradient.sum(0)).max() < 1e-6 * np.abs(gradient).sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "wb97m-v" else pytest.mark.long) for n in NAMES]
)
def test_energy_and_forces_are_pyscf_s(name):
    settings = pi.Settings(xc=name, precision="float64", grid_level=0, nlc_grid=0)
    ours = pi.rks(WATER, solver=pi.Solver(settings), forces=True, throw=True)
    field = settings.pyscf_method(mole_of(WATER, "sto-3g", False))
    field.conv_tol = 1e-11
    field.kernel()
    assert ours.energy == pytest.approx(field.e_tot, abs=1e-7)
    np.testing.assert_allclose(ours.mo_energy, field.mo_energy, atol=1e-6)
    gradients = field.nuc_grad_method()
    gradients.grid_response = True
    np.testing.assert_allclose(ours.forces, -gradients.kernel(), atol=1e-6)
    assert np.abs(ours.forces.sum(0)).max() < 1e-7


@pytest.mark.long
def test_float32_holds_its_bars():
    settings = pi.Settings(xc="wb97m-v", grid_level=0, nlc_grid=0)
    wide = pi.Settings.from_dict({**settings.to_dict(), "precision": "float64"})
    one, other = (
        pi.rks(WATER, solver=pi.Solver(level), forces=True, throw=True)
        for level in (settings, wide)
    )
    assert one.energy == pytest.approx(other.energy, abs=1e-3 / 27.2)
    np.testing.assert_allclose(one.forces, other.forces, atol=1e-4)


def test_the_grid_of_the_pairs_is_its_own():
    """A functional without VV10 has none."""
    assert "VV10 on grid level 1" in pi.Settings(xc="wb97m-v", nlc_grid=1).in_words
    assert pi.Settings(xc="b97m-v").to_dict() == {**pi.Settings().to_dict(), "xc": "b97m-v"}
    assert pi.Settings(xc="b97m-v", nlc_grid=[50, 194]).to_dict()["nlc_grid"] == [50, 194]
    assert pi.Settings(xc="pbe", nlc_grid=1) == pi.Settings(xc="pbe")


@pytest.mark.long
def test_another_grid_of_the_pairs_changes_the_energy():
    levels = [pi.Settings(xc="wb97m-v", grid_level=0, nlc_grid=n) for n in (0, 1)]
    energies = [pi.rks(WATER, solver=pi.Solver(level)).energy for level in levels]
    assert 1e-7 < abs(energies[1] - energies[0]) < 1e-3


def test_what_cannot_be_done_is_said():
    with pytest.raises(ValueError, match="VV10 is computed on PySCF's kind of grid"):
        pi.Settings(xc="wb97m-v", grid_kind="gaussian", grid_level=(75, 302), prune=False)
    with pytest.raises(ValueError, match="'wb97m-v': VV10 sums over pairs"):
        pi.rks(WATER, xc="wB97M-V", machine="bow")
    with pytest.raises(ValueError, match="'b97m-v': VV10 sums over pairs"):
        profile_rks(WATER, pi.Settings(xc="b97m-v"))
    with pytest.raises(ValueError, match="elements beyond krypton have shells"):
        profile_rks(pi.Molecule.from_smiles("I", seed=1), pi.Settings(basis="def2-svp"))
    assert functional("wB97X-V").vv10 == PARAMETERS
    assert functional("wb97x-d3bj").vv10 is None

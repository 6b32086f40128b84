"""Functionals against libxc in both precisions, and against everything a grid can hold."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyscf import dft, gto
from pyscf.dft import libxc

from pyscf_ipu.xc import FUNCTIONALS, functional
from pyscf_ipu.xc.variables import arctan, cbrt, x_arcsinh_x

PADDED_LENGTH = 12288
SEMILOCAL = tuple(name for name in FUNCTIONALS if name != "hf")
WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
METHANE = "C 0 0 0; H .63 .63 .63; H -.63 -.63 .63; H .63 -.63 -.63; H -.63 .63 -.63"
BENZENE = "; ".join(
    f"{symbol} {radius * np.cos(k * np.pi / 3):.9f} {radius * np.sin(k * np.pi / 3):.9f} 0"
    for symbol, radius in (("C", 1.397), ("H", 2.481))
    for k in range(6)
)


@pytest.fixture(autouse=True)
def strict_promotion():
    with jax.numpy_dtype_promotion("strict"):
        yield


def molecular_density(atoms):
    """Guess density of a molecule on PySCF's level-0 grid: weights, rho, sigma in float64."""
    mol = gto.M(atom=atoms, basis="sto-3g", verbose=0)
    grids = dft.gen_grid.Grids(mol)
    grids.level = 0
    grids.build()
    ao = dft.numint.eval_ao(mol, grids.coords, deriv=1)
    rho, *gradient = dft.numint.eval_rho(mol, ao, dft.RKS(mol).get_init_guess(), xctype="GGA")
    return grids.weights, rho, sum(g * g for g in gradient)


@pytest.fixture(scope="module")
def densities():
    """Densities by name: random ones with reduced gradients s up to 10, and real molecules."""
    rng = np.random.default_rng(7)
    rho = 10 ** rng.uniform(-6, 4, 2000)
    s = 10 ** rng.uniform(-3, 1, 2000)
    sigma = (2 * (3 * np.pi**2) ** (1 / 3) * s * rho ** (4 / 3)) ** 2
    found = {"random": (np.ones_like(rho), rho, sigma)}
    for name, atoms in (("water", WATER), ("methane", METHANE), ("benzene", BENZENE)):
        found[name] = molecular_density(atoms)
    return found


def libxc_reference(xc, rho, sigma):
    """(e, vrho, vsigma) of libxc; zeros where it has no such derivative."""
    zero = np.zeros_like(rho)
    ingredients = rho if xc.kind == "lda" else np.stack([rho, np.sqrt(sigma), zero, zero])
    per_electron, potentials, *_ = libxc.eval_xc(xc.pyscf_name, ingredients, spin=0)
    v_sigma = potentials[1] if xc.kind == "gga" else zero
    return per_electron * rho, potentials[0], v_sigma


@partial(jax.jit, static_argnums=0)
def compiled(xc, rho, sigma):
    return xc.energy_and_potential(rho, sigma)


def evaluate(xc, rho, sigma, dtype):
    """Energy density and potentials in the given precision, returned as float64 arrays.

    Padded with empty points to one length, so that each functional is compiled once per dtype.
    """
    padding = (0, PADDED_LENGTH - len(rho))
    with jax.enable_x64(dtype == np.float64):
        inputs = (jnp.asarray(np.pad(column, padding), dtype) for column in (rho, sigma))
        results = compiled(xc, *inputs)
        assert all(result.dtype == dtype for result in results)
        assert all(np.all(result[len(rho) :] == 0) for result in map(np.asarray, results))
        return [np.asarray(result, np.float64)[: len(rho)] for result in results]


def gradient_scale(rho, sigma):
    """Natural size of vsigma, rho^(-4/3) damped by x^2; PBE's own value crosses zero at small s."""
    return 1e-3 / (rho ** (4 / 3) + sigma / rho ** (4 / 3))


@pytest.mark.parametrize("source", ["random", "water", "methane"])
@pytest.mark.parametrize("name", SEMILOCAL)
def test_float64_is_libxc(name, source, densities):
    _, rho, sigma = densities[source]
    keep = rho > 1e-6
    rho, sigma = rho[keep], sigma[keep]
    xc = functional(name)
    energy, v_rho, v_sigma = evaluate(xc, rho, sigma, np.float64)
    ref_energy, ref_v_rho, ref_v_sigma = libxc_reference(xc, rho, sigma)
    np.testing.assert_allclose(energy, ref_energy, rtol=1e-11)
    np.testing.assert_allclose(v_rho, ref_v_rho, rtol=1e-10)
    slack = 1e-10 * (np.abs(ref_v_sigma) + gradient_scale(rho, sigma))
    assert np.all(np.abs(v_sigma - ref_v_sigma) <= slack)


@pytest.mark.parametrize("source", ["random", "water"])
@pytest.mark.parametrize("name", SEMILOCAL)
def test_float32_is_float64_of_the_same_input(name, source, densities):
    _, rho, sigma = (column.astype(np.float32) for column in densities[source])
    keep = rho > 1e-6
    rho, sigma = rho[keep], sigma[keep]
    xc = functional(name)
    energy, v_rho, v_sigma = evaluate(xc, rho, sigma, np.float32)
    ref_energy, ref_v_rho, ref_v_sigma = evaluate(xc, rho, sigma, np.float64)
    # B88 + LYP crosses zero at large s: measure against what rounded inputs alone would change.
    scale = np.abs(ref_energy) + np.abs(rho * ref_v_rho) + np.abs(sigma * ref_v_sigma)
    error = (energy - ref_energy) / scale
    assert np.max(np.abs(error)) < 2e-6
    assert abs(np.mean(error)) < 1e-7, "rounding must not be biased"
    np.testing.assert_allclose(v_rho, ref_v_rho, rtol=3e-6)
    slack = 1e-5 * np.abs(ref_v_sigma) + 3e-3 * gradient_scale(*np.float64((rho, sigma)))
    assert np.all(np.abs(v_sigma - ref_v_sigma) <= slack)


@pytest.mark.parametrize("molecule", ["water", "benzene"])
@pytest.mark.parametrize("name", SEMILOCAL)
def test_integrated_energy_in_float32(name, molecule, densities):
    weights, rho, sigma = densities[molecule]
    xc = functional(name)
    energy, *_ = evaluate(xc, rho, sigma, np.float32)
    reference, *_ = libxc_reference(xc, rho, sigma)
    assert abs(weights @ energy - weights @ reference) < 1e-5, "Hartree"


def test_hartree_fock_has_no_density_part():
    xc = functional("hf")
    results = evaluate(xc, np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.float32)
    assert xc.exact_exchange == 1.0
    assert all(np.all(result == 0) for result in results)


@pytest.mark.parametrize("name", SEMILOCAL)
def test_exact_exchange_is_that_of_libxc(name):
    xc = functional(name)
    assert xc.exact_exchange == pytest.approx(libxc.hybrid_coeff(xc.pyscf_name), abs=1e-12)


def test_definition_tells_the_two_b3lyp_apart():
    assert "402" in functional("b3lyp").definition
    assert "RPA(8)" in functional("b3lyp").definition
    assert "475" in functional("B3LYP5").definition
    assert "VWN(7)" in functional("b3lyp5").definition


def test_unknown_name_lists_the_choices():
    with pytest.raises(ValueError, match="use one of hf, lda, pbe"):
        functional("m06")


def test_mixed_precision_is_refused():
    one = jnp.ones(1, jnp.float32)
    with pytest.raises(TypeError, match="one dtype"):
        functional("lda").energy_density(one, one.astype(jnp.bfloat16))
    with pytest.raises(TypeError, match="float32 or float64"):
        functional("lda").energy_density(one.astype(jnp.bfloat16), one.astype(jnp.bfloat16))


EDGE = np.array([-1e-9, 0, 1e-45, 1e-38, 1e-20, 1e-12, 1.1e-11, 1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6])
EDGE_SIGMA = np.array([-1e-9, 0, 1e-45, 1e-38, 1e-30, 1e-20, 1e-12, 1e-6, 1.0, 1e6, 1e20, 3e38])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONALS)
def test_edges_are_finite(name, dtype):
    rho, sigma = (table.ravel() for table in np.meshgrid(EDGE, EDGE_SIGMA))
    results = evaluate(functional(name), rho, sigma, dtype)
    assert all(np.all(np.isfinite(result)) for result in results)
    empty = rho <= 1e-15
    assert all(np.all(result[empty] == 0) for result in results)


@settings(max_examples=60, deadline=None)
@given(
    rho_decade=st.lists(st.floats(-45, 6), min_size=64, max_size=64),
    sigma_decade=st.lists(st.floats(-45, 38), min_size=64, max_size=64),
)
def test_any_density_is_finite_in_float32(rho_decade, sigma_decade):
    with np.errstate(under="ignore"):
        rho = (10 ** np.array(rho_decade)).astype(np.float32)
        sigma = (10 ** np.array(sigma_decade)).astype(np.float32)
    for name in FUNCTIONALS:
        for result in evaluate(functional(name), rho, sigma, np.float32):
            assert np.all(np.isfinite(result)), name


@pytest.mark.parametrize("name", SEMILOCAL)
def test_nan_is_not_taken_for_empty_space(name):
    energy, *_ = evaluate(functional(name), np.array([np.nan]), np.array([0.1]), np.float32)
    assert np.isnan(energy[0])


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 3e-7), (np.float64, 5e-16)])
def test_elementary_functions(dtype, tolerance):
    grid = np.linspace(0, 2, 2001).astype(dtype)
    positive = np.logspace(-10, 6, 2001).astype(dtype)
    with jax.enable_x64(dtype == np.float64):
        pairs = (
            (jax.jit(cbrt)(jnp.asarray(positive)), np.cbrt(np.float64(positive))),
            (jax.jit(arctan)(jnp.asarray(grid)), np.arctan(np.float64(grid))),
            (
                jax.jit(x_arcsinh_x)(jnp.asarray(grid)),
                np.sqrt(np.float64(grid)) * np.arcsinh(np.sqrt(np.float64(grid))),
            ),
        )
        for value, reference in pairs:
            np.testing.assert_allclose(np.asarray(value), reference, rtol=2 * tolerance)

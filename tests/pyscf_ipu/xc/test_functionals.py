"""Functionals against libxc in both precisions, and against everything a grid can hold."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import QUICK
from pyscf import dft, gto
from pyscf.dft import libxc

from pyscf_ipu.xc.registry import functional
from pyscf_ipu.xc.semilocal.elementary import arctan, cbrt, x_arcsinh_x
from pyscf_ipu.xc.suffixes.names import FUNCTIONALS, WITH_VV10

PADDED_LENGTH = 12288
SEMILOCAL = tuple(name for name in FUNCTIONALS if name != "hf")
OLD = ("lda", "pbe", "blyp", "b3lyp", "b3lyp5", "pbe0")
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
    """Guess density of a molecule on PySCF's level-0 grid: weights, rho, sigma, tau in float64.

    The guess has fractional occupations of spherical atoms; its tau is that of these.
    """
    mol = gto.M(atom=atoms, basis="sto-3g", verbose=0)
    grids = dft.gen_grid.Grids(mol)
    grids.level = 0
    grids.build()
    ao = dft.numint.eval_ao(mol, grids.coords, deriv=1)
    guess = dft.RKS(mol).get_init_guess()
    rho, *gradient, tau = dft.numint.eval_rho(mol, ao, guess, xctype="MGGA", with_lapl=False)
    return grids.weights, rho, sum(g * g for g in gradient), tau


@pytest.fixture(scope="module")
def densities():
    """Densities by name: random ones with reduced gradients s up to 10, and real molecules.

    Of the random ones tau is between that of one orbital and a hundred times the uniform gas's.
    """
    rng = np.random.default_rng(7)
    rho = 10 ** rng.uniform(-6, 4, 2000)
    s = 10 ** rng.uniform(-3, 1, 2000)
    sigma = (2 * (3 * np.pi**2) ** (1 / 3) * s * rho ** (4 / 3)) ** 2
    uniform = 0.3 * (3 * np.pi**2) ** (2 / 3) * rho ** (5 / 3)
    tau = sigma / (8 * rho) + 10 ** rng.uniform(-2, 2, 2000) * uniform
    found = {"random": (np.ones_like(rho), rho, sigma, tau)}
    for name, atoms in (("water", WATER), ("methane", METHANE), ("benzene", BENZENE)):
        found[name] = molecular_density(atoms)
    return found


def libxc_reference(xc, rho, sigma, tau):
    """(e, vrho, vsigma, vtau) of libxc; zeros where it has no such derivative."""
    zero = np.zeros_like(rho)
    rows = {"lda": [rho], "gga": [rho, np.sqrt(sigma), zero, zero]}
    rows["mgga"] = [*rows["gga"], zero, tau]
    ingredients = rho if xc.kind == "lda" else np.stack(rows[xc.kind])
    per_electron, potentials, *_ = libxc.eval_xc(xc.pyscf_name, ingredients, spin=0)
    v_sigma = potentials[1] if xc.needs_gradient else zero
    v_tau = potentials[3] if xc.needs_tau else zero
    return per_electron * rho, potentials[0], v_sigma, v_tau


@partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def compiled(xc, *ingredients):
    return xc.energy_and_potential(*ingredients)


def evaluate(xc, rho, sigma, tau, dtype):
    """Energy density and potentials in the given precision, returned as float64 arrays.

    Padded with empty points to one length, so that each functional is compiled once per dtype.
    """
    padding = (0, PADDED_LENGTH - len(rho))
    columns = (rho, sigma, tau) if xc.needs_tau else (rho, sigma)
    with jax.enable_x64(dtype == np.float64):
        inputs = (jnp.asarray(np.pad(column, padding), dtype) for column in columns)
        results = compiled(xc, *inputs)
        assert all(result.dtype == dtype for result in results)
        assert all(np.all(result[len(rho) :] == 0) for result in map(np.asarray, results))
        found = [np.asarray(result, np.float64)[: len(rho)] for result in results]
    return found if xc.needs_tau else [*found, np.zeros_like(rho, np.float64)]


def gradient_scale(rho, sigma):
    """Natural size of vsigma, rho^(-4/3) damped by x^2; PBE's own value crosses zero at small s."""
    return 1e-3 / (rho ** (4 / 3) + sigma / rho ** (4 / 3))


def close(found, reference, slack):
    """Compares with what went wrong in the message."""
    worst = np.max(np.abs(found - reference) / slack)
    assert worst <= 1, worst


# How well two ways to write the same agree: libxc's HSE has powers up to the eighth that cancel,
# TPSS the difference of two energies.
AGREEMENT = {"hse06": 300.0, "tpss": 100.0}
# In float32, how far above the bounds of the simplest: differences of tau and tau_W, and long
# series with coefficients of either sign.
COARSE = {"r2scan": 30, "r2scan-3c": 30, "m06-2x": 15}


@pytest.mark.parametrize("source", ["random", "water", "methane"])
@pytest.mark.parametrize("name", SEMILOCAL)
def test_float64_is_libxc(name, source, densities):
    columns = densities[source][1:]
    rho, sigma, tau = (column[columns[0] > 1e-6] for column in columns)
    xc = functional(name)
    energy, v_rho, v_sigma, v_tau = evaluate(xc, rho, sigma, tau, np.float64)
    e, by_rho, by_sigma, by_tau = libxc_reference(xc, rho, sigma, tau)
    fine = AGREEMENT.get(name, 1.0)
    # A sum of exchange and correlation of either sign may vanish: what it consists of counts.
    size = np.abs(e) + (0 if name in OLD else rho ** (4 / 3))
    close(energy, e, 1e-11 * fine * size)
    close(v_rho, by_rho, 1e-10 * fine * (np.abs(by_rho) + (0 if name in OLD else size / rho)))
    close(v_sigma, by_sigma, 1e-10 * fine * (np.abs(by_sigma) + gradient_scale(rho, sigma)))
    close(v_tau, by_tau, 1e-10 * fine * (np.abs(by_tau) + 0.01 * size / tau))


@pytest.mark.parametrize("source", ["random", "water"])
@pytest.mark.parametrize("name", SEMILOCAL)
def test_float32_is_float64_of_the_same_input(name, source, densities):
    columns = densities[source][1:]
    rho, sigma, tau = (column[columns[0] > 1e-6].astype(np.float32) for column in columns)
    xc = functional(name)
    energy, v_rho, v_sigma, v_tau = evaluate(xc, rho, sigma, tau, np.float32)
    e, by_rho, by_sigma, by_tau = evaluate(xc, rho, sigma, tau, np.float64)
    rho, sigma, tau = np.float64((rho, sigma, tau))
    # B88 + LYP crosses zero at large s: measure against what rounded inputs alone would change.
    scale = np.abs(e) + np.abs(rho * by_rho) + np.abs(sigma * by_sigma) + np.abs(tau * by_tau)
    error = (energy - e) / scale
    fine = 1 if name in OLD else COARSE.get(name, 5)
    assert np.max(np.abs(error)) < 2e-6 * fine
    assert abs(np.mean(error)) < 1e-7 * fine, "rounding must not be biased"
    close(v_rho, by_rho, 3e-6 * fine * (np.abs(by_rho) + (0 if name in OLD else scale / rho)))
    slack = 1e-5 * np.abs(by_sigma) + 3e-3 * gradient_scale(rho, sigma)
    close(v_sigma, by_sigma, fine * slack)
    close(v_tau, by_tau, fine * (1e-5 * np.abs(by_tau) + 1e-6 * scale / tau))


@pytest.mark.parametrize("name", ["b3lyp", "b3lyp5"])
def test_coefficients_are_not_rounded_to_float32(name, densities):
    """Rounded, 0.72 and 0.08 would give 3e-8 of the energy to every molecule."""
    weights, *columns = densities["benzene"]
    columns = [column.astype(np.float32) for column in columns]
    found, *_ = evaluate(functional(name), *columns, np.float32)
    expected, *_ = evaluate(functional(name), *columns, np.float64)
    assert abs(weights @ (found - expected)) < 1e-8 * abs(weights @ expected)


@pytest.mark.parametrize("molecule", ["water", "benzene"])
@pytest.mark.parametrize("name", SEMILOCAL)
def test_integrated_energy_in_float32(name, molecule, densities):
    weights, *columns = densities[molecule]
    xc = functional(name)
    energy, *_ = evaluate(xc, *columns, np.float32)
    reference, *_ = libxc_reference(xc, *columns)
    assert abs(weights @ energy - weights @ reference) < 1e-5, "Hartree"


def test_hartree_fock_has_no_density_part():
    xc = functional("hf")
    results = evaluate(xc, *np.array([[0.0, 1.0]] * 3), np.float32)
    assert xc.exact_exchange == 1.0
    assert all(np.all(result == 0) for result in results)


@pytest.mark.parametrize("name", SEMILOCAL)
def test_exact_exchange_is_that_of_libxc(name):
    """PySCF's alpha is what is left at long range, its beta what is added to it at short range."""
    xc = functional(name)
    omega, alpha, beta = libxc.rsh_coeff(xc.pyscf_name)
    short = alpha + beta if omega else libxc.hybrid_coeff(xc.pyscf_name)
    assert xc.omega == omega
    assert xc.exact_exchange == pytest.approx(short, abs=1e-12)
    assert xc.long_range_exchange == pytest.approx(alpha - short if omega else 0, abs=1e-12)
    assert (xc.vv10 is not None) == (name in WITH_VV10)
    if xc.vv10 is not None:
        assert libxc.nlc_coeff(xc.pyscf_name) == ((tuple(xc.vv10), 1),)


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
    with pytest.raises(TypeError, match="tau is bfloat16"):
        functional("tpss").energy_density(one, one, one.astype(jnp.bfloat16))


def test_a_functional_of_tau_asks_for_it():
    one = jnp.ones(1, jnp.float32)
    with pytest.raises(TypeError, match="give tau"):
        functional("tpss").energy_density(one, one)


EDGE = np.array([-1e-9, 0, 1e-45, 1e-38, 1e-20, 1e-12, 1.1e-11, 1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6])
EDGE_SIGMA = np.array([-1e-9, 0, 1e-45, 1e-38, 1e-30, 1e-20, 1e-12, 1e-6, 1.0, 1e6, 1e20, 3e38])


EDGES = [column.ravel() for column in np.meshgrid(EDGE, EDGE_SIGMA, EDGE_SIGMA)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONALS)
def test_edges_are_finite(name, dtype):
    results = evaluate(functional(name), *EDGES, dtype)
    assert all(np.all(np.isfinite(result)) for result in results)
    empty = EDGES[0] <= 1e-15
    assert all(np.all(result[empty] == 0) for result in results)


@settings(max_examples=20)
@given(
    rho_decade=st.lists(st.floats(-45, 6), min_size=128, max_size=128),
    sigma_decade=st.lists(st.floats(-45, 38), min_size=128, max_size=128),
    tau_decade=st.lists(st.floats(-45, 38), min_size=128, max_size=128),
)
def test_any_density_is_finite_in_float32(rho_decade, sigma_decade, tau_decade):
    with np.errstate(under="ignore"):
        columns = [
            (10 ** np.array(decade)).astype(np.float32)
            for decade in (rho_decade, sigma_decade, tau_decade)
        ]
    for name in FUNCTIONALS:
        for result in evaluate(functional(name), *columns, np.float32):
            assert np.all(np.isfinite(result)), name


@pytest.mark.parametrize("name", SEMILOCAL)
def test_nan_is_not_taken_for_empty_space(name):
    energy, *_ = evaluate(functional(name), *np.array([[np.nan], [0.1], [0.1]]), np.float32)
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


def test_tpss_of_one_orbital_has_the_derivative_of_a_larger_tau():
    """Where tau is sigma / 8 rho, libxc's derivative by tau depends on rounding; ours does not."""
    rho = np.array([0.19087262759791213, 0.3, 0.01, 0.1949492248014635])
    sigma = np.array([0.004082835098355183, 0.01, 4e-4, 0.005942914411520103])
    tau = sigma / (8 * rho)
    known = np.zeros((6, len(rho)))
    known[0], known[1], known[5] = rho, np.sqrt(sigma), tau * (1 + 1e-10)
    expected = libxc.eval_xc("tpss", known, spin=0, deriv=1)[1][3]
    with jax.enable_x64(True):
        for share in (1 - 1e-15, 1.0, 1 + 1e-15):
            at = [jnp.asarray(values) for values in (rho, sigma, tau * share)]
            by_tau = functional("tpss").energy_and_potential(*at)[3]
            np.testing.assert_allclose(by_tau, expected, rtol=1e-8)

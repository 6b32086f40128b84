"""Second derivatives of the functionals as the response uses them, against libxc."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import QUICK
from pyscf.dft import libxc

from pyscf_ipu.grid.xc_response import xc_kernel_vertex
from pyscf_ipu.xc.registry import functional
from pyscf_ipu.xc.suffixes.names import FUNCTIONALS

pytestmark = pytest.mark.slow

AGAIN = (
    *("blyp", "b3lyp5", "pbe0", "wb97x-d", "wb97x-d3", "wb97x-d3bj", "wb97x-v"),
    *("wb97m-v", "r2scan-3c"),
)
"""Made of functions that the others have, with other coefficients."""
SEMILOCAL = [name for name in FUNCTIONALS if name not in ("hf", *AGAIN)]
# Places of v2 by (rho, sigma, tau) in what libxc gives with two variables more.
MGGA = {(0, 0): 0, (0, 1): 1, (1, 1): 2, (2, 2): 4, (0, 2): 6, (1, 2): 9}
POINTS = 720


@partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def compiled(xc, moments, weights):
    return xc_kernel_vertex(xc, moments, weights)


def kernel(xc, rho, sigma, tau, dtype):
    """Second derivatives [i, j] by ingredients, i in the units of the kernel, and the units."""
    rows = [rho, np.sqrt(sigma), 0 * rho, 0 * rho, tau]
    moments = np.stack(rows[: {"lda": 1, "gga": 4, "mgga": 5}[xc.kind]]).astype(dtype)
    with jax.enable_x64(dtype == np.float64):
        found = compiled(xc, jnp.asarray(moments), jnp.ones(len(rho), dtype))
        assert found.dtype == dtype
        found = np.asarray(found, np.float64)
    count = 3 if xc.needs_tau else 2
    return found[1:-count].reshape(count, count, -1), 1 / found[-count:]


def random_densities():
    """rho, sigma, tau as molecules have them."""
    rng = np.random.default_rng(3)
    rho = 10 ** rng.uniform(-4, 2, POINTS)
    s = 10 ** rng.uniform(-1.5, 0.6, POINTS)
    sigma = (2 * (3 * np.pi**2) ** (1 / 3) * s * rho ** (4 / 3)) ** 2
    uniform = 0.3 * (3 * np.pi**2) ** (2 / 3) * rho ** (5 / 3)
    return rho, sigma, sigma / (8 * rho) + 10 ** rng.uniform(-1, 1, POINTS) * uniform


def libxc_kernel(xc, rho, sigma, tau):
    """Second derivatives [i, j] of libxc."""
    zero = np.zeros_like(rho)
    rows = [rho, np.sqrt(sigma), zero, zero, zero, tau]
    ingredients = rho if xc.kind == "lda" else np.stack(rows[: 6 if xc.needs_tau else 4])
    second = libxc.eval_xc(xc.pyscf_name, ingredients, spin=0, deriv=2)[2]
    count = 3 if xc.needs_tau else 2
    found = np.zeros((count, count, len(rho)))
    for (i, j), place in MGGA.items():
        if xc.kind == "lda" and (i, j) != (0, 0):
            continue
        if max(i, j) < count:
            found[i, j] = found[j, i] = second[place]
    return found


ONE_OF_A_KIND = ("lda", "b3lyp", "tpss")


every_functional = pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in ONE_OF_A_KIND else pytest.mark.long) for n in SEMILOCAL],
)


@pytest.mark.slow
@every_functional
def test_second_derivatives_are_those_of_libxc(name):
    """Of both sides only what is above the noise of rounding counts: 1e-5 of the largest."""
    xc = functional(name)
    columns = random_densities()
    found, units = kernel(xc, *columns, np.float64)
    expected = libxc_kernel(xc, *columns) * units[:, None]
    single, _ = kernel(xc, *columns, np.float32)
    natural = columns[0] ** (4 / 3)
    for i in range(len(found)):
        for j in range(len(found)):
            size = np.abs(expected[i, j]) + 1e-3 * natural / units[j]
            assert np.max(np.abs(found[i, j] - expected[i, j]) / size) < 1e-6, (i, j)
            assert np.max(np.abs(single[i, j] - found[i, j]) / size) < 2e-2, (i, j)


EDGE = np.array([0, 1e-20, 1.1e-11, 1e-9, 1e-6, 1e-3, 1.0, 1e3])


@every_functional
def test_thin_densities_are_finite_in_float32(name):
    """As molecules end: sigma and tau of decaying orbitals, or of none at all."""
    xc = functional(name)
    rho, slope, spread = (x.ravel() for x in np.meshgrid(EDGE, [0, 1e-3, 1, 4], [0, 1e-6, 1, 9]))
    rows = (np.resize(x, POINTS) for x in (rho, (slope * rho) ** 2, rho * (slope**2 / 8 + spread)))
    found, _ = kernel(xc, *rows, np.float32)
    assert np.all(np.isfinite(found))

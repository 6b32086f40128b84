"""r2SCAN: the functional that meets every exact constraint of its kind, smooth on a grid.

J. W. Furness et al., J. Phys. Chem. Lett. 11, 8208 (2020), doi:10.1021/acs.jpclett.0c02405, whose
supporting information has the equations named here; the polynomials are those of rSCAN, A. P.
Bartok, J. R. Yates, J. Chem. Phys. 150, 161101 (2019), doi:10.1063/1.5094646.  Digits are those of
libxc MGGA_X_R2SCAN (497) and MGGA_C_R2SCAN (498).
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from pyscf_ipu.xc.semilocal.correlation import PBE_BETA, PBE_GAMMA, pw92, t_squared
from pyscf_ipu.xc.semilocal.exchange import s_squared, slater
from pyscf_ipu.xc.semilocal.functionals import Functional, Term
from pyscf_ipu.xc.semilocal.spin import GAS, Fit, polarise
from pyscf_ipu.xc.semilocal.variables import Variables

UNIFORM = 0.3 * (3 * math.pi**2) ** (2 / 3)
"""tau / rho^(5/3) of the uniform gas."""
ETA, D_P2 = 0.001, 0.361
H0, K1, MU, A1 = 1.174, 0.065, 10 / 81, 4.9479
B1, B2, B3, CHI = 0.0285764, 0.0889, 0.125541, 0.12802585262625815
END = 2.5
"""Of the polynomial in alpha."""


class Switch(NamedTuple):
    """f(alpha) of eqs. S7 and S26: an exponential below zero, a polynomial, another exponential."""

    c1: float
    c2: float
    d: float
    polynomial: tuple[float, ...]
    """Coefficients of alpha^0 to alpha^7."""

    def slope_at_one(self) -> float:
        """The derivative by alpha at one, where f itself is zero."""
        return sum(i * c for i, c in enumerate(self.polynomial))

    def __call__(self, alpha: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
        below, above = alpha < 0, alpha > END
        low = jnp.where(below, alpha, -1.0)
        middle = jnp.where(below | above, 1.0, alpha)
        high = jnp.where(above, alpha, 2 * END)
        total = jnp.full_like(alpha, self.polynomial[-1])
        for c in reversed(self.polynomial[:-1]):
            total = c + middle * total
        far = -self.d * jnp.exp(self.c2 / (1 - high))
        return jnp.where(below, jnp.exp(-self.c1 * low / (1 - low)), jnp.where(above, far, total))


OF_EXCHANGE = Switch(
    0.667, 0.8, 1.24,
    polynomial=(1, -0.667, -0.4445555, -0.663086601049, 1.451297044490, -0.887998041597,
                0.234528941479, -0.023185843322),
)  # fmt: skip
OF_CORRELATION = Switch(
    0.64, 1.5, 0.7,
    polynomial=(1, -0.64, -0.4352, -1.535685604549, 3.061560252175, -1.915710236206, 0.516884468372,
     -0.051848879792),
)  # fmt: skip


def iso_orbital(v: Variables) -> Float[Array, "*grid"]:
    """alpha = (tau - tau_W) / (tau_uniform + eta tau_W), eq. S6."""
    weizsaecker = v.x2 / 8
    return (v.kinetic - weizsaecker) / (UNIFORM * v.mean_power(5) + ETA * weizsaecker)


def exchange(v: Variables) -> Float[Array, "*grid"]:
    """Hartree per electron: eqs. S2 to S12."""
    p = s_squared(v)
    second = (20 / 27 + 5 / 3 * ETA) * -OF_EXCHANGE.slope_at_one() * (1 - H0)
    x = (second * jnp.exp(-p * p / D_P2**4) + MU) * p
    h1 = 1 + K1 - K1 * K1 / (K1 + x)
    # 1 - exp(-a / sqrt(s)), one to the last digit below.
    flat = p < 1e-6
    g = 1 - jnp.exp(-A1 / jnp.sqrt(jnp.sqrt(jnp.where(flat, 1.0, p))))
    enhanced = (h1 + OF_EXCHANGE(iso_orbital(v)) * (H0 - h1)) * jnp.where(flat, 1.0, g)
    return slater(v) * enhanced


def correlation(v: Variables) -> Float[Array, "*grid"]:
    """Hartree per electron: eqs. S23 to S41."""
    s2 = s_squared(v)
    uniform, plain = pw92(v), _single(v)
    single = _polarised(v, plain)
    # Of slowly varying densities, eq. S24
    gamma = PBE_GAMMA * v.mean_power(2) ** 3
    w1 = jnp.expm1(-uniform / gamma)
    beta = PBE_BETA * (1 + 0.1 * v.rs) / (1 + 0.1778 * v.rs)
    y = beta * t_squared(v) / (PBE_GAMMA * w1)
    slopes = 20 * v.rs * (_polarised(v, _single_slope(v)) - _uniform_slope(v))
    slopes = slopes - 45 * ETA * (single - uniform)
    shift = -OF_CORRELATION.slope_at_one() / (27 * gamma * v.mean_power(5) * w1) * slopes
    y = y + shift * s2 * jnp.exp(-s2 * s2 / D_P2**4)
    slow = uniform + gamma * jnp.log1p(w1 * _rise(y))
    # Of single orbitals, eq. S35
    w0 = jnp.expm1(-plain / B1)
    alone = _polarised(v, plain + B1 * jnp.log1p(w0 * _rise(CHI * s2)))
    return slow + OF_CORRELATION(iso_orbital(v)) * (alone - slow)


def _rise(y: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """1 - (1 + 4 y)^(-1/4), with all digits where y is small."""
    return -jnp.expm1(-0.25 * jnp.log1p(4 * y))


def _single(v: Variables) -> Float[Array, "*grid"]:
    """The local energy of eq. S36."""
    return -B1 / (1 + B2 * jnp.sqrt(v.rs) + B3 * v.rs)


def _single_slope(v: Variables) -> Float[Array, "*grid"]:
    """The derivative by r_s."""
    root = jnp.sqrt(v.rs)
    below = 1 + root * (B2 + root * B3)
    return B1 * (0.5 * B2 / root + B3) / (below * below)


def _polarised(v: Variables, energy: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """The energy times G_c(zeta), which is one where spins are equal."""
    if v.spins is None:
        return energy
    return energy * (1 - 2.363 * (v.mean_power(4) - 1)) * (1 - v.spins.zeta**12)


def _uniform_slope(v: Variables) -> Float[Array, "*grid"]:
    """The derivative of Perdew and Wang's energy by r_s."""
    unpolarised = _fit_slope(v, GAS.unpolarised)
    if v.spins is None:
        return unpolarised
    stiffness = -_fit_slope(v, GAS.stiffness) / GAS.curvature
    return polarise(v.spins, unpolarised, (_fit_slope(v, GAS.polarised), stiffness))


def _fit_slope(v: Variables, fit: Fit) -> Float[Array, "*grid"]:
    """The derivative by r_s for one polarisation."""
    a, alpha1, (b1, b2, b3, b4) = fit
    root = jnp.sqrt(v.rs)
    q = 2 * a * root * (b1 + root * (b2 + root * (b3 + root * b4)))
    slope = a * (b1 / root + 2 * b2 + root * (3 * b3 + root * 4 * b4))
    return 2 * a * ((1 + alpha1 * v.rs) * slope / (q * (1 + q)) - alpha1 * jnp.log1p(1 / q))


R2SCAN = Functional(
    name="r2scan",
    kind="mgga",
    exact_exchange=0.0,
    definition="MGGA_X_R2SCAN(497) + MGGA_C_R2SCAN(498) of libxc",
    pyscf_name="r2scan",
    terms=(Term(1.0, exchange, "exchange"), Term(1.0, correlation, "correlation")),
)

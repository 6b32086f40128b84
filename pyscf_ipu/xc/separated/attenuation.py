"""Local and Becke exchange of the short-range interaction erfc(omega r)/r, and CAM-B3LYP.

At short range the exchange of the uniform gas is F(k/omega) times the whole, with the Fermi wave
number k (P. M. W. Gill, R. D. Adamson, J. A. Pople, Mol. Phys. 88, 1005 (1996),
doi:10.1080/00268979609484488).
"""

import math

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from pyscf_ipu.xc.semilocal.correlation import lyp, vwn5
from pyscf_ipu.xc.semilocal.exchange import b88, slater
from pyscf_ipu.xc.semilocal.functionals import Functional, Term
from pyscf_ipu.xc.semilocal.variables import Variables

LARGEST_SERIES = 2.0
"""Up to this (k/omega)^2 the sum is a power series: its terms fall off, the closed form cancels."""
TERMS = 24
"""The term after the last one is 2^24 / 24!, below 3e-17."""


def attenuation(u: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """F as a function of u = (k/omega)^2 > 0: zero at u = 0, one at infinity.

    Y. Tawada et al., J. Chem. Phys. 120, 8425 (2004), eq. 5, doi:10.1063/1.1688752, with
    a = 1 / (2 sqrt(u)).
    """
    small = u < LARGEST_SERIES
    return jnp.where(small, _series(jnp.where(small, u, 1.0)), _closed(jnp.where(small, 4.0, u)))


def _closed(u: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """F = 1 - 4/(3x) (sqrt(pi) erf(x) - (3/2 + (1 - e^-u)(1 - 1/(2u)) - 1) / x), x = sqrt(u)."""
    x = jnp.sqrt(u)
    rest = 0.5 - jnp.expm1(-u) * (1 - 0.5 / u)
    return 1 - 4 / (3 * x) * (math.sqrt(math.pi) * lax.erf(x) - rest / x)


def _series(u: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """The expansion of the closed form about u = 0, where it has no term of order zero.

    From erf(x) = 2/sqrt(pi) sum (-u)^n x / (n! (2n + 1)) and that of the exponential.
    """
    total = jnp.zeros_like(u)
    for n in reversed(range(1, TERMS)):
        total = u * (_coefficient(n) + total)
    return total


def _coefficient(n: int) -> float:
    """The coefficient of u^n."""
    sign = (-1) ** n
    error = 2 * sign / (math.factorial(n) * (2 * n + 1))
    # (e^-u - 1) / u and (1 - u - e^-u) / (2 u^2), each without its term that cancels
    once = -sign / math.factorial(n + 1)
    twice = -sign / (2 * math.factorial(n + 2))
    return -4 / 3 * (error + once + twice)


def short_range_slater(v: Variables, omega: float) -> Float[Array, "*grid"]:
    """Exchange of the uniform gas at short range, libxc LDA_X_ERF (546)."""
    return slater(v) * attenuation((_WAVE_NUMBER / omega * v.cbrt) ** 2)


_WAVE_NUMBER = (3 * math.pi**2) ** (1 / 3)
"""k / rho^(1/3) of the uniform gas."""


def short_range_b88(v: Variables, omega: float) -> Float[Array, "*grid"]:
    """Becke's exchange at short range, libxc GGA_X_ITYH (529).

    H. Iikura, T. Tsuneda, T. Yanai, K. Hirao, J. Chem. Phys. 115, 3540 (2001), eq. 11,
    doi:10.1063/1.1383587: k^2 is divided by what Becke's exchange is of Slater's.
    """
    whole = b88(v)
    enhancement = whole / slater(v)
    k = _WAVE_NUMBER / omega * v.cbrt
    return whole * attenuation(k * k / enhancement)


def _short_range_of_cam(v: Variables) -> Float[Array, "*grid"]:
    return short_range_b88(v, 0.33)


CAM_B3LYP = Functional(
    # T. Yanai, D. P. Tew, N. C. Handy, Chem. Phys. Lett. 393, 51 (2004),
    # doi:10.1016/j.cplett.2004.06.011.
    name="cam-b3lyp",
    kind="gga",
    exact_exchange=0.65 - 0.46,
    definition="libxc 433 (HYB_GGA_XC_CAM_B3LYP): 0.19 HF + 0.46 HF of erf(0.33 r)/r"
    " + 0.35 GGA_X_B88(106) + 0.46 GGA_X_ITYH(529) + 0.19 LDA_C_VWN(7) + 0.81 GGA_C_LYP(131)",
    pyscf_name="433",
    terms=(
        Term(0.35, b88, "exchange"),
        Term(0.46, _short_range_of_cam, "exchange"),
        Term(0.19, vwn5, "correlation"),
        Term(0.81, lyp, "correlation"),
    ),
    long_range_exchange=0.46,
    omega=0.33,
)

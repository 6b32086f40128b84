"""HSE06: PBE's exchange without a quarter of its short-range part, which is exact instead.

The short-range part is the integral of a model of the exchange hole times erfc(omega r)/r:
J. Heyd, G. E. Scuseria, M. Ernzerhof, J. Chem. Phys. 118, 8207 (2003), doi:10.1063/1.1564060
(erratum 124, 219906), of the hole of M. Ernzerhof, J. P. Perdew, J. Chem. Phys. 109, 3313 (1998),
doi:10.1063/1.476928.  Numbers are those of libxc GGA_X_WPBEH (524), from Heyd's program.

One term of the hole, A / (y^2 (1 + 4/9 A y^2)), has no closed integral with erfc.  There
erfc(w y) is exp(-b w^2 y^2) times a polynomial in w y (the paper's eq. A1).
"""

import math
from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, Float

from pyscf_ipu.xc.semilocal.correlation import pbe_correlation
from pyscf_ipu.xc.semilocal.exchange import s_squared, slater
from pyscf_ipu.xc.semilocal.functionals import Functional, Term
from pyscf_ipu.xc.semilocal.variables import Variables
from pyscf_ipu.xc.separated.half_gaussian import (
    exponential_less_logarithm,
    half_gaussian_moments,
    scaled_complement,
)

A, B, C, D, E = 1.0161144, -0.37170836, -0.077215461, 0.57786348, -0.051955731
"""Of the hole of the uniform gas."""
POLE = 9 / (4 * A)
FALL = 1.455915450052607
POLYNOMIAL = (
    -1.128223946706117, 1.452736265762971, -1.243162299390327, 0.971824836115601,
    -0.568861079687373, 0.246880514820192, -0.065032363850763, 0.008401793031216,
)  # fmt: skip
"""erfc(x) = exp(-b x^2) (1 + sum_i a_i x^i) with b = FALL, i = 1 to 8."""
FAR, FALL_FAR = 14.0, 2.0
"""From this w on, erfc(x) = exp(-2 x^2)."""
SMALLEST, POLYNOMIAL_BELOW = 1e-20, 0.08**2
"""Of s^2: at zero some roots have no derivative; below the other G is a polynomial."""
LARGEST_S = 8.572844


def short_range_pbe(v: Variables, omega: float) -> Float[Array, "*grid"]:
    """Exchange of the hole at short range, Hartree per electron; all of it for omega = 0."""
    w = omega / (3 * math.pi**2) ** (1 / 3) / v.cbrt
    s2 = _rescaled(s_squared(v) + SMALLEST)
    h = _hole_h(s2)
    damping = s2 * h
    f = 6.4753871 * h + 0.47965830
    g = _hole_g_times_s2(s2, damping, f)
    lam = D + damping
    # The terms of B, C and E, whose integrals with erfc are elementary
    r2 = w * w / (lam + w * w)
    r = jnp.sqrt(r2) if omega else jnp.zeros_like(w)
    c, e = C * (1 + s2 * f), E + g
    chi3 = r * (3 - r2) / 2  # of the integral with y^3
    chi5 = r * (15 - r2 * (10 - 3 * r2)) / 8  # of that with y^5
    b_part = B * (1 - r) / (2 * lam)
    c_part = c * (1 - chi3) / (2 * lam * lam)
    e_part = e * (1 - chi5) / (lam * lam * lam)
    enhancement = _a_part(w, damping, omega) + b_part + c_part + e_part
    return slater(v) * (-8 / 9) * enhancement


def _a_part(
    w: Float[Array, "*grid"], damping: Float[Array, "*grid"], omega: float
) -> Float[Array, "*grid"]:
    """The integral of erfc times the term of A less its pole, over y.

    Integrals of y^(i-1) exp(-a y^2) / (1 + 4/9 A y^2) are moments of exp(-z^2) / (1 + z^2/x) with
    x = 9a / (4A).
    """
    far = w > FAR
    fall = jnp.where(far, FALL_FAR, FALL) * w * w
    a = damping + fall
    x = POLE * a + 1e-15
    total = 0.5 * exponential_less_logarithm(x, POLE * D)
    if omega:
        near = jnp.where(far, 0.0, w)
        with_pole, without = near / jnp.sqrt(a), near / jnp.sqrt(D + a)
        moments = half_gaussian_moments(x, len(POLYNOMIAL))
        for i, (factor, moment) in enumerate(zip(POLYNOMIAL, moments, strict=True), start=1):
            plain = math.gamma(i / 2) / 2 * without**i
            total = total + factor * (plain - moment * with_pole**i)
    return A * total


def _rescaled(s2: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """s^2 with large s bent to below LARGEST_S.

    T. M. Henderson, A. F. Izmaylov, G. Scalmani, G. E. Scuseria, J. Chem. Phys. 131, 044108
    (2009), eq. 8, doi:10.1063/1.3185673.
    """
    small, large = s2 < 1, s2 > 225
    s = jnp.sqrt(jnp.where(small | large, 4.0, s2))
    bent = s - jnp.log1p(jnp.exp(s - LARGEST_S))
    return jnp.where(small, s2, jnp.where(large, LARGEST_S**2, bent * bent))


def _hole_h(s2: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """H(s) of the hole."""
    s4 = s2 * s2
    below = 1 + s4 * (0.187440 + 0.00120824 * jnp.sqrt(s2) + 0.0347188 * s2)
    return s2 * (0.00979681 + 0.0410834 * s2) / below


def _hole_g_times_s2(
    s2: Float[Array, "*grid"], damping: Float[Array, "*grid"], f: Float[Array, "*grid"]
) -> Float[Array, "*grid"]:
    """E G(s) s^2, from the condition that the hole gives the energy of PBE."""
    small = s2 < POLYNOMIAL_BELOW
    low = jnp.where(small, s2, 0.0)
    near = low * (-0.02628417880 + low * (-0.07117647788 + low * 0.08534541323))
    away = jnp.where(small, 0.1, damping)
    lam = D + away
    rest = 15 * E + lam * (6 * C * (1 + f * s2) + lam * (4 * B + lam * 8 * A))
    sum_rule = 0.75 * math.pi * (1 - math.sqrt(A) * scaled_complement(POLE * away))
    power = lam * lam * lam * jnp.sqrt(lam)
    far = -(16 / (15 * math.sqrt(math.pi)) * power * sum_rule + rest / 15)
    return jnp.where(small, near, far)


def _screened(v: Variables) -> Float[Array, "*grid"]:
    return short_range_pbe(v, 0.11)


HSE06 = Functional(
    # J. Heyd, G. E. Scuseria, J. Chem. Phys. 121, 1187 (2004), doi:10.1063/1.1760074, with the
    # omega of A. V. Krukau et al., J. Chem. Phys. 125, 224106 (2006), doi:10.1063/1.2404663.
    name="hse06",
    kind="gga",
    exact_exchange=0.25,
    definition="libxc 428 (HYB_GGA_XC_HSE06): 0.25 HF - 0.25 HF of erf(0.11 r)/r"
    " + GGA_X_WPBEH(524) - 0.25 of GGA_X_WPBEH(524) with omega 0.11 + GGA_C_PBE(130)",
    pyscf_name="428",
    terms=(
        Term(1.0, partial(short_range_pbe, omega=0.0), "exchange"),
        Term(-0.25, _screened, "exchange"),
        Term(1.0, pbe_correlation, "correlation"),
    ),
    long_range_exchange=-0.25,
    omega=0.11,
)

"""TPSS: exchange and correlation without parameters that were fitted to molecules.

J. Tao, J. P. Perdew, V. N. Staroverov, G. E. Scuseria, Phys. Rev. Lett. 91, 146401 (2003),
doi:10.1103/PhysRevLett.91.146401, with the digits of libxc MGGA_X_TPSS (202) and MGGA_C_TPSS (231).
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from pyscf_ipu.xc.semilocal.correlation import (
    PBE_GAMMA,
    gradient_corrected,
    pbe_correlation,
    t_squared,
)
from pyscf_ipu.xc.semilocal.exchange import s_squared, slater
from pyscf_ipu.xc.semilocal.functionals import Functional, Term
from pyscf_ipu.xc.semilocal.spin import POLARISED, perdew_wang
from pyscf_ipu.xc.semilocal.variables import Variables

UNIFORM = 0.3 * (3 * math.pi**2) ** (2 / 3)
"""tau / rho^(5/3) of the uniform gas."""
KAPPA, MU, B, C, E = 0.804, 0.21951, 0.40, 1.59096, 1.537
D = 2.8


def weizsaecker_share(v: Variables) -> Float[Array, "*grid"]:
    """z = tau_W / tau in [0, 1], tau_W = sigma / (8 rho)."""
    return v.x2 / (8 * v.kinetic)


def exchange(v: Variables) -> Float[Array, "*grid"]:
    """Hartree per electron: eqs. 5 to 10 of the paper.

    Every summand of the numerator is divided by a part of the denominator (1 + sqrt(e) p)^2 before
    it is multiplied: powers of p = s^2 alone leave the range of float32.
    """
    p, z = s_squared(v), weizsaecker_share(v)
    alpha = (v.kinetic - v.x2 / 8) / UNIFORM
    divided = 1 / (1 + math.sqrt(E) * p)
    part = p * divided
    bend = 0.45 * (alpha - 1) / jnp.sqrt(1 + B * alpha * (alpha - 1)) * divided
    q, z_part = bend + 2 / 3 * part, z * divided
    # The root has no derivative at zero; what is added there changes no digit of the result.
    root = jnp.sqrt(0.5 * (9 / 25 * z_part * z_part + part * part) + 1e-20)
    ratio = z / (1 + z * z)
    x = (
        (10 / 81 + C * ratio * ratio) * part * divided
        + 146 / 2025 * q * q
        - 73 / 405 * q * root
        + (10 / 81) ** 2 / KAPPA * part * part
        + 2 * math.sqrt(E) * 10 / 81 * 9 / 25 * z_part * z_part
        + E * MU * part * part * p
    )
    return slater(v) * (1 + KAPPA - KAPPA * KAPPA / (KAPPA + x))


def correlation(v: Variables) -> Float[Array, "*grid"]:
    """Hartree per electron: eqs. 11 to 14 of the paper."""
    z = weizsaecker_share(v)
    whole = pbe_correlation(v)
    # A gas of one spin, with half of the density and of its slope: r_s is 2^(1/3) times as large
    # and phi is 2^(-1/3), hence t^2 is twice as large, and gamma phi^3 half of PBE's gamma.
    one = v.each
    one_spin = gradient_corrected(
        perdew_wang(2 ** (1 / 3) * one.rs, POLARISED), 2 * t_squared(one), PBE_GAMMA / 2
    )
    larger = jnp.where(one_spin > whole, one_spin, whole)
    z2, c = z * z, _polarised_c(v)
    revised = whole * (1 + c * z2) - (1 + c) * z2 * v.average(larger)
    return revised * (1 + D * revised * z2 * z)


def _polarised_c(v: Variables) -> Float[Array, "*grid"] | float:
    """C(zeta, xi) of eqs. 13 and 14.

    xi^2 / 2 ((1 + zeta)^(-4/3) + (1 - zeta)^(-4/3)) is written without a negative power.
    """
    if v.spins is None:
        return 0.53
    (a, b), (x2_a, x2_b) = v.spins.root, v.spins.each.x2
    zeta2 = v.spins.zeta**2
    slopes = a * a * x2_a + b * b * x2_b - 2 * a * b * v.spins.cross
    xi2 = (a * b) ** 2 * (a**4 + b**4) / (32 * (3 * math.pi**2) ** (2 / 3)) * slopes
    damping = 1 / (1 + xi2)
    return (0.53 + zeta2 * (0.87 + zeta2 * (0.50 + zeta2 * 2.26))) * damping**4


TPSS = Functional(
    name="tpss",
    kind="mgga",
    exact_exchange=0.0,
    definition="MGGA_X_TPSS(202) + MGGA_C_TPSS(231) of libxc",
    pyscf_name="tpss",
    terms=(Term(1.0, exchange, "exchange"), Term(1.0, correlation, "correlation")),
)

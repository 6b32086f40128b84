"""Correlation energies per electron, closed shell.

Each function takes `Variables` and returns Hartree per electron at every grid point; the energy
density per volume is rho times that.  Constants are those of libxc (S. Lehtola et al., SoftwareX
7, 1 (2018), doi:10.1016/j.softx.2017.11.002), which sometimes carry more digits than the papers.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from pyscf_ipu.xc.semilocal.spin import UNPOLARISED, perdew_wang
from pyscf_ipu.xc.semilocal.variables import RS_OVER_INVERSE_CBRT, Variables, arctan

PBE_GAMMA = (1 - math.log(2)) / math.pi**2
PBE_BETA = 0.06672455060314922


def _vosko_wilk_nusair(
    v: Variables, b: float, c: float, x0: float, a: float = 0.0310907
) -> Float[Array, "*grid"]:
    """Pade form of VWN eq. 4.4 with x = sqrt(r_s) and X(x) = x^2 + b x + c.

    Both logarithms are written as -log1p of a positive quantity: ln(x^2/X) and ln((x-x0)^2/X) lose
    their digits at low density, where the whole expression is a small difference.
    """
    q = math.sqrt(4 * c - b * b)
    weight = b * x0 / (x0 * x0 + b * x0 + c)
    x = jnp.sqrt(v.rs)
    angle = arctan(q / (2 * x + b))
    log_x = -jnp.log1p((b * x + c) / (x * x))
    distance = x - x0
    log_x0 = -jnp.log1p(((2 * x0 + b) * x + c - x0 * x0) / (distance * distance))
    angle_weight = 2 * (b - weight * (b + 2 * x0)) / q
    return a * (log_x - weight * log_x0 + angle_weight * angle)


def vwn5(v: Variables) -> Float[Array, "*grid"]:
    """Vosko-Wilk-Nusair fit to Ceperley-Alder, libxc LDA_C_VWN (7), "VWN5".

    S. H. Vosko, L. Wilk, M. Nusair, Can. J. Phys. 58, 1200 (1980), doi:10.1139/p80-159.
    """
    return _vosko_wilk_nusair(v, b=3.72744, c=12.9352, x0=-0.10498)


def vwn_rpa(v: Variables) -> Float[Array, "*grid"]:
    """Vosko-Wilk-Nusair fit to the random-phase approximation, libxc LDA_C_VWN_RPA (8).

    Same paper as :func:`vwn5`; this is the variant inside the B3LYP of Gaussian.
    """
    return _vosko_wilk_nusair(v, b=13.0720, c=42.7198, x0=-0.409286)


def pw92(v: Variables) -> Float[Array, "*grid"]:
    """Perdew-Wang 1992, libxc LDA_C_PW_MOD (13), the variant with more digits that PBE builds on.

    J. P. Perdew, Y. Wang, Phys. Rev. B 45, 13244 (1992), eq. 10, doi:10.1103/PhysRevB.45.13244.
    """
    return perdew_wang(v.rs, UNPOLARISED)


def pbe_correlation(v: Variables) -> Float[Array, "*grid"]:
    """Perdew-Burke-Ernzerhof correlation, libxc GGA_C_PBE (130).

    J. P. Perdew, K. Burke, M. Ernzerhof, Phys. Rev. Lett. 77, 3865 (1996), eqs. 7-8,
    doi:10.1103/PhysRevLett.77.3865.  With y = (beta/gamma) t^2, E = exp(-eps/gamma) - 1 = y/(A t^2)
    and u = y/(E + y) in [0, 1), their argument (beta/gamma) t^2 (1 + A t^2)/(1 + A t^2 + A^2 t^4)
    is E u / (1 - u (1 - u)): no power of the unbounded t survives.
    """
    return gradient_corrected(pw92(v), t_squared(v), PBE_GAMMA)


def t_squared(v: Variables) -> Float[Array, "*grid"]:
    """t^2 = sigma / (4 k_s^2 rho^2) with k_s^2 = 4 k_F / pi and k_F = (3 pi^2 rho)^(1/3)."""
    return math.pi / (16 * (3 * math.pi**2) ** (1 / 3)) * v.cbrt * v.x2


def gradient_corrected(
    uniform: Float[Array, "*grid"], t2: Float[Array, "*grid"], gamma: float
) -> Float[Array, "*grid"]:
    """PBE's energy per electron from that of the uniform gas.

    `uniform`, t^2 and `gamma`, which is PBE_GAMMA phi^3, belong to one polarisation.
    """
    y = PBE_BETA / PBE_GAMMA * t2
    e = jnp.expm1(-uniform / gamma)
    # The smaller share first: u near one would lose the digits of its derivative.
    low = y < e
    share = jnp.where(low, y, e) / (e + y)
    u = jnp.where(low, share, 1 - share)
    return uniform + gamma * jnp.log1p(e * u / (1 - u * (1 - u)))


def lyp(v: Variables) -> Float[Array, "*grid"]:
    """Lee-Yang-Parr, libxc GGA_C_LYP (131), Laplacian removed by partial integration.

    C. Lee, W. Yang, R. G. Parr, Phys. Rev. B 37, 785 (1988), doi:10.1103/PhysRevB.37.785, in the
    form of B. Miehlich et al., Chem. Phys. Lett. 157, 200 (1989), eq. 2,
    doi:10.1016/0009-2614(89)87234-3.  With equal spin densities its bracket collapses to
    rho^(14/3) (C_F - x^2 (3 + 7 delta) / 72), x^2 = sigma / rho^(8/3).
    """
    a, b, c, d = 0.04918, 0.132, 0.2533, 0.349
    thomas_fermi = 0.3 * (3 * math.pi**2) ** (2 / 3)
    radius = 1 / v.cbrt
    screening = 1 / (1 + d * radius)
    delta = radius * (c + d * screening)
    bracket = thomas_fermi - v.x2 * (3 + 7 * delta) / 72
    return -a * screening * (1 + b * jnp.exp(-c * radius) * bracket)


def p86(v: Variables) -> Float[Array, "*grid"]:
    """Perdew's correlation of 1986, libxc GGA_C_P86 (132).

    J. P. Perdew, Phys. Rev. B 33, 8822 (1986), eqs. 4-9, doi:10.1103/PhysRevB.33.8822: the uniform
    gas of Perdew and Zunger, and x^2 C(r_s) exp(-Phi) with x^2 = sigma / rho^(7/3).
    """
    alpha, beta, gamma, delta = 0.023266, 7.389e-6, 8.723, 0.472
    limit, f_tilde = 0.001667 + 0.002568, 1.745 * 0.11
    rs = v.rs
    above = 0.002568 + rs * (alpha + rs * beta)
    c = 0.001667 + above / (1 + rs * (gamma + rs * (delta + rs * 1e4 * beta)))
    x2 = v.cbrt * v.x2
    # The root has no derivative at zero; what is added there changes no digit of the result.
    phi = f_tilde * limit / c * jnp.sqrt(x2 + 1e-20)
    return _perdew_zunger(v) + x2 * c * jnp.exp(-phi)


def _perdew_zunger(v: Variables) -> Float[Array, "*grid"]:
    """The unpolarised uniform gas, libxc LDA_C_PZ (9).

    J. P. Perdew, A. Zunger, Phys. Rev. B 23, 5048 (1981), appendix C,
    doi:10.1103/PhysRevB.23.5048.
    """
    rs = v.rs
    # Logarithm of r_s from that of the density: one factor fewer to round.
    log_rs = math.log(RS_OVER_INVERSE_CBRT) - jnp.log(v.cbrt)
    dense = 0.0311 * log_rs - 0.048 + rs * (0.0020 * log_rs - 0.0116)
    thin = -0.1423 / (1 + 1.0529 * jnp.sqrt(rs) + 0.3334 * rs)
    return jnp.where(rs < 1, dense, thin)

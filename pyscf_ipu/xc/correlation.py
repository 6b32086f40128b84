"""Correlation energies per electron, closed shell.

Each function takes :class:`~pyscf_ipu.xc.variables.Variables` and returns Hartree per electron at
every grid point; the energy density per volume is rho times that.  Constants are those of libxc
(S. Lehtola et al., SoftwareX 7, 1 (2018), doi:10.1016/j.softx.2017.11.002), which sometimes carry
more digits than the papers.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from pyscf_ipu.xc.variables import Variables, arctan

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
    a = 0.0310907
    rs = v.rs
    root = jnp.sqrt(rs)
    series = root * (7.5957 + root * (3.5876 + root * (1.6382 + root * 0.49294)))
    return -2 * a * (1 + 0.21370 * rs) * jnp.log1p(1 / (2 * a * series))


def pbe_correlation(v: Variables) -> Float[Array, "*grid"]:
    """Perdew-Burke-Ernzerhof correlation, libxc GGA_C_PBE (130).

    J. P. Perdew, K. Burke, M. Ernzerhof, Phys. Rev. Lett. 77, 3865 (1996), eqs. 7-8,
    doi:10.1103/PhysRevLett.77.3865.  With y = (beta/gamma) t^2, E = exp(-eps/gamma) - 1 = y/(A t^2)
    and u = y/(E + y) in [0, 1), their argument (beta/gamma) t^2 (1 + A t^2)/(1 + A t^2 + A^2 t^4)
    is E u / (1 - u (1 - u)): no power of the unbounded t survives.
    """
    uniform = pw92(v)
    # t^2 = sigma / (4 k_s^2 rho^2) with k_s^2 = 4 k_F / pi and k_F = (3 pi^2 rho)^(1/3).
    t2 = math.pi / (16 * (3 * math.pi**2) ** (1 / 3)) * v.cbrt * v.x2
    y = PBE_BETA / PBE_GAMMA * t2
    e = jnp.expm1(-uniform / PBE_GAMMA)
    # The smaller share first: u near one would lose the digits of its derivative.
    low = y < e
    share = jnp.where(low, y, e) / (e + y)
    u = jnp.where(low, share, 1 - share)
    return uniform + PBE_GAMMA * jnp.log1p(e * u / (1 - u * (1 - u)))


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

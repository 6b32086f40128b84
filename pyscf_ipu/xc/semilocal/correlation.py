"""Correlation energies per electron, of closed shells or of two spins.

Each function takes `Variables` and returns Hartree per electron at every grid point; the energy
density per volume is rho times that.  Constants are those of libxc (S. Lehtola et al., SoftwareX
7, 1 (2018), doi:10.1016/j.softx.2017.11.002), which sometimes carry more digits than the papers.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from pyscf_ipu.xc.semilocal.elementary import arctan
from pyscf_ipu.xc.semilocal.spin import CURVATURE, polarise, uniform_gas
from pyscf_ipu.xc.semilocal.variables import RS_OVER_INVERSE_CBRT, Variables

PBE_GAMMA = (1 - math.log(2)) / math.pi**2
PBE_BETA = 0.06672455060314922
_HALF_A = 0.01554535
"""The factor of Vosko, Wilk and Nusair for the polarised gas."""


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
    if q > 2 * b:  # more than arctan takes: half of the angle, since (2x + b)^2 + q^2 = 4 X
        angle = 2 * arctan(q / (2 * x + b + 2 * jnp.sqrt(x * x + b * x + c)))
    else:
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
    unpolarised = _vosko_wilk_nusair(v, b=3.72744, c=12.9352, x0=-0.10498)
    if v.spins is None:
        return unpolarised
    polarised = _vosko_wilk_nusair(v, b=7.06042, c=18.0578, x0=-0.32500, a=_HALF_A)
    stiffness = _vosko_wilk_nusair(
        v, b=1.13107, c=13.0045, x0=-0.0047584, a=-1 / (6 * math.pi**2 * CURVATURE)
    )
    return polarise(v.spins, unpolarised, (polarised, stiffness))


def vwn_rpa(v: Variables) -> Float[Array, "*grid"]:
    """Vosko-Wilk-Nusair fit to the random-phase approximation, libxc LDA_C_VWN_RPA (8).

    Same paper as :func:`vwn5`; this is the variant inside the B3LYP of Gaussian.
    """
    unpolarised = _vosko_wilk_nusair(v, b=13.0720, c=42.7198, x0=-0.409286)
    if v.spins is None:
        return unpolarised
    polarised = _vosko_wilk_nusair(v, b=20.1231, c=101.578, x0=-0.743294, a=_HALF_A)
    return unpolarised + v.spins.interpolation * (polarised - unpolarised)


def pw92(v: Variables) -> Float[Array, "*grid"]:
    """Perdew-Wang 1992, libxc LDA_C_PW_MOD (13), the variant with more digits that PBE builds on.

    J. P. Perdew, Y. Wang, Phys. Rev. B 45, 13244 (1992), eq. 10, doi:10.1103/PhysRevB.45.13244.
    """
    return uniform_gas(v)


def pbe_correlation(v: Variables) -> Float[Array, "*grid"]:
    """Perdew-Burke-Ernzerhof correlation, libxc GGA_C_PBE (130).

    J. P. Perdew, K. Burke, M. Ernzerhof, Phys. Rev. Lett. 77, 3865 (1996), eqs. 7-8,
    doi:10.1103/PhysRevLett.77.3865.  With y = (beta/gamma) t^2, E = exp(-eps/gamma) - 1 = y/(A t^2)
    and u = y/(E + y) in [0, 1), their argument (beta/gamma) t^2 (1 + A t^2)/(1 + A t^2 + A^2 t^4)
    is E u / (1 - u (1 - u)): no power of the unbounded t survives.
    """
    return gradient_corrected(pw92(v), t_squared(v), PBE_GAMMA * v.mean_power(2) ** 3)


def t_squared(v: Variables) -> Float[Array, "*grid"]:
    """t^2 = sigma / (2 phi k_s rho)^2 with k_s^2 = 4 k_F / pi and k_F = (3 pi^2 rho)^(1/3).

    phi is the mean of (1 + zeta)^(2/3) and (1 - zeta)^(2/3).
    """
    scale = math.pi / (16 * (3 * math.pi**2) ** (1 / 3)) / v.mean_power(2) ** 2
    return scale * v.cbrt * v.x2


def gradient_corrected(
    uniform: Float[Array, "*grid"],
    t2: Float[Array, "*grid"],
    gamma: Float[Array, "*grid"] | float,
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
    radius = 1 / v.cbrt
    screening = 1 / (1 + d * radius)
    delta = radius * (c + d * screening)
    pairs, bracket = _lyp_bracket(v, delta)
    return -a * screening * (pairs + b * jnp.exp(-c * radius) * bracket)


def _lyp_bracket(
    v: Variables, delta: Float[Array, "*grid"]
) -> tuple[Float[Array, "*grid"] | float, Float[Array, "*grid"]]:
    """4 rho_a rho_b / rho^2, and the bracket of Miehlich's eq. 2 over rho^(14/3).

    Its last lines are -4/3 rho^2 sigma_ab - rho_a^2 sigma_bb - rho_b^2 sigma_aa, which vanish with
    either spin without a difference of large numbers.
    """
    thomas_fermi = 0.3 * (3 * math.pi**2) ** (2 / 3)
    if v.spins is None:
        return 1.0, thomas_fermi - v.x2 * (3 + 7 * delta) / 72
    share, root = v.spins.share, v.spins.root
    power = root**8
    own = power * v.spins.each.x2 / 4  # sigma_aa / rho^(8/3), sigma_bb / rho^(8/3)
    cross = (root[0] * root[1]) ** 4 * v.spins.cross / 4
    both = share[0] * share[1]
    product = (
        2 * thomas_fermi * (power[0] + power[1])
        + (47 - 7 * delta) / 18 * v.x2
        - (2.5 - delta / 18) * (own[0] + own[1])
        - (delta - 11) / 9 * (share * own).sum(0)
    )
    others = share[::-1]
    return 4 * both, both * product - 4 / 3 * cross - (others * others * own).sum(0)


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
    uniform = _perdew_zunger(v, _UNPOLARISED_ZUNGER)
    gradient = x2 * c * jnp.exp(-phi)
    if v.spins is None:
        return uniform + gradient
    polarised = _perdew_zunger(v, _POLARISED_ZUNGER)
    uniform = uniform + v.spins.interpolation * (polarised - uniform)
    return uniform + gradient / jnp.sqrt(v.mean_power(5))


_UNPOLARISED_ZUNGER = (0.0311, 0.048, 0.0020, 0.0116), (-0.1423, 1.0529, 0.3334)
_POLARISED_ZUNGER = (0.01555, 0.0269, 0.0007, 0.0048), (-0.0843, 1.3981, 0.2611)


def _perdew_zunger(
    v: Variables, fit: tuple[tuple[float, float, float, float], tuple[float, float, float]]
) -> Float[Array, "*grid"]:
    """The unpolarised or polarised uniform gas, libxc LDA_C_PZ (9).

    J. P. Perdew, A. Zunger, Phys. Rev. B 23, 5048 (1981), appendix C,
    doi:10.1103/PhysRevB.23.5048.
    """
    (a, b, c, d), (gamma, beta1, beta2) = fit
    rs = v.rs
    # Logarithm of r_s from that of the density: one factor fewer to round.
    log_rs = math.log(RS_OVER_INVERSE_CBRT) - jnp.log(v.cbrt)
    dense = a * log_rs - b + rs * (c * log_rs - d)
    thin = gamma / (1 + beta1 * jnp.sqrt(rs) + beta2 * rs)
    return jnp.where(rs < 1, dense, thin)

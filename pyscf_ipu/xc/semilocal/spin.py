"""The uniform gas of Perdew and Wang, and its correlation split by the spins of the two electrons.

Functionals that are power series in a spin's gradient weight the correlation of electrons of equal
and of opposite spin by themselves: H. Stoll, C. M. E. Pavlidou, H. Preuss, Theor. Chim. Acta 49,
143 (1978), doi:10.1007/BF02399063, as in A. D. Becke, J. Chem. Phys. 107, 8554 (1997),
doi:10.1063/1.475007.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from pyscf_ipu.xc.semilocal.variables import Spins, Variables


class Fit(NamedTuple):
    """Parameters of Perdew and Wang's G for one polarisation; all of them with p = 1."""

    a: float
    alpha1: float
    betas: tuple[float, float, float, float]


_BETAS = (7.5957, 3.5876, 1.6382, 0.49294)
_POLARISED_BETAS = (14.1189, 6.1977, 3.3662, 0.62517)
_STIFFNESS_BETAS = (10.357, 3.6231, 0.88026, 0.49671)


class UniformGas(NamedTuple):
    """Perdew and Wang's uniform gas; `stiffness` is minus d^2/dzeta^2 at zero."""

    unpolarised: Fit
    polarised: Fit
    stiffness: Fit
    curvature: float  # second derivative of f(zeta) at zero


CURVATURE = 8 / (9 * (2 ** (4 / 3) - 2))
"""The second derivative of f(zeta) at zero."""
UNPOLARISED = Fit(0.0310907, 0.21370, _BETAS)
POLARISED = Fit(0.01554535, 0.20548, _POLARISED_BETAS)
GAS = UniformGas(
    UNPOLARISED, POLARISED, Fit(0.0168869, 0.11125, _STIFFNESS_BETAS), curvature=CURVATURE
)
"""With more digits of A than in the paper, as PBE has them: libxc LDA_C_PW_MOD (13)."""
PAPER = UniformGas(
    Fit(0.031091, 0.21370, _BETAS),
    Fit(0.015545, 0.20548, _POLARISED_BETAS),
    Fit(0.016887, 0.11125, _STIFFNESS_BETAS),
    curvature=1.709921,
)
"""With the digits of the paper: libxc LDA_C_PW (12)."""


def perdew_wang(rs: Float[Array, "*grid"], fit: Fit) -> Float[Array, "*grid"]:
    """Hartree per electron of the uniform gas.

    J. P. Perdew, Y. Wang, Phys. Rev. B 45, 13244 (1992), eq. 10, doi:10.1103/PhysRevB.45.13244.
    """
    a, (b1, b2, b3, b4) = fit.a, fit.betas
    root = jnp.sqrt(rs)
    series = root * (b1 + root * (b2 + root * (b3 + root * b4)))
    return -2 * a * (1 + fit.alpha1 * rs) * jnp.log1p(1 / (2 * a * series))


def uniform_gas(v: Variables, gas: UniformGas = GAS) -> Float[Array, "*grid"]:
    """Hartree per electron at any polarisation."""
    unpolarised = perdew_wang(v.rs, gas.unpolarised)
    if v.spins is None:
        return unpolarised
    stiffness = -perdew_wang(v.rs, gas.stiffness) / gas.curvature
    return polarise(v.spins, unpolarised, (perdew_wang(v.rs, gas.polarised), stiffness))


def polarise(
    spins: Spins,
    unpolarised: Float[Array, "*grid"],
    others: tuple[Float[Array, "*grid"], Float[Array, "*grid"]],
) -> Float[Array, "*grid"]:
    """A value between those of the unpolarised and the polarised gas.

    S. H. Vosko, L. Wilk, M. Nusair, Can. J. Phys. 58, 1200 (1980), doi:10.1139/p80-159; eq. 8 of
    Perdew and Wang.  `others` are the value of the polarised gas and the spin stiffness over the
    curvature of f.
    """
    polarised, stiffness = others
    f, z2 = spins.interpolation, spins.zeta * spins.zeta
    z4 = z2 * z2
    return unpolarised + f * (z4 * (polarised - unpolarised) + (1 - z4) * stiffness)


def by_spins(
    v: Variables, gas: UniformGas = GAS
) -> tuple[Float[Array, "..."], Float[Array, "*grid"]]:
    """Correlation per electron of electrons of equal spin, and of opposite spin.

    Equal spin: that of a polarised gas with the density of one spin; [2, *grid] unless shells are
    closed, to be averaged by :meth:`Variables.average`.
    """
    same = perdew_wang(2 ** (1 / 3) * v.each.rs, gas.polarised)
    if v.spins is None:
        return same, uniform_gas(v, gas) - same
    return same, _opposite(v, v.spins, same, gas=gas)


def _opposite(
    v: Variables, spins: Spins, same: Float[Array, "spin=2 *grid"], gas: UniformGas
) -> Float[Array, "*grid"]:
    """Correlation of the uniform gas less that of electrons of equal spin.

    It vanishes with the rarer spin, and its derivatives meet the large slopes of that spin's
    reduced gradient: written as a sum of what vanishes one by one.  All energies are taken relative
    to the polarised gas, and 1 - f and 1 - zeta^4 from the rarer spin's share.
    """
    polarised = perdew_wang(v.rs, gas.polarised)
    relative = perdew_wang(v.rs, gas.unpolarised) - polarised
    stiffness = -perdew_wang(v.rs, gas.stiffness) / gas.curvature
    # One choice for all: where spins are equal, too, derivatives have to be those of one spin.
    is_alpha = spins.share[0] < spins.share[1]
    share, root, of_rarer = (
        jnp.where(is_alpha, alpha, beta) for alpha, beta in (spins.share, spins.root, same)
    )
    log_other = jnp.log1p(-share)
    lack = -(2 ** (4 / 3)) * jnp.expm1(4 / 3 * log_other) - root**4
    lack = lack / (2 ** (4 / 3) - 2)  # 1 - f
    z2 = spins.zeta * spins.zeta
    even = 4 * share * (1 - share) * (1 + z2)  # 1 - zeta^4
    between = lack * relative + (1 - lack) * even * (relative + stiffness)
    rise = _rise(v.rs, gas.polarised, -log_other / 6)
    return between + share * (polarised - of_rarer) - (1 - share) * rise


def _rise(
    rs: Float[Array, "*grid"], fit: Fit, exponent: Float[Array, "*grid"]
) -> Float[Array, "*grid"]:
    """Increase of Perdew and Wang's energy from r_s to r_s exp(2 exponent), however small that is.

    With h = exp(exponent) - 1, a power of the root grows by (1 + h)^i - 1, written as a product.
    """
    a, (b1, b2, b3, b4) = fit.a, fit.betas
    root, h = jnp.sqrt(rs), jnp.expm1(exponent)
    h2 = h * (2 + h)
    h3, h4 = h * (3 + h * (3 + h)), h2 * (2 + h2)
    q = 2 * a * root * (b1 + root * (b2 + root * (b3 + root * b4)))
    growth = 2 * a * root * (b1 * h + root * (b2 * h2 + root * (b3 * h3 + root * b4 * h4)))
    after = q + growth
    fall = jnp.log1p(growth / (q * (1 + after)))
    return 2 * a * ((1 + fit.alpha1 * rs) * fall - fit.alpha1 * rs * h2 * jnp.log1p(1 / after))

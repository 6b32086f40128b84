"""The uniform gas of Perdew and Wang, and its correlation split by the spins of the two electrons.

Functionals that are power series in a spin's gradient weight the correlation of electrons of equal
and of opposite spin by themselves: H. Stoll, C. M. E. Pavlidou, H. Preuss, Theor. Chim. Acta 49,
143 (1978), doi:10.1007/BF02399063, as in A. D. Becke, J. Chem. Phys. 107, 8554 (1997),
doi:10.1063/1.475007.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from pyscf_ipu.xc.semilocal.variables import Variables


class Fit(NamedTuple):
    """Parameters of Perdew and Wang's G for one polarisation; all of them with p = 1."""

    a: float
    alpha1: float
    betas: tuple[float, float, float, float]


_BETAS = (7.5957, 3.5876, 1.6382, 0.49294)
_POLARISED_BETAS = (14.1189, 6.1977, 3.3662, 0.62517)
UNPOLARISED = Fit(0.0310907, 0.21370, _BETAS)
POLARISED = Fit(0.01554535, 0.20548, _POLARISED_BETAS)
"""With more digits of A than in the paper, as PBE has them: libxc LDA_C_PW_MOD (13)."""
PAPER = Fit(0.031091, 0.21370, _BETAS), Fit(0.015545, 0.20548, _POLARISED_BETAS)
"""Unpolarised and polarised, with the digits of the paper: libxc LDA_C_PW (12)."""


def perdew_wang(rs: Float[Array, "*grid"], fit: Fit) -> Float[Array, "*grid"]:
    """Hartree per electron of the uniform gas.

    J. P. Perdew, Y. Wang, Phys. Rev. B 45, 13244 (1992), eq. 10, doi:10.1103/PhysRevB.45.13244.
    """
    a, (b1, b2, b3, b4) = fit.a, fit.betas
    root = jnp.sqrt(rs)
    series = root * (b1 + root * (b2 + root * (b3 + root * b4)))
    return -2 * a * (1 + fit.alpha1 * rs) * jnp.log1p(1 / (2 * a * series))


def by_spins(
    v: Variables, unpolarised: Fit = UNPOLARISED, polarised: Fit = POLARISED
) -> tuple[Float[Array, "*grid"], Float[Array, "*grid"]]:
    """Correlation per electron of electrons of equal spin (both spins), and of opposite spin.

    Equal spin: that of a polarised gas with the density of one spin.
    """
    same = perdew_wang(2 ** (1 / 3) * v.rs, polarised)
    return same, perdew_wang(v.rs, unpolarised) - same

"""Exchange energies per electron, closed shell; `functionals` scales them to two spins.

Each function takes `Variables` and returns Hartree per electron at every grid point; the energy
density per volume is rho times that.
"""

import math

from jaxtyping import Array, Float

from pyscf_ipu.xc.semilocal.elementary import x_arcsinh_x
from pyscf_ipu.xc.semilocal.variables import Variables

B88_BETA = 0.0042
PBE_MU = 0.2195149727645171
"""With the digits of libxc: beta pi^2 / 3."""


def slater(v: Variables) -> Float[Array, "*grid"]:
    """Dirac-Slater exchange of the uniform electron gas, libxc LDA_X (1).

    P. A. M. Dirac, Math. Proc. Camb. Phil. Soc. 26, 376 (1930), doi:10.1017/S0305004100016108.
    """
    return -0.75 * (3 / math.pi) ** (1 / 3) * v.cbrt


def b88(v: Variables) -> Float[Array, "*grid"]:
    """Becke's 1988 exchange, Slater part included, libxc GGA_X_B88 (106).

    A. D. Becke, Phys. Rev. A 38, 3098 (1988), eq. 8, doi:10.1103/PhysRevA.38.3098.  The paper's x
    belongs to one spin: with half the density and half the gradient, x^2 = 2^(2/3) sigma/rho^(8/3).
    """
    x2 = 2 ** (2 / 3) * v.x2
    gradient = -B88_BETA * 2 ** (-1 / 3) * v.cbrt * x2 / (1 + 6 * B88_BETA * x_arcsinh_x(x2))
    return slater(v) + gradient


def pbe_exchange(v: Variables) -> Float[Array, "*grid"]:
    """Perdew-Burke-Ernzerhof exchange, libxc GGA_X_PBE (101).

    J. P. Perdew, K. Burke, M. Ernzerhof, Phys. Rev. Lett. 77, 3865 (1996), eqs. 10-14,
    doi:10.1103/PhysRevLett.77.3865.
    """
    kappa = 0.8040
    return slater(v) * (1 + kappa - kappa / (1 + PBE_MU / kappa * s_squared(v)))


def revpbe_exchange(v: Variables) -> Float[Array, "*grid"]:
    """The revised form, with another kappa, libxc GGA_X_PBE_R (102).

    Y. Zhang, W. Yang, Phys. Rev. Lett. 80, 890 (1998), doi:10.1103/PhysRevLett.80.890.  Written
    without 1 + kappa, whose rounding in float32 would be a bias.
    """
    s2, kappa = s_squared(v), 1.245
    return slater(v) * (1 + PBE_MU * s2 / (1 + PBE_MU / kappa * s2))


def s_squared(v: Variables) -> Float[Array, "*grid"]:
    """s^2 = sigma / (2 k_F rho)^2 with k_F = (3 pi^2 rho)^(1/3), dimensionless."""
    return v.x2 / (4 * (3 * math.pi**2) ** (2 / 3))

"""M06-2X: power series in the kinetic energy density around PBE's exchange and the uniform gas.

Y. Zhao, D. G. Truhlar, Theor. Chem. Acc. 120, 215 (2008), doi:10.1007/s00214-007-0310-x, with the
digits of libxc HYB_MGGA_X_M06_2X (450) and MGGA_C_M06_2X (236).  Of the two series of its
correlation one is that of B97, the other that of T. Van Voorhis, G. E. Scuseria, J. Chem. Phys.
109, 400 (1998), doi:10.1063/1.476577.
"""

from jaxtyping import Array, Float

from pyscf_ipu.xc.semilocal.exchange import pbe_exchange
from pyscf_ipu.xc.semilocal.functionals import Functional, Term
from pyscf_ipu.xc.semilocal.spin import by_spins
from pyscf_ipu.xc.semilocal.variables import Variables
from pyscf_ipu.xc.separated.b97 import UNIFORM, kinetic_share, power_series, share

EXCHANGE = (
    0.46, -0.2206052, -0.09431788, 2.164494, -2.556466, -14.22133,
    15.55044, 35.98078, -27.22754, -39.24093, 15.22808, 15.22227,
)  # fmt: skip

SAME = (0.3097855, -5.528642, 13.47420, -32.13623, 28.46742)
OPPOSITE = (0.8833596, 33.57972, -70.43548, 49.78271, -18.52891)
SAME_GAMMA, OPPOSITE_GAMMA = 0.06, 0.0031

SAME_KINETIC = (0.6902145, 0.09847204, 0.2214797, -0.001968264, -0.006775479)
OPPOSITE_KINETIC = (0.1166404, -0.09120847, -0.06726189, 0.0000672058, 0.0008448011)
SAME_ALPHA, OPPOSITE_ALPHA = 0.00515088, 0.00304966


def exchange(v: Variables) -> Float[Array, "*grid"]:
    """Hartree per electron; the exact exchange is not in it."""
    return pbe_exchange(v) * power_series(EXCHANGE, kinetic_share(v))


def correlation(v: Variables) -> Float[Array, "*grid"]:
    """Hartree per electron."""
    same, opposite = by_spins(v)
    # Of one spin, and of both together: x^2 and z add up.
    one = v.each
    x2 = 2 ** (2 / 3) * one.x2
    z = 2 ** (5 / 3) * (one.kinetic - UNIFORM)
    equal = power_series(SAME, share(one, SAME_GAMMA))
    equal = equal + _kinetic_series(SAME_KINETIC, SAME_ALPHA, x2, z=z)
    unequal = power_series(OPPOSITE, share(v.opposite, 2 * OPPOSITE_GAMMA))
    x2, z = (2 * x2, 2 * z) if v.spins is None else (x2.sum(0), z.sum(0))
    unequal = unequal + _kinetic_series(OPPOSITE_KINETIC, OPPOSITE_ALPHA, x2, z=z)
    # No electron is alone with itself: 1 - tau_W / tau.
    hole = 1 - one.x2 / (8 * one.kinetic)
    return v.average(same * hole * equal) + opposite * unequal


def _kinetic_series(
    coefficients: tuple[float, float, float, float, float],
    alpha: float,
    x2: Float[Array, "*grid"],
    z: Float[Array, "*grid"],
) -> Float[Array, "*grid"]:
    """Van Voorhis and Scuseria's eq. 11, whose last term has no weight here.

    x^2 and z are divided by gamma one by one: no power of an unbounded number is formed.
    """
    constant, by_x, by_z, by_xx, by_xz = coefficients
    gamma = 1 + alpha * (x2 + z)
    x, z = x2 / gamma, z / gamma
    return (constant + by_x * x + by_z * z + x * (by_xx * x + by_xz * z)) / gamma


M06_2X = Functional(
    name="m06-2x",
    kind="mgga",
    exact_exchange=0.54,
    definition="0.54 HF + HYB_MGGA_X_M06_2X(450) + MGGA_C_M06_2X(236) of libxc",
    pyscf_name="m062x",
    terms=(Term(1.0, exchange, "exchange"), Term(1.0, correlation, "correlation")),
)

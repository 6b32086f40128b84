"""B97-3c and the omega-B97 family: power series around exchange and correlation of the uniform gas.

The latter have all of the exact exchange at long range, and a part of it at short range.
J.-D. Chai, M. Head-Gordon, J. Chem. Phys. 128, 084106 (2008), doi:10.1063/1.2834918; the last one
in the form of N. Mardirossian, M. Head-Gordon, J. Chem. Phys. 144, 214110 (2016),
doi:10.1063/1.4952647.
Parameters are those of libxc.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from pyscf_ipu.xc.semilocal.exchange import slater
from pyscf_ipu.xc.semilocal.functionals import Functional, Term
from pyscf_ipu.xc.semilocal.spin import GAS, PAPER, UniformGas, by_spins
from pyscf_ipu.xc.semilocal.variables import Variables
from pyscf_ipu.xc.semilocal.vv10 import VV10
from pyscf_ipu.xc.separated.attenuation import short_range_slater

EXCHANGE_GAMMA, SAME_GAMMA, OPPOSITE_GAMMA = 0.004, 0.2, 0.006
WITHOUT_VV10 = ", without its VV10"
"""In the definition of a functional that was fitted with it and has D3(BJ) in its place."""
UNIFORM = 0.3 * (3 * math.pi**2) ** (2 / 3)
"""tau / rho^(5/3) of the uniform gas."""


class Series(NamedTuple):
    """Coefficients of one member: powers of u for exchange, and for correlation by spins."""

    omega: float  # 0.0: the exchange of the whole interaction
    exchange: tuple[float, ...]
    same: tuple[float, ...]
    opposite: tuple[float, ...]


def share(v: Variables, gamma: float) -> Float[Array, "*grid"]:
    """u = gamma x^2 / (1 + gamma x^2) in [0, 1), x^2 = sigma / rho^(8/3) of one spin."""
    x2 = gamma * 2 ** (2 / 3) * v.x2
    return x2 / (1 + x2)


def kinetic_share(v: Variables) -> Float[Array, "*grid"]:
    """w = (t_uniform - t) / (t_uniform + t) in (-1, 1], t = tau / rho^(5/3)."""
    return (UNIFORM - v.kinetic) / (UNIFORM + v.kinetic)


def power_series(coefficients: Sequence[float], u: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """sum_i c_i u^i."""
    total = jnp.full_like(u, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = c + u * total
    return total


class Factors(NamedTuple):
    """Factors on what the uniform gas has of exchange, and of correlation by spins."""

    exchange: Float[Array, "..."]
    same: Float[Array, "..."]
    opposite: Float[Array, "..."]


def _energy(
    v: Variables, factors: Callable[[Variables], Factors], gas: UniformGas, omega: float
) -> Float[Array, "*grid"]:
    """Exchange and correlation per electron; u and w of opposite spins are of averages."""
    one = factors(v.each)
    unequal = one.opposite if v.spins is None else factors(v.opposite).opposite
    same, opposite = by_spins(v, gas)
    uniform = short_range_slater(v.each, omega) if omega else slater(v.each)
    return v.average(uniform * one.exchange + same * one.same) + opposite * unequal


def _factors(series: Series, v: Variables) -> Factors:
    """Factors of a member without kinetic energy density."""
    return Factors(
        power_series(series.exchange, share(v, EXCHANGE_GAMMA)),
        power_series(series.same, share(v, SAME_GAMMA)),
        power_series(series.opposite, share(v, OPPOSITE_GAMMA)),
    )


def _wb97(series: Series, v: Variables) -> Float[Array, "*grid"]:
    """Exchange and correlation per electron of a member without kinetic energy density."""
    return _energy(v, partial(_factors, series), PAPER, omega=series.omega)


def _wb97m_factors(v: Variables) -> Factors:
    w = kinetic_share(v)
    x, s, o = (share(v, gamma) for gamma in (EXCHANGE_GAMMA, SAME_GAMMA, OPPOSITE_GAMMA))
    w2, s2 = w * w, s * s
    w4 = w2 * w2
    exchange = 0.85 + 1.007 * x + 0.259 * w
    equal = 0.443 - 1.437 * s2 * s2 - 4.535 * w - 3.39 * w2 + 4.278 * w4 * s2 * s
    unequal = 1.0 + 1.358 * w + w2 * (2.924 - 8.812 * o) + w4 * w2 * (9.142 * o - 1.39)
    return Factors(exchange, equal, unequal)


def _wb97m(v: Variables) -> Float[Array, "*grid"]:
    """Exchange and correlation per electron of libxc HYB_MGGA_XC_WB97M_V (531)."""
    return _energy(v, _wb97m_factors, GAS, omega=0.3)


def _b97m_factors(v: Variables) -> Factors:
    w = kinetic_share(v)
    x, s, o = (share(v, gamma) for gamma in (EXCHANGE_GAMMA, SAME_GAMMA, OPPOSITE_GAMMA))
    w2 = w * w
    exchange = 1.0 + 0.416 * w + x * (1.308 + 3.07 * w + 1.901 * x)
    equal = 1.0 - 5.668 * w - 1.855 * s * s - w2 * w * s * s * (20.497 + 20.364 * w)
    unequal = 1.0 + 2.535 * w + o * (1.573 - 6.427 * w2 * w * o - 6.298 * o * o)
    return Factors(exchange, equal, unequal)


def _b97m(v: Variables) -> Float[Array, "*grid"]:
    """Exchange and correlation per electron of libxc MGGA_XC_B97M_V (254)."""
    return _energy(v, _b97m_factors, GAS, omega=0.0)


def _member(name: str, libxc: str, exact_exchange: float, series: Series) -> Functional:
    long_range = round(1 - exact_exchange, 9)
    number, label = libxc.split()
    beside = WITHOUT_VV10 if label.endswith("_V") else ""
    return Functional(
        name=name,
        kind="gga",
        exact_exchange=exact_exchange,
        definition=f"libxc {number} ({label}){beside}: {exact_exchange} HF"
        f" + {long_range} HF of erf({series.omega} r)/r + short-range B97",
        pyscf_name=number,
        terms=(Term(1.0, partial(_wb97, series), "both"),),
        long_range_exchange=long_range,
        omega=series.omega,
    )


WB97X = _member(
    "wb97x",
    "464 HYB_GGA_XC_WB97X",
    0.157706,
    series=Series(
        0.3,
        (0.842294, 0.726479, 1.0476, -5.70635, 13.2794),
        (1.0, -4.33879, 18.2308, -31.743, 17.2901),
        opposite=(1.0, 2.37031, -11.3995, 6.58405, -3.78132),
    ),
)

WB97X_D = _member(
    # J.-D. Chai, M. Head-Gordon, Phys. Chem. Chem. Phys. 10, 6615 (2008), doi:10.1039/b810189b.
    "wb97x-d",
    "471 HYB_GGA_XC_WB97X_D",
    0.222036,
    series=Series(
        0.2,
        (0.777964, 0.66116, 0.574541, -5.25671, 11.6386),
        (1.0, -6.90539, 31.3343, -51.0533, 26.4423),
        opposite=(1.0, 1.79413, -12.0477, 14.0847, -8.50809),
    ),
)

WB97X_D3 = _member(
    # Y.-S. Lin et al., J. Chem. Theory Comput. 9, 263 (2013), doi:10.1021/ct300715s.
    "wb97x-d3",
    "399 HYB_GGA_XC_WB97X_D3",
    0.195728,
    series=Series(
        0.25,
        (0.804272, 0.6989, 0.50894, -3.744903, 10.06079),
        (1.0, -4.868902, 21.295726, -36.020866, 19.177018),
        opposite=(1.0, 2.433266, -15.446008, 17.64439, -8.879494),
    ),
)

WB97X_D3BJ = _member(
    # The functional: N. Mardirossian, M. Head-Gordon, Phys. Chem. Chem. Phys. 16, 9904 (2014),
    # doi:10.1039/c3cp54374a.  With D3(BJ): A. Najibi, L. Goerigk, J. Chem. Theory Comput. 14, 5725
    # (2018), doi:10.1021/acs.jctc.8b00842.
    "wb97x-d3bj",
    "466 HYB_GGA_XC_WB97X_V",
    0.167,
    series=Series(0.3, (0.833, 0.603, 1.194), (0.556, -0.257), opposite=(1.219, -1.85)),
)

WB97M_D3BJ = Functional(
    # With D3(BJ) by the same authors, who replaced VV10 in both.
    name="wb97m-d3bj",
    kind="mgga",
    exact_exchange=0.15,
    definition=f"libxc 531 (HYB_MGGA_XC_WB97M_V){WITHOUT_VV10}: 0.15 HF"
    " + 0.85 HF of erf(0.3 r)/r + short-range B97 with the kinetic energy density",
    pyscf_name="531",
    terms=(Term(1.0, _wb97m, "both"),),
    long_range_exchange=0.85,
    omega=0.3,
)


def _with_vv10(name: str, without: Functional) -> Functional:
    """A functional as it was fitted, with VV10."""
    definition = without.definition.replace(WITHOUT_VV10, "") + " + VV10 with b = 6, C = 0.01"
    return replace(without, name=name, definition=definition, vv10=VV10(6.0, 0.01))


WB97X_V = _with_vv10("wb97x-v", WB97X_D3BJ)
# N. Mardirossian, M. Head-Gordon, doi:10.1063/1.4952647.
WB97M_V = _with_vv10("wb97m-v", WB97M_D3BJ)
B97M_V = _with_vv10(
    # N. Mardirossian, M. Head-Gordon, J. Chem. Phys. 142, 074111 (2015), doi:10.1063/1.4907719.
    "b97m-v",
    Functional(
        name="b97m",
        kind="mgga",
        exact_exchange=0.0,
        definition="libxc 254 (MGGA_XC_B97M_V): B97 with the kinetic energy density",
        pyscf_name="254",
        terms=(Term(1.0, _b97m, "both"),),
    ),
)

B97_3C = Functional(
    # J. G. Brandenburg, C. Bannwarth, A. Hansen, S. Grimme, J. Chem. Phys. 148, 064104 (2018),
    # doi:10.1063/1.5012601.
    name="b97-3c",
    kind="gga",
    exact_exchange=0.0,
    definition="libxc 327 (GGA_XC_B97_3C)",
    pyscf_name="327",
    terms=(
        Term(
            1.0,
            partial(
                _wb97,
                Series(
                    0.0,
                    (1.076616, -0.469912, 3.322442),
                    (0.543788, -1.44442, 1.637436),
                    opposite=(0.635047, 5.532103, -15.301575),
                ),
            ),
            "both",
        ),
    ),
)

"""The parameters of each correction by functional, each with its source.

D3 and D4 have them from the papers; the tests compare all of them with those that the packages
`dftd3` and `dftd4` have by name.

D3 with zero damping: S. Grimme et al., J. Chem. Phys. 132, 154104 (2010), doi:10.1063/1.3382344.
D3(BJ): S. Grimme, S. Ehrlich, L. Goerigk, J. Comput. Chem. 32, 1456 (2011), doi:10.1002/jcc.21759.
D4: E. Caldeweyher et al., J. Chem. Phys. 150, 154122 (2019), doi:10.1063/1.5090222.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

D3BJ, D3ZERO, D4, CHAI_HEAD_GORDON = "d3bj", "d3zero", "d4", "chai_head_gordon"

GRIMME_2010, GRIMME_2011, CALDEWEYHER_2019 = (
    "doi:10.1063/1.3382344",
    "doi:10.1002/jcc.21759",
    "doi:10.1063/1.5090222",
)
GOERIGK_2011 = "doi:10.1039/c0cp02984j"
EHLERT_2021 = "doi:10.1063/5.0041008"
NAJIBI_2018 = "doi:10.1021/acs.jctc.8b00842"
MOELLMANN_2014 = "doi:10.1021/jp501237c"
BRANDENBURG_2018, GRIMME_2021 = "doi:10.1063/1.5012601", "doi:10.1063/5.0040021"
GRIMMES_LIST = "Grimme's list, as in dftd3 1.7"


@dataclass(frozen=True)
class Parameters:
    """The numbers of a correction by name, and where they were published.

    The names are those of the papers and of the packages: s6, s8 and s9 scale the terms in 1/R^6,
    1/R^8 and 1/R^9 (three atoms); ga and gc scale D4's charges; a2 is in Bohr.
    """

    values: Mapping[str, float]
    source: str

    def __hash__(self) -> int:
        return hash((*self.values.items(), self.source))


def _d3bj(s8: float, a1: float, a2: float, source: str = GRIMME_2011) -> Parameters:
    return _of({"s6": 1.0, "s8": s8, "s9": 0.0, "a1": a1, "a2": a2}, source)


def _zero(rs6: float, s8: float, source: str = GRIMME_2010, rs8: float = 1.0) -> Parameters:
    return _of({"s6": 1.0, "s8": s8, "s9": 0.0, "rs6": rs6, "rs8": rs8, "alp": 14.0}, source)


def _d4(s8: float, a1: float, a2: float, source: str = CALDEWEYHER_2019) -> Parameters:
    return _of({"s6": 1.0, "s8": s8, "s9": 1.0, "a1": a1, "a2": a2}, source)


def _of(values: dict[str, float], source: str) -> Parameters:
    return Parameters(MappingProxyType(values), source)


@dataclass(frozen=True)
class Method:
    """A correction, as a table."""

    words: str
    package: str
    """Computes it; "" for this package."""
    parameters: Mapping[str, Parameters]
    """By functional."""


_OF_D3BJ = {
    "hf": _d3bj(0.9171, 0.3385, 2.8830),
    "pbe": _d3bj(0.7875, 0.4289, 4.4407),
    "blyp": _d3bj(2.6996, 0.4298, 4.2359),
    "b3lyp": _d3bj(1.9889, 0.3981, 4.4211),
    "pbe0": _d3bj(1.2177, 0.4145, 4.8593),
    "revpbe": _d3bj(2.3550, 0.5238, 3.5016),
    "bp86": _d3bj(3.2822, 0.3946, 4.8516),
    "tpss": _d3bj(1.9435, 0.4535, 4.4752),
    "cam-b3lyp": _d3bj(2.0674, 0.3708, 5.4743, source=GOERIGK_2011),
    "hse06": _d3bj(2.310, 0.383, 5.685, source=MOELLMANN_2014),
    "r2scan": _d3bj(0.78981345, 0.49484001, 5.73083694, source=EHLERT_2021),
    "wb97x-d3bj": _d3bj(0.2641, 0.0, 5.4959, source=NAJIBI_2018),
    "wb97m-d3bj": _d3bj(0.3908, 0.5660, 3.1280, source=NAJIBI_2018),
    "b97-3c": _of(
        {"s6": 1.0, "s8": 1.50, "s9": 1.0, "a1": 0.37, "a2": 4.10, "alp": 14.0}, BRANDENBURG_2018
    ),
}

_OF_D3ZERO = {
    "hf": _zero(1.158, 1.746, GRIMMES_LIST),
    "pbe": _zero(1.217, 0.722),
    "blyp": _zero(1.094, 1.682),
    "b3lyp": _zero(1.261, 1.703),
    "pbe0": _zero(1.287, 0.928),
    "revpbe": _zero(0.923, 1.010),
    "bp86": _zero(1.139, 1.683),
    "tpss": _zero(1.166, 1.105),
    "cam-b3lyp": _zero(1.378, 1.217, GOERIGK_2011),
    "hse06": _zero(1.129, 0.109, MOELLMANN_2014),
    "m06-2x": _zero(1.619, 0.0, GOERIGK_2011),
    # Y.-S. Lin et al., J. Chem. Theory Comput. 9, 263 (2013).
    "wb97x-d3": _zero(1.281, 1.0, "doi:10.1021/ct300715s", rs8=1.094),
}

_OF_D4 = {
    "hf": _d4(1.61679827, 0.44959224, 3.35743605),
    "pbe": _d4(0.95948085, 0.38574991, 4.80688534),
    "blyp": _d4(2.34076671, 0.44488865, 4.09330090),
    "b3lyp": _d4(2.02929367, 0.40868035, 4.53807137),
    "pbe0": _d4(1.20065498, 0.40085597, 5.02928789),
    "revpbe": _d4(1.74676530, 0.53634900, 3.07261485),
    "bp86": _d4(3.35497927, 0.43645861, 4.92406854),
    "tpss": _d4(1.76596355, 0.42822303, 4.54257102),
    "cam-b3lyp": _d4(1.66041301, 0.40267156, 5.17432195),
    "hse06": _d4(1.19528249, 0.38663183, 5.19133469, source="as in dftd4 4.3"),
    "r2scan": _d4(0.60187490, 0.51559235, 5.77342911, source=EHLERT_2021),
    # with other charges than D4 alone, whose ga is 3 and gc 2
    "r2scan-3c": _of(
        {"s6": 1.0, "s8": 0.0, "s9": 2.0, "a1": 0.42, "a2": 5.65, "alp": 16.0}
        | {"ga": 2.0, "gc": 1.0, "wf": 6.0},
        GRIMME_2021,
    ),
}

_OF_CHAI = {"wb97x-d": _of({"s6": 1.0, "a": 6.0}, "doi:10.1039/b810189b")}

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        D3BJ: Method("D3(BJ)", "dftd3", MappingProxyType(_OF_D3BJ)),
        D3ZERO: Method("D3 with zero damping", "dftd3", MappingProxyType(_OF_D3ZERO)),
        D4: Method("D4", "dftd4", MappingProxyType(_OF_D4)),
        CHAI_HEAD_GORDON: Method("Chai and Head-Gordon's", "", MappingProxyType(_OF_CHAI)),
    }
)
"""The corrections by the name of their method."""

COUNTERPOISE_PACKAGE = "dftd3"
"""Computes the corrections below, each with a table of the elements that is its own."""
COUNTERPOISE: Mapping[str, Parameters] = MappingProxyType(
    {
        "b97-3c": _of({"rscal": 10.0, "qscal": 0.08}, BRANDENBURG_2018),
        "r2scan-3c": _of(
            {"sigma": 1.0, "eta": 1.315, "eta_spec": 1.15, "alpha": 0.941, "beta": 1.4636}
            | {"dmp_scal": 4.0, "dmp_exp": 6.0},
            GRIMME_2021,
        ),
    }
)
"""The corrections for a small basis set by functional, in atomic units: of bonds for B97-3c,
-qscal sqrt(Z Z') exp(-rscal R / R0) of two atoms, and for r2SCAN-3c the geometrical counterpoise
correction of H. Kruse and S. Grimme, J. Chem. Phys. 136, 154101 (2012), doi:10.1063/1.3700154,
damped at short range."""

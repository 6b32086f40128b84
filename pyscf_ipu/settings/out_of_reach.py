"""Datasets whose labels cannot be computed here, each with the reason."""

from collections.abc import Mapping
from types import MappingProxyType

_VV10 = "its functional has the nonlocal correlation VV10, which is not computed here"
_NEAREST = "the nearest preset is 'spice', with D3(BJ) in VV10's place"
_NUMERIC = "it was made by FHI-aims with numeric atomic orbitals, and only Gaussian ones are here"

OUT_OF_REACH: Mapping[str, str] = MappingProxyType(
    {
        "omol25": f"{_VV10}, and part of its rows are open shells or have effective core "
        f"potentials; {_NEAREST}",
        "aimnet2rxn": f"{_VV10}; {_NEAREST}",
        "aimnet2nse": "its rows are open shells, and only closed shells are computed here",
        "alchemy": "PySCF made it with density fitting and other d exponents than Gaussian's; for "
        "the level that it names take 'qm9'",
        "qm7x": _NUMERIC,
        "aqm": _NUMERIC,
        "qcml": _NUMERIC,
        "geom": "its energies are those of the semi-empirical method GFN2-xTB",
        "tmqm": "its molecules have transition metals, with effective core potentials",
        "md22": "its dispersion is that of Tkatchenko and Scheffler or many-body, and its orbitals "
        "are numeric",
    }
)
"""By the plain name; see `presets.plain_name`."""

"""Datasets that have no preset, each with the reason or with the preset of their level."""

from collections.abc import Mapping
from types import MappingProxyType

_VV10 = "its functional has the nonlocal correlation VV10, which is not computed here"
_NEAREST = "the nearest preset is 'spice', with D3(BJ) in VV10's place"
_NUMERIC = "it was made by FHI-aims with numeric atomic orbitals, and only Gaussian ones are here"
_ANI = "it has the level of 'ani1x': take that"

WITHOUT_PRESET: Mapping[str, str] = MappingProxyType(
    {
        "ani1": _ANI,
        "ani2x": f"{_ANI}; its further elements, F, S and Cl, are computed, too",
        "comp6": _ANI,
        "pcqm4mv2": "its gaps are PubChemQC's: take 'pubchemqc'",
        "nabladft": "it has the level of 'qmugs': take that",
        "vqm24": "give its level yourself: xc 'wb97x-d3', basis 'cc-pvdz'",
        "omol25": f"{_VV10}, and part of its rows are open shells or have effective core "
        f"potentials; {_NEAREST}",
        "aimnet2rxn": f"{_VV10}; {_NEAREST}",
        "aimnet2nse": "its rows are open shells, and only closed shells are computed here",
        "alchemy": "PySCF made it with density fitting and other d exponents than Gaussian's; for "
        "the level that it names take 'qm9'",
        "qm7x": _NUMERIC,
        "aqm": _NUMERIC,
        "qcml": _NUMERIC,
        "md22": f"{_NUMERIC}, and with many-body dispersion",
        "geom": "its energies are those of the semi-empirical method GFN2-xTB",
        "tmqm": "its functional TPSSh is not here, and its heavier metals have effective core "
        "potentials",
    }
)
"""By the plain name; see `plain_name`."""

"""The functionals users can ask for, by name."""

from dataclasses import replace
from types import MappingProxyType

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.xc.meta.minnesota import M06_2X
from pyscf_ipu.xc.meta.r2scan import R2SCAN
from pyscf_ipu.xc.meta.tpss import TPSS
from pyscf_ipu.xc.semilocal.correlation import lyp, p86, pbe_correlation, vwn5, vwn_rpa
from pyscf_ipu.xc.semilocal.exchange import b88, pbe_exchange, revpbe_exchange, slater
from pyscf_ipu.xc.semilocal.functionals import Energy, Functional, Term
from pyscf_ipu.xc.separated.attenuation import CAM_B3LYP
from pyscf_ipu.xc.separated.b97 import (
    B97_3C,
    B97M_V,
    WB97M_D3BJ,
    WB97M_V,
    WB97X,
    WB97X_D,
    WB97X_D3,
    WB97X_D3BJ,
    WB97X_V,
)
from pyscf_ipu.xc.separated.hse import HSE06
from pyscf_ipu.xc.suffixes.names import dispersion_of, mistake, one_spelling, without_suffix


def _b3lyp(name: str, libxc: str, local: Energy, local_name: str) -> Functional:
    """Becke's three-parameter hybrid around one of the local correlation energies.

    P. J. Stephens et al., J. Phys. Chem. 98, 11623 (1994), doi:10.1021/j100096a001.
    """
    return Functional(
        name=name,
        kind="gga",
        exact_exchange=0.20,
        definition=f"libxc {libxc}: 0.20 HF + 0.08 LDA_X(1) + 0.72 GGA_X_B88(106)"
        f" + 0.81 GGA_C_LYP(131) + 0.19 {local_name}",
        pyscf_name=name,
        terms=(
            Term(0.08, slater, "exchange"),
            Term(0.72, b88, "exchange"),
            Term(0.81, lyp, "correlation"),
            Term(0.19, local, "correlation"),
        ),
    )


def _pure(name: str, pyscf_name: str, libxc: str, *energies: Energy) -> Functional:
    """A functional without exact exchange, of an exchange and a correlation of weight one."""
    kind = "lda" if name == "lda" else "gga"
    exchange, correlation = energies
    terms = (Term(1.0, exchange, "exchange"), Term(1.0, correlation, "correlation"))
    return Functional(
        name, kind, 0.0, definition=f"{libxc} of libxc", pyscf_name=pyscf_name, terms=terms
    )


_ALL = (
    Functional(
        "hf", "hf", 1.0, definition="1.00 HF, no density functional", pyscf_name="hf", terms=()
    ),
    _pure("lda", "lda,vwn", "LDA_X(1) + LDA_C_VWN(7)", slater, vwn5),
    _pure("pbe", "pbe,pbe", "GGA_X_PBE(101) + GGA_C_PBE(130)", pbe_exchange, pbe_correlation),
    _pure(
        "revpbe", "revpbe", "GGA_X_PBE_R(102) + GGA_C_PBE(130)", revpbe_exchange, pbe_correlation
    ),
    _pure("bp86", "b88,p86", "GGA_X_B88(106) + GGA_C_P86(132)", b88, p86),
    _pure("blyp", "b88,lyp", "GGA_X_B88(106) + GGA_C_LYP(131)", b88, lyp),
    _b3lyp("b3lyp", "402 (HYB_GGA_XC_B3LYP)", vwn_rpa, local_name="LDA_C_VWN_RPA(8)"),
    _b3lyp("b3lyp5", "475 (HYB_GGA_XC_B3LYP5)", vwn5, local_name="LDA_C_VWN(7)"),
    # C. Adamo, V. Barone, J. Chem. Phys. 110, 6158 (1999), doi:10.1063/1.478522.
    Functional(
        name="pbe0",
        kind="gga",
        exact_exchange=0.25,
        definition="libxc 406 (HYB_GGA_XC_PBEH): 0.25 HF + 0.75 GGA_X_PBE(101)"
        " + 1.00 GGA_C_PBE(130)",
        pyscf_name="pbe0",
        terms=(
            Term(0.75, pbe_exchange, "exchange"),
            Term(1.0, pbe_correlation, "correlation"),
        ),
    ),
    HSE06,
    CAM_B3LYP,
    WB97X,
    WB97X_D,
    WB97X_D3,
    WB97X_D3BJ,
    TPSS,
    R2SCAN,
    M06_2X,
    WB97M_D3BJ,
    B97_3C,
    replace(R2SCAN, name="r2scan-3c"),
    WB97X_V,
    B97M_V,
    WB97M_V,
)

_BY_NAME = MappingProxyType({entry.name: entry for entry in _ALL})

DISPERSION_MARK = "; dispersion: "
"""In a definition, between the functional and its correction."""


def functional(name: str) -> Functional:
    """The functional called ``name``, in any spelling that `suffixes.names` knows.

    "b3lyp" is libxc 402 with VWN-RPA, as in Gaussian and PySCF since 2.3.  "b3lyp5" is libxc 475
    with VWN5, which older PySCF releases and the original PySCF-IPU called "b3lyp".
    "b3lyp-d3bj" is b3lyp with a dispersion correction; see `pyscf_ipu.xc.suffixes.names`.

    Raises:
        UsageError: there is no functional of that name, or no such correction for it.
    """
    if wrong := mistake(name):
        raise UsageError(wrong)
    whole = one_spelling(name)
    known, added = _BY_NAME[without_suffix(whole)], dispersion_of(whole)
    if added is None:
        return known
    definition = f"{known.definition}{DISPERSION_MARK}{added.definition}"
    return replace(known, name=whole, definition=definition, dispersion=added)

"""What a functional's name says of dispersion: "b3lyp-d3bj" is b3lyp with the correction D3(BJ).

The functional itself is the part that programs compute.  Six functionals were fitted together with
a correction and have it in their own name: `wb97x-d` is no functional `wb97x` with a suffix.  Two
of these are composite methods, which have a basis set of their own, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType

from pyscf_ipu.xc.suffixes.parameters import (
    CHAI_HEAD_GORDON,
    COUNTERPOISE,
    COUNTERPOISE_PACKAGE,
    D3BJ,
    D3ZERO,
    D4,
    METHODS,
    Parameters,
)

FUNCTIONALS: tuple[str, ...] = (
    *("hf", "lda", "pbe", "revpbe", "bp86", "blyp", "b3lyp", "b3lyp5", "pbe0", "hse06"),
    *("cam-b3lyp", "wb97x", "wb97x-d", "wb97x-d3", "wb97x-d3bj", "tpss", "r2scan", "m06-2x"),
    *("wb97m-d3bj", "b97-3c", "r2scan-3c", "wb97x-v", "b97m-v", "wb97m-v"),
)
"""Names of `pyscf_ipu.xc.functional`, without suffixes for dispersion."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("rhf", "hartreefock"), "hf"),
        **dict.fromkeys(("lda,vwn", "lda,vwn5", "slater,vwn5", "svwn5"), "lda"),
        **dict.fromkeys(("pbe,pbe", "pbepbe"), "pbe"),
        **dict.fromkeys(("pbe1pbe", "pbeh"), "pbe0"),
        "b88,p86": "bp86",
        "b88,lyp": "blyp",
        **dict.fromkeys(("b3lypg", "b3lyp/g", "b3lypv1r"), "b3lyp"),  # with VWN-RPA
        "hseh1pbe": "hse06",
        **dict.fromkeys(("tpsstpss", "tpss,tpss"), "tpss"),
    }
)
"""Other names of the same functionals, in PySCF, Gaussian, ORCA and GAMESS, as `_plain` has them.
`svwn` is none: it means VWN5 in PySCF and VWN3 in Gaussian."""

WITH_VV10 = ("wb97x-v", "b97m-v", "wb97m-v")
"""Functionals with the nonlocal correlation VV10, which is part of every program."""

_ONLY_TWO = "the composite methods here are 'b97-3c' and 'r2scan-3c'"
ABSENT: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("hf3c", "pbeh3c", "hse3c", "b3lyp3c", "wb97x3c"), _ONLY_TWO)
)
"""Functionals that are not here, as `_plain` has them, and what is."""

SUFFIXES: Mapping[str, str] = MappingProxyType({"-d3bj": D3BJ, "-d3": D3ZERO, "-d4": D4})
"""What may stand behind a functional's name, and the correction that it means."""

_ENDINGS = {"d3bj": "-d3bj", "d3zero": "-d3", "d30": "-d3", "d3": "-d3", "d4": "-d4"}
"""Spellings of the suffixes: "-D3(BJ)", "-D3(0)"."""

SAME_PARAMETERS: Mapping[str, str] = MappingProxyType({"b3lyp5": "b3lyp"})
"""Functionals that take another's.  Published B3LYP parameters do not tell the two B3LYP apart."""


@dataclass(frozen=True)
class Dispersion:
    """A correction.  It is added on the host; compiled programs know nothing of it."""

    method: str
    """A key of `pyscf_ipu.xc.suffixes.parameters.METHODS`."""
    functional: str
    """The functional whose parameters it has."""

    @property
    def parameters(self) -> Parameters:
        """The numbers of the correction."""
        return METHODS[self.method].parameters[self.functional]

    @property
    def counterpoise(self) -> Parameters | None:
        """The numbers of the counterpoise correction beside it; None without one."""
        return COUNTERPOISE.get(self.functional)

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that compute it; none if this one does."""
        names = [METHODS[self.method].package]
        names += [COUNTERPOISE_PACKAGE] if self.counterpoise else []
        return tuple(dict.fromkeys(name for name in names if name))

    @property
    def definition(self) -> str:
        """Methods, programs and parameters in one line, to be written into every output."""
        by = METHODS[self.method].package or "pyscf_ipu"
        text = self._stated(f"{METHODS[self.method].words} by {by}", self.parameters)
        if self.counterpoise is None:
            return text
        words = f"counterpoise by {COUNTERPOISE_PACKAGE}"
        return f"{text}; {self._stated(words, self.counterpoise)}"

    def _stated(self, words: str, parameters: Parameters) -> str:
        numbers = ", ".join(f"{name} {value:.10g}" for name, value in parameters.values.items())
        return f"{words}, parameters of {self.functional} ({parameters.source}): {numbers}"


OWN: Mapping[str, Dispersion] = MappingProxyType(
    {
        "wb97x-d": Dispersion(CHAI_HEAD_GORDON, "wb97x-d"),
        "wb97x-d3": Dispersion(D3ZERO, "wb97x-d3"),
        "wb97x-d3bj": Dispersion(D3BJ, "wb97x-d3bj"),
        "wb97m-d3bj": Dispersion(D3BJ, "wb97m-d3bj"),
        "b97-3c": Dispersion(D3BJ, "b97-3c"),
        "r2scan-3c": Dispersion(D4, "r2scan-3c"),
    }
)
"""Functionals whose own name has the correction that they were fitted with."""

OWN_BASIS: Mapping[str, str] = MappingProxyType(
    {"b97-3c": "def2-mtzvp", "r2scan-3c": "def2-mtzvpp"}
)
"""Composite methods, and the basis set that they were fitted with."""

HOW = ", ".join(f"{suffix} ({METHODS[method].words})" for suffix, method in SUFFIXES.items())
"""The suffixes in words."""


_LEFT_OUT = str.maketrans("ω²", "w2", "-_ ()+")


def _plain(name: str) -> str:
    """A name without what people write differently: case, hyphens, parentheses."""
    return name.lower().translate(_LEFT_OUT)


_SPELLINGS: Mapping[str, str] = MappingProxyType(
    {_plain(name): name for name in FUNCTIONALS} | dict(ALIASES)
)


def one_spelling(name: str) -> str:
    """The name as it is written here: "b3lyp-d3bj" for "B3LYP-D3(BJ)", "wb97x-d" for "wB97X_D"."""
    return "".join(_split(name))


def mistake(name: str) -> str:
    """What is wrong with a functional's name, as a sentence; "" if there is such a functional."""
    functional, suffix = _split(name)
    if functional in FUNCTIONALS:
        return _without_parameters(functional, suffix)
    if _plain(name) in ABSENT:
        return f"functional {name!r} is not offered: {ABSENT[_plain(name)]}"
    near = get_close_matches(functional, (*FUNCTIONALS, *ALIASES), n=1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    return (
        f"unknown functional {name!r}{meant}: use one of {', '.join(FUNCTIONALS)}, with dispersion "
        f"if one of these stands behind the name: {HOW}"
    )


def without_suffix(name: str) -> str:
    """The functional that programs compute, in lower case: "b3lyp" of "B3LYP-D3BJ"."""
    return _split(name)[0]


def dispersion_of(name: str) -> Dispersion | None:
    """The correction that a functional's name asks for; None if it asks for none.

    Raises:
        ValueError: nobody has published such parameters; the message lists who has them.
    """
    functional, suffix = _split(name)
    if wrong := _without_parameters(functional, suffix):
        raise ValueError(wrong)
    if not suffix:
        return OWN.get(functional)
    return Dispersion(SUFFIXES[suffix], SAME_PARAMETERS.get(functional, functional))


def _without_parameters(functional: str, suffix: str) -> str:
    """Why there is no such correction, as a sentence; "" if there is one, or none is asked for."""
    if not suffix:
        return ""
    if functional in OWN_BASIS or functional in WITH_VV10:
        return f"{functional + suffix!r}: {functional!r} has its own correction; leave out {suffix}"
    known = METHODS[SUFFIXES[suffix]].parameters
    if SAME_PARAMETERS.get(functional, functional) in known and functional not in OWN:
        return ""
    offered = [*known, *(alias for alias, of in SAME_PARAMETERS.items() if of in known)]
    return (
        f"{functional + suffix!r}: there are no {METHODS[SUFFIXES[suffix]].words} parameters of "
        f"{functional!r}, only of {', '.join(sorted(set(offered) - set(OWN)))}"
    )


def _split(name: str) -> tuple[str, str]:
    """Functional and suffix of a name, in any spelling; the suffix is "" where there is none.

    A name that is not known is its own functional.
    """
    plain = _plain(name)
    if plain in _SPELLINGS:
        return _SPELLINGS[plain], ""
    for ending, suffix in _ENDINGS.items():
        functional = _SPELLINGS.get(plain.removesuffix(ending))
        if functional is not None:
            whole = functional + suffix
            return (whole, "") if whole in OWN else (functional, suffix)
    return name.lower(), ""

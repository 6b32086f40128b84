"""What a functional's name says of dispersion: "b3lyp-d3bj" is b3lyp with the correction D3(BJ).

The functional itself is the part that programs compute.  Four functionals were fitted together with
a correction and have it in their own name: `wb97x-d` is no functional `wb97x` with a suffix.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pyscf_ipu.suffixes.parameters import CHAI_HEAD_GORDON, D3BJ, D3ZERO, D4, METHODS, Parameters

SUFFIXES: Mapping[str, str] = MappingProxyType({"-d3bj": D3BJ, "-d3": D3ZERO, "-d4": D4})
"""What may stand behind a functional's name, and the correction that it means."""

SAME_PARAMETERS: Mapping[str, str] = MappingProxyType({"b3lyp5": "b3lyp"})
"""Functionals that take another's.  Published B3LYP parameters do not tell the two B3LYP apart."""


@dataclass(frozen=True)
class Dispersion:
    """A correction.  It is added on the host; compiled programs know nothing of it."""

    method: str
    """A key of `pyscf_ipu.suffixes.parameters.METHODS`."""
    functional: str
    """The functional whose parameters it has."""

    @property
    def parameters(self) -> Parameters:
        """Its numbers."""
        return METHODS[self.method].parameters[self.functional]

    @property
    def package(self) -> str:
        """The package that computes it, "" for this one."""
        return METHODS[self.method].package

    @property
    def definition(self) -> str:
        """Method, program and parameters in one line, to be written into every output."""
        by = self.package or "pyscf_ipu"
        numbers = ", ".join(
            f"{name} {value:.10g}" for name, value in self.parameters.values.items()
        )
        return (
            f"{METHODS[self.method].words} by {by}, parameters of {self.functional} "
            f"({self.parameters.source}): {numbers}"
        )


OWN: Mapping[str, Dispersion] = MappingProxyType(
    {
        "wb97x-d": Dispersion(CHAI_HEAD_GORDON, "wb97x-d"),
        "wb97x-d3": Dispersion(D3ZERO, "wb97x-d3"),
        "wb97x-d3bj": Dispersion(D3BJ, "wb97x-d3bj"),
        "wb97m-d3bj": Dispersion(D3BJ, "wb97m-d3bj"),
    }
)
"""Functionals whose own name has the correction that they were fitted with."""

HOW = ", ".join(f"{suffix} ({METHODS[method].words})" for suffix, method in SUFFIXES.items())
"""The suffixes in words."""


def without_suffix(name: str) -> str:
    """The functional that programs compute, in lower case: "b3lyp" of "B3LYP-D3BJ"."""
    return _split(name)[0]


def dispersion_of(name: str) -> Dispersion | None:
    """The correction that a functional's name asks for; None if it asks for none.

    Raises:
        ValueError: nobody has published such parameters; the message lists who has them.
    """
    functional, method = _split(name)
    if not method:
        return OWN.get(functional)
    fitted = SAME_PARAMETERS.get(functional, functional)
    known = METHODS[method].parameters
    if fitted not in known or functional in OWN:
        offered = [*known, *(alias for alias, of in SAME_PARAMETERS.items() if of in known)]
        raise ValueError(
            f"{name!r}: there are no {METHODS[method].words} parameters of {functional!r}, only of "
            f"{', '.join(sorted(set(offered) - set(OWN)))}"
        )
    return Dispersion(method, fitted)


def _split(name: str) -> tuple[str, str]:
    """Functional and method of a name; the method is "" where there is no suffix."""
    whole = name.lower()
    if whole in OWN:
        return whole, ""
    for suffix, method in SUFFIXES.items():
        if whole.endswith(suffix):
            return whole.removesuffix(suffix), method
    return whole, ""

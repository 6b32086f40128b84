"""What the fields of `Settings` may be, checked without PySCF and JAX."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.nearest import did_you_mean
from pyscf_ipu.elements.cartesian import MIXED

AUTO_AOS = 128
"""With jk="auto", a shape of more AOs than this is computed by density fitting: from about here on
the matrix of all integrals, which grows with the fourth power, takes longer than the fit."""
FORMS = {
    "exact": "",
    "ri": ", density fitting",
    "auto": f", density fitting above {AUTO_AOS} AOs",
}
"""What `Settings.jk` may be, and how `in_words` says it."""
ACCURATE = {"energy": ", for energies", "orbitals": ", for energies and orbitals", "properties": ""}
"""What `Settings.accuracy` may be, and how `in_words` says it."""
KINDS = {"pyscf": "", "gaussian": "Gaussian's "}
"""What `Settings.grid_kind` may be, and how `in_words` says it."""


class UsualBasis(str):
    """A basis set that nobody has chosen: a composite method has its own in its place."""


CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "precision": ("float32", "mixed", "float64"),
        "grid_kind": tuple(KINDS),
        "jk": tuple(FORMS),
        "accuracy": tuple(ACCURATE),
        "first_cycles": ("coarse", "full"),
    }
)
"""Fields that are one of a few names."""
LEAST: Mapping[str, int] = MappingProxyType({"max_cycles": 1, "fixed_cycles": 0})
"""Fields that are a whole number of at least this."""
SPHERES = (
    *(6, 14, 26, 38, 50, 74, 86, 110, 146, 170, 194, 230, 266, 302, 350, 434, 590, 770, 974, 1202),
    *(1454, 1730, 2030, 2354, 2702, 3074, 3470, 3890, 4334, 4802, 5294, 5810),
)
"""Numbers of points that a Lebedev sphere can have."""


def check_field(name: str, value: object) -> None:
    """Raise UsageError for a value that a field cannot have; the message says which it can.

    Args:
        name: of a field of `Settings`.
        value: without types of NumPy.
    """
    if name in CHOICES:
        allowed = CHOICES[name]
        if not isinstance(value, str) or value not in allowed:
            meant = did_you_mean(str(value), allowed)
            raise UsageError(f"{name} is {value!r}{meant}: give one of {', '.join(allowed)}")
    elif name in LEAST:
        if type(value) is not int or value < LEAST[name]:
            raise UsageError(f"{name} is {value!r}: give a whole number of at least {LEAST[name]}")
    elif name in ("prune", "history"):
        if not isinstance(value, bool):
            raise UsageError(f"{name} is {value!r}: give True or False")
    elif name == "cart":
        if not isinstance(value, bool) and value != MIXED:
            raise UsageError(
                f"cart is {value!r}: give True (6 d and 10 f functions), False (5 and 7) or "
                f"{MIXED!r}"
            )
    elif name in ("grid_level", "nlc_grid"):
        _check_size(name, value)
    elif not isinstance(value, str):
        raise UsageError(f"{name} is {value!r}: give a name")


def _check_size(name: str, size: object) -> None:
    """Refuse what is neither one of PySCF's levels nor a pair of sensible numbers."""
    if type(size) is int and 0 <= size <= 9:
        return
    numbers = [n for n in size if type(n) is int and n > 0] if isinstance(size, tuple) else []
    if not (isinstance(size, tuple) and len(size) == len(numbers) == 2 and numbers[1] in SPHERES):
        raise UsageError(
            f"{name} is {size!r}: give a level, 0 to 9, or radial points and points of a "
            "Lebedev sphere, for example (75, 302); spheres have "
            f"{', '.join(map(str, SPHERES))} points"
        )


def plain(value: object) -> object:
    """A value without NumPy's types, and a tuple for a list: equal levels are one program."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else value

"""The level of theory and the numerics of a calculation, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyscf_ipu.basis import supported_basis
from pyscf_ipu.precision import PRECISIONS, Precision
from pyscf_ipu.xc import FUNCTIONALS


@dataclass(frozen=True)
class Settings:
    """How a restricted Kohn-Sham calculation is to be done.

    basis       a PySCF basis-set name (s, p and d shells).
    xc          one of `pyscf_ipu.xc.FUNCTIONALS`.
    grid_level  0-9, PySCF's integration grids.
    precision   "float32", "mixed" or "float64".
    cart        cartesian (6 d functions) instead of spherical (5).
    max_cycles  SCF cycles after which a molecule counts as not converged.
    """

    basis: str = "sto-3g"
    xc: str = "b3lyp"
    grid_level: int = 0
    precision: str = "float32"
    cart: bool = False
    max_cycles: int = 50

    def __post_init__(self) -> None:
        for name in ("grid_level", "max_cycles"):
            object.__setattr__(self, name, plain_integer(getattr(self, name)))

    def check(self) -> Settings:
        """Raise ValueError with the allowed values if a field is not usable; else return self."""
        for name in ("basis", "xc", "precision"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} is {getattr(self, name)!r}: give a name")
        supported_basis(self.basis)
        if self.xc.lower() not in FUNCTIONALS:
            raise ValueError(f"unknown functional {self.xc!r}: use one of {', '.join(FUNCTIONALS)}")
        if self.precision not in PRECISIONS:
            raise ValueError(
                f"unknown precision {self.precision!r}: use one of {', '.join(PRECISIONS)}"
            )
        if type(self.grid_level) is not int or self.grid_level not in range(10):
            raise ValueError(f"grid_level {self.grid_level!r} is not an integer from 0 to 9")
        if type(self.max_cycles) is not int or self.max_cycles < 1:
            raise ValueError(f"max_cycles {self.max_cycles!r} is not an integer of at least 1")
        return self

    @property
    def numerics(self) -> Precision:
        return PRECISIONS[self.precision]


def plain_integer(value: Any) -> Any:
    """NumPy's integers as int, so that one number is one program; all else unchanged."""
    return int(value) if isinstance(value, np.integer) else value

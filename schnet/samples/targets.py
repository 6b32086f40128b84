"""Properties that can be learned, the units that files have them in, and the unit of errors.

Inside, energies are in hartree, forces in hartree/bohr and dipole moments in e*bohr. Conversions
follow CODATA 2018 (doi:10.1103/RevModPhys.93.025010).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import numpy as np

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, E_BOHR_TO_DEBYE, HARTREE_TO_EV
from schnet.errors import UserError

Quantity = Literal["energy", "dipole", "force"]

_ENERGY_UNITS = {
    "au": 1.0,
    "hartree": 1.0,
    "ha": 1.0,
    "ev": HARTREE_TO_EV,
    "mev": 1e3 * HARTREE_TO_EV,
    "kcal_mol": 627.5094740631,
    "kj_mol": 2625.4996394799,
}
_DIPOLE_UNITS = {
    "au": 1.0,
    "e_bohr": 1.0,
    "debye": E_BOHR_TO_DEBYE,
    "mdebye": 1e3 * E_BOHR_TO_DEBYE,
    "e_angstrom": BOHR_TO_ANGSTROM,
}

_FORCE_UNITS = {"au": 1.0, "hartree_bohr": 1.0} | {
    f"{energy}_angstrom": factor / BOHR_TO_ANGSTROM
    for energy, factor in _ENERGY_UNITS.items()
    if energy != "au"
}

UNITS: Mapping[Quantity, Mapping[str, float]] = MappingProxyType(
    {
        "energy": MappingProxyType(_ENERGY_UNITS),
        "dipole": MappingProxyType(_DIPOLE_UNITS),
        "force": MappingProxyType(_FORCE_UNITS),
    }
)
"""How many of each unit make one atomic unit."""

FORCES = "forces"
"""The field of a qm1b dataset, and the column of extended XYZ, that holds the forces."""

FORCE_FILE_UNIT = "ev_angstrom"
"""The unit of forces in CSV files and pictures, as in `UNITS`."""

FORCE_DISPLAY_UNIT = "meV/Angstrom"
"""The unit of printed errors of forces."""

MEV_PER_ANGSTROM = UNITS["force"]["mev_angstrom"]
"""In one hartree/bohr."""


@dataclass(frozen=True)
class Target:
    """A property of a molecule: one number, and for an energy perhaps the forces, its gradient."""

    name: str
    quantity: Quantity
    display_unit: str
    """Unit of printed errors."""
    stems: tuple[str, ...]
    """Its names in extended XYZ, before the unit."""
    fields: tuple[str, ...]
    """Fields of a qm1b dataset that it is made from."""
    extensive: bool = False
    """Whether it grows with the molecule, so that atoms have references (`AtomReferences`)."""
    other_names: tuple[str, ...] = ()
    """Further names of the same target."""

    @property
    def has_forces(self) -> bool:
        """Whether the forces are learned, too."""
        return FORCES in self.fields

    @property
    def number(self) -> str:
        """The name of its one number, in columns of files and in pictures."""
        return self.stems[0]

    @property
    def unit(self) -> str:
        """The atomic unit, in which it is stored and learned."""
        return "hartree" if self.quantity == "energy" else "e_bohr"

    @property
    def file_unit(self) -> str:
        """The unit of CSV files and pictures, as in `UNITS`."""
        return "ev" if self.quantity == "energy" else "debye"

    @property
    def display_per_atomic(self) -> float:
        """Display units per atomic unit; multiply an error by it."""
        return self.per_atomic(self.display_unit)

    @property
    def allowed_units(self) -> str:
        """Names of units, for messages."""
        return ", ".join(UNITS[self.quantity])

    def is_like(self, other: Target) -> bool:
        """Whether the same readout (`ModelConfig.readout`) suits both."""
        return (self.quantity, self.extensive) == (other.quantity, other.extensive)

    def per_atomic(self, unit: str) -> float:
        """How many of a unit make one atomic unit; divide a file's number by it.

        Raises:
            UserError: the unit is unknown or belongs to another quantity.
        """
        factor = UNITS[self.quantity].get(canonical_unit(unit))
        if factor is None:
            raise UserError(
                f"--unit is {unit!r}, which is not a unit of {self.name}: use one of "
                f"{self.allowed_units}"
            )
        return factor

    def same_unit(self, one: str, other: str) -> bool:
        """Whether two names mean the same unit; raises as `per_atomic`."""
        return self.per_atomic(one) == self.per_atomic(other)

    def of_fields(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """[R] The target in its atomic unit, from the columns of a dataset in atomic units."""
        if self.name == "gap":
            return columns["lumo"] - columns["homo"]
        values = columns[self.fields[0]]
        return np.linalg.norm(values, axis=1) if self.quantity == "dipole" else values


_ENERGIES = tuple(
    Target(name, "energy", "meV", stems=stems, fields=(name,), extensive=True)
    for name, stems in {
        "energy": ("energy", "u0"),
        "atomisation_energy": ("atomisation_energy",),
    }.items()
)
_WITH_FORCES = tuple(
    replace(
        target,
        name=f"{FORCES}+{target.name}",
        fields=(*target.fields, FORCES),
        other_names=(f"{target.name}+{FORCES}",),
    )
    for target in _ENERGIES
)
_TARGETS = (
    Target("gap", "energy", "meV", stems=("gap",), fields=("homo", "lumo")),
    *_ENERGIES,
    *_WITH_FORCES,
    Target("homo", "energy", "meV", stems=("homo",), fields=("homo",)),
    Target("lumo", "energy", "meV", stems=("lumo",), fields=("lumo",)),
    Target(
        "dipole_norm", "dipole", "mdebye", stems=("dipole_norm", "dipole", "mu"), fields=("dipole",)
    ),
)

TARGETS: Mapping[str, Target] = MappingProxyType({target.name: target for target in _TARGETS})


def target_of(name: str) -> Target:
    """The target of a name; raises UserError for an unknown one."""
    for target in TARGETS.values():
        if name in (target.name, *target.other_names):
            return target
    raise UserError(f"--target is {name!r}: use one of {', '.join(TARGETS)}")


def canonical_unit(unit: str) -> str:
    """The spelling of a unit in `UNITS`: kcal/mol -> kcal_mol, eV -> ev."""
    return unit.strip().lower().replace("*", "_").replace("/", "_")

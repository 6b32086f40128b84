"""What a molecule is made of, from PySCF and ASE objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from pyscf_ipu.errors import InvalidMolecule
from pyscf_ipu.molecule.checks import whole_charge
from pyscf_ipu.units import BOHR_TO_ANGSTROM

if TYPE_CHECKING:
    from ase import Atoms
    from pyscf.gto import Mole

CHARGE_ROUNDING = 0.1
"""Partial charges, which files round, may miss the total charge by less than this many e."""


class Parts(NamedTuple):
    """Atomic numbers [A], positions [A, 3] in Bohr, and the charge in e."""

    numbers: Int[np.ndarray, " A"]
    positions: Float[np.ndarray, "A 3"]
    charge: int


def parts_of_pyscf(mole: Mole) -> Parts:
    """See `Molecule.from_pyscf`."""
    from pyscf import gto
    from pyscf.data.elements import charge as atomic_number

    if not isinstance(mole, gto.Mole):
        raise TypeError(f"a pyscf.gto.Mole is needed, not a {type(mole).__name__}.")
    if mole.spin:
        raise InvalidMolecule(
            f"the PySCF Mole has spin={mole.spin} unpaired electrons: the calculation is "
            "restricted (closed shell) and needs spin=0."
        )
    if mole.nelectron != mole.tot_electrons():
        raise InvalidMolecule(
            f"the PySCF Mole has nelectron={mole.nelectron}, while its nuclei and charge="
            f"{mole.charge} make {mole.tot_electrons()} electrons: give charge= instead"
        )
    # Not mole.atom_charges(): those are smaller than the atomic numbers under an ECP.
    numbers = [atomic_number(mole.atom_symbol(i)) for i in range(mole.natm)]
    return Parts(np.array(numbers, int), mole.atom_coords(), mole.charge)


def parts_of_ase(atoms: Atoms, charge: int = 0) -> Parts:
    """See `Molecule.from_ase`."""
    needed = ("pbc", "numbers", "positions", "get_initial_charges")
    if not all(hasattr(atoms, name) for name in needed):
        raise TypeError(f"an ase.Atoms is needed, not a {type(atoms).__name__}.")
    if np.any(atoms.pbc):
        raise InvalidMolecule(
            "the ASE Atoms are periodic: only molecules are computed; set `atoms.pbc = False` if "
            "the cell has no meaning."
        )
    if np.any(atoms.get_initial_magnetic_moments()):
        raise InvalidMolecule(
            f"the ASE Atoms {atoms.get_chemical_formula()} have initial magnetic moments: the "
            "calculation is restricted (closed shell); if a singlet is meant, remove them with "
            "`atoms.set_initial_magnetic_moments(None)`."
        )
    charge = whole_charge(charge)
    charges = atoms.get_initial_charges()
    if np.any(charges) and not abs(charges.sum() - charge) < CHARGE_ROUNDING:
        raise InvalidMolecule(
            f"the initial charges of the ASE Atoms {atoms.get_chemical_formula()} add up to "
            f"{charges.sum():+.3g}, which contradicts charge={charge}: give the charge as "
            "charge=, or remove them with `atoms.set_initial_charges(None)`."
        )
    bohr = np.asarray(atoms.positions) / BOHR_TO_ANGSTROM
    return Parts(np.asarray(atoms.numbers), bohr, charge)

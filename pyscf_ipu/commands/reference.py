"""PySCF's energy at the level of a calculation, to compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyscf.scf.hf import SCF

    from pyscf_ipu.molecule.molecule import Molecule
    from pyscf_ipu.settings import Settings


def pyscf_field(molecule: Molecule, settings: Settings) -> SCF:
    """PySCF's mean-field object at the same level of theory, after its SCF (see `converged`)."""
    mole = settings.pyscf_mole(molecule.numbers, molecule.positions, molecule.charge)
    field = settings.pyscf_method(mole)
    field.conv_tol, field.conv_tol_grad, field.max_cycle = 1e-11, 1e-7, 200
    field.kernel()
    return field

"""The engine as an ASE calculator, for ASE's optimisers, molecular dynamics and vibrations.

Positions, energies and forces are in ASE's units here: Angstrom, eV, eV/Angstrom, e Angstrom.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from pyscf_ipu.errors import ConvergenceError
from pyscf_ipu.kohn_sham import rks, solver_for
from pyscf_ipu.molecule import Molecule
from pyscf_ipu.solver import Solver
from pyscf_ipu.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV

try:
    from ase.calculators import calculator
except ImportError as error:
    raise ImportError("the calculator is ASE's: run pip install 'pyscf-ipu[ase]'") from error


class Calculator(calculator.Calculator):
    """An ASE calculator of restricted Kohn-Sham energies and forces.

        atoms.calc = pi.Calculator(basis="sto-3g", xc="b3lyp")

    charge  of the molecule, in units of e.
    solver  compiled programs to be used, also by others; default: of its own.
    level   `basis`, `xc`, `grid_level`, `precision`, `cart`, `max_cycles`, as for `rks`.

    Programs are compiled once per shape, whatever the geometry.  Once forces were asked for they
    come with every energy, so that a step is one SCF.

    Raises ValueError for unusable settings; on calculation InvalidMolecule for atoms that cannot
    be computed (periodic ones among them) and ConvergenceError if the SCF does not converge.
    """

    implemented_properties: ClassVar[list[str]] = [
        "energy", "free_energy", "forces", "dipole", "charges",
    ]  # fmt: skip

    def __init__(self, charge: int = 0, solver: Solver | None = None, **level: Any) -> None:
        super().__init__()
        self.solver = solver_for(solver, level)
        self.charge = charge
        self._with_forces = False

    def calculate(
        self,
        atoms: Any = None,
        properties: Sequence[str] = ("energy",),
        system_changes: Sequence[str] = calculator.all_changes,
    ) -> None:
        """Fill `results` for `atoms`; called by ASE."""
        super().calculate(atoms, properties, system_changes)
        self._with_forces = self._with_forces or "forces" in properties
        mol = Molecule.from_ase(self.atoms, self.charge)
        found = rks(mol, solver=self.solver, forces=self._with_forces)
        if not found.converged:
            raise ConvergenceError(
                f"{mol!r} ended as {found.status} after {found.cycles} cycles: raise max_cycles, "
                "try precision='float64', or check the geometry and the time step"
            )
        energy = float(found.energy) * HARTREE_TO_EV
        self.results = {
            "energy": energy,
            "free_energy": energy,
            "dipole": found.dipole * BOHR_TO_ANGSTROM,
            "charges": found.mulliken_charges,
        }
        if found.forces is not None:
            self.results["forces"] = np.asarray(found.forces) * (HARTREE_TO_EV / BOHR_TO_ANGSTROM)

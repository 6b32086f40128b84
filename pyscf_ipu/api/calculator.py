"""The engine as an ASE calculator, for ASE's optimisers, molecular dynamics and vibrations.

Positions, energies and forces are in ASE's units here: Angstrom, eV, eV/Angstrom, e Angstrom.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar, Unpack

import numpy as np

from pyscf_ipu.api.advice import KEYWORDS, explains_keywords
from pyscf_ipu.api.energies import ill_conditioned, rks, solver_for, uks
from pyscf_ipu.base.errors import ConvergenceError, MissingPackage
from pyscf_ipu.base.extras import how_to_install
from pyscf_ipu.base.nearest import nearest_keyword
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, FORCE_TO_EV_PER_ANGSTROM, HARTREE_TO_EV
from pyscf_ipu.molecule.checks import whole_charge
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.results.result import ILL_CONDITIONED
from pyscf_ipu.settings import LevelKeywords
from pyscf_ipu.solver.shared import shared_solver
from pyscf_ipu.solver.solver import Solver

try:
    from ase import Atoms
    from ase.calculators import calculator
except ImportError as error:
    raise MissingPackage(f"the calculator is ASE's: run {how_to_install('ase')}") from error


class Calculator(calculator.Calculator):
    """An ASE calculator of Kohn-Sham energies and forces.

    Atoms with initial magnetic moments are open shells, which are computed as by `uks` with these
    moments as the guess; then the results have `magmom` and `magmoms`, too.

        atoms.calc = pi.Calculator(basis="sto-3g", xc="b3lyp")

    `parameters` holds the settings and the charge; ASE writes them into databases and
    trajectories.  ASE handles the constraints of the atoms.

    Programs are compiled once per shape, whatever the geometry.  Once forces were asked for they
    come with every energy, so that a step is one SCF.  A copy by `copy.deepcopy` shares the
    programs; a pickled calculator compiles its own.

    Args:
        charge: of the molecule, in units of e.
        solver: compiled programs to use, perhaps shared with others; default: its own.
        level: basis, xc and the others, as for `rks`.

    Raises:
        UsageError: a setting or the charge cannot be used.
        InvalidMolecule: on calculation: the atoms are periodic, have initial charges that
            contradict `charge`, or magnetic moments that do not go with the number of electrons.
        ConvergenceError: on calculation: the SCF does not converge.
    """

    name = "pyscf_ipu"  # type: ignore[assignment]  # ASE's is a property that gives "calculator"
    parameters: dict[str, Any]  # ASE's may be None while it constructs
    implemented_properties: ClassVar = [
        *("energy", "free_energy", "forces", "dipole", "charges"),
        *("magmom", "magmoms"),
    ]

    @explains_keywords
    def __init__(
        self, *, charge: int = 0, solver: Solver | None = None, **level: Unpack[LevelKeywords]
    ) -> None:
        super().__init__()
        self._solver = solver_for(solver, **level)
        self._with_forces = False
        self.parameters = {**asdict(self._solver.settings), "charge": whole_charge(charge)}

    @property
    def solver(self) -> Solver:
        """The compiled programs; `set` replaces them."""
        return self._solver

    @property
    def charge(self) -> int:
        """The molecule's charge in units of e; setting another drops the results."""
        return self.parameters["charge"]

    @charge.setter
    def charge(self, charge: int) -> None:
        self.set(charge=charge)

    def set(self, **changes: object) -> dict[str, object]:
        """Change settings or the charge, and drop all results; returns what differs from before.

        A changed setting needs a solver of its own, whose programs are compiled anew.

        Raises:
            TypeError: a name is not a parameter; nothing is changed.
            UsageError: a value cannot be used; nothing is changed.
        """
        if not changes:  # as ASE calls it on construction
            return changes
        for name in changes:
            if name not in self.parameters:
                raise TypeError(
                    f"Calculator.set() got an unexpected keyword argument {name!r}: "
                    f"{nearest_keyword(name, self.parameters, KEYWORDS)}"
                )
        level = {**changes}
        charge = whole_charge(level.pop("charge", self.charge))
        settings = replace(self._solver.settings, **level)
        new = {**asdict(settings), "charge": charge}
        changed = {k: new[k] for k in changes if new[k] != self.parameters[k]}
        if not changed:
            return changed
        if settings != self._solver.settings:
            self._solver = shared_solver(settings)
        self.parameters = new
        self.reset()
        return changed

    def calculate(
        self,
        atoms: Atoms | None = None,
        properties: Sequence[str] = ("energy",),
        system_changes: Sequence[str] = calculator.all_changes,
    ) -> None:
        """Fill `results` for `atoms`; called by ASE."""
        self.results = {}  # whatever happens: no others' results
        super().calculate(atoms, properties, system_changes)
        self._with_forces = self._with_forces or "forces" in properties
        assert self.atoms is not None  # set by ASE
        mol = Molecule.from_ase(self.atoms, self.charge)
        moments = self.atoms.get_initial_magnetic_moments()
        if mol.multiplicity > 1 or moments.any():
            guess = moments.tolist() if moments.any() else "atoms"
            result = uks(mol, guess=guess, solver=self.solver, forces=self._with_forces)
        else:
            result = rks(mol, solver=self.solver, forces=self._with_forces)
        if result.status == ILL_CONDITIONED:
            why = ill_conditioned(float(result.overlap_smallest), mol, self.solver.settings)
            raise ConvergenceError(f"{mol!r} {why}")
        if not result.converged:
            raise ConvergenceError(
                f"{mol!r} ended as {result.status} after {result.cycles} cycles: raise max_cycles, "
                "try precision='float64', or check the geometry and the time step"
            )
        energy = float(result.energy) * HARTREE_TO_EV
        self.results = {
            "energy": energy,
            "free_energy": energy,
            "dipole": result.dipole * BOHR_TO_ANGSTROM,
            "charges": result.mulliken_charges,
        }
        if result.spin_populations is not None:
            self.results |= {
                "magmom": float(mol.unpaired),
                "magmoms": result.spin_populations,
            }
        if result.forces is not None:
            self.results["forces"] = np.asarray(result.forces) * FORCE_TO_EV_PER_ANGSTROM

"""`optimize`: geometries of least energy, of one molecule or of many that advance together.

Steps are those of ASE's BFGS, which looks at forces only: near a minimum a float32 energy no
longer falls by more than its rounding, where a line search would give up.  Molecules of one list
take their steps at the same time, so that their forces come from batches.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Unpack

import numpy as np
from jaxtyping import Float

from pyscf_ipu.api.advice import explains_keywords
from pyscf_ipu.api.energies import solver_for
from pyscf_ipu.base.errors import MissingPackage, UsageError
from pyscf_ipu.base.extras import how_to_install
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, FORCE_TO_EV_PER_ANGSTROM, HARTREE_TO_EV
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.results.result import MoleculeResult
from pyscf_ipu.settings import LevelKeywords
from pyscf_ipu.solver.batches import molecule_list, results
from pyscf_ipu.solver.solver import Solver, Wanted, usual_guess

try:
    from ase import Atoms
    from ase.calculators.singlepoint import SinglePointCalculator
    from ase.optimize import BFGS
except ImportError as error:
    raise MissingPackage(
        f"optimize takes its steps from ASE: run {how_to_install('ase')}"
    ) from error


FORCE_LIMIT = 1e-4
"""Hartree/Bohr: geomeTRIC and Gaussian stop at 4.5e-4, which leaves soft torsions undecided."""


@dataclass(frozen=True)
class Optimized:
    """A geometry optimisation, as far as it came."""

    molecule: Molecule
    """The last geometry."""
    energy: float
    """There, in Hartree; NaN if it could not be computed."""
    forces: Float[np.ndarray, "A 3"]
    """There, in Hartree/Bohr."""
    trajectory: Float[np.ndarray, "K A 3"]
    """Positions in Bohr: the start and every step."""
    energies: Float[np.ndarray, " K"]
    """Hartree, along the trajectory."""
    converged: bool
    """Whether the largest force on an atom fell below the limit."""
    message: str
    """Why it ended, as a sentence."""

    @property
    def positions(self) -> Float[np.ndarray, "A 3"]:
        """Bohr: the last geometry's, as `trajectory[-1]`."""
        return self.molecule.positions


@explains_keywords
def optimize(
    molecules: Molecule | Sequence[Molecule],
    *,
    max_steps: int = 200,
    max_force_hartree_per_bohr: float = FORCE_LIMIT,
    solver: Solver | None = None,
    **level: Unpack[LevelKeywords],
) -> Optimized | list[Optimized]:
    """The nearest minimum of the energy: one Optimized, or a list of them for a list.

    All atoms move: a Molecule has no constraints, not even those of the `ase.Atoms` that it was
    made from.  A molecule whose SCF does not converge on the way stops there.  The arguments that
    are not described here are those of `rks`.

    Args:
        molecules: one Molecule, or a list that may mix molecules of any shape.
        max_steps: after these a molecule counts as not converged.
        max_force_hartree_per_bohr: largest length of the force on an atom at a minimum.

    Raises:
        MissingPackage: ASE is not installed.
        UsageError: a setting or a limit cannot be used.
        TypeError: an entry is not a Molecule.
        InvalidMolecule: a single molecule cannot be computed; in a list, the `message` of its
            result says why.
    """
    if max_steps < 0 or not max_force_hartree_per_bohr > 0:
        raise UsageError(
            f"max_steps={max_steps}, max_force_hartree_per_bohr={max_force_hartree_per_bohr}: "
            "give 0 steps or more, and a force above 0"
        )
    solver = solver_for(solver, **level)
    alone = isinstance(molecules, Molecule)
    mols = molecule_list(molecules)
    rows = results(mols, solver, _wanted(mols), strict=alone)
    walks = [_Walk(mol, max_force_hartree_per_bohr) for mol in mols]
    moving = walks
    while moving:
        for walk, row in zip(moving, rows, strict=True):
            walk.take(row, max_steps)
        moving = [walk for walk in moving if not walk.message]
        here = [walk.here for walk in moving]
        rows = results(here, solver, _wanted(here))
    ended = [walk.result() for walk in walks]
    return ended[0] if alone else ended


def _wanted(mols: Sequence[Molecule]) -> Wanted:
    """Forces, of open shells as `uks` computes them."""
    return Wanted(forces=True, guesses=tuple(map(usual_guess, mols)))


@dataclass
class _Walk:
    """A molecule that is being optimised, now at `here`; `message` is set when it stops."""

    here: Molecule
    limit: float
    message: str = ""
    converged: bool = False
    rows: list[MoleculeResult] = field(default_factory=list)
    trajectory: list[Float[np.ndarray, "A 3"]] = field(default_factory=list)

    def __post_init__(self) -> None:
        # By number: ASE has no symbol for every number that a list may hold.
        self.atoms = Atoms(self.here.numbers, self.here.positions * BOHR_TO_ANGSTROM)
        self.stepper = BFGS(self.atoms, logfile=None)

    def take(self, row: MoleculeResult, max_steps: int) -> None:
        """Record the energy and forces here, and take a step or end."""
        self.rows.append(row)
        self.trajectory.append(self.here.positions)
        steps = len(self.rows) - 1
        if not row.converged:
            invalid = row.status.startswith("invalid")
            self.message = row.status if invalid else f"{row.status} SCF after {steps} steps"
            return
        assert row.forces is not None
        largest = float(np.linalg.norm(row.forces, axis=1).max())
        self.converged = largest < self.limit
        if self.converged or steps == max_steps:
            state = "converged" if self.converged else "not converged"
            self.message = (
                f"{state} after {steps} steps: largest force {largest:.1e} Hartree/Bohr, "
                f"limit {self.limit:.1e}"
            )
            return
        self._step(row.energy, row.forces)

    def _step(self, energy: float, forces: np.ndarray) -> None:
        self.atoms.calc = SinglePointCalculator(
            self.atoms,
            energy=energy * HARTREE_TO_EV,
            forces=forces * FORCE_TO_EV_PER_ANGSTROM,
        )
        self.stepper.step()
        self.here = replace(self.here, positions=self.atoms.positions / BOHR_TO_ANGSTROM)

    def result(self) -> Optimized:
        last = self.rows[-1]
        assert last.forces is not None
        return Optimized(
            self.here,
            last.energy,
            last.forces,
            trajectory=np.array(self.trajectory),
            energies=np.array([row.energy for row in self.rows]),
            converged=self.converged,
            message=self.message,
        )

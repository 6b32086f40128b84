"""`optimize`: geometries of least energy, of one molecule or of many that advance together.

Steps are those of ASE's BFGS, which looks at forces only: near a minimum a float32 energy no
longer falls by more than its rounding, where a line search would give up.  Molecules of one list
take their steps at the same time, so that their forces come from batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pyscf_ipu.kohn_sham import rks, solver_for
from pyscf_ipu.molecule import Molecule
from pyscf_ipu.result import Row, unstack
from pyscf_ipu.solver import Solver
from pyscf_ipu.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV

try:
    from ase import Atoms
    from ase.calculators.singlepoint import SinglePointCalculator
    from ase.optimize import BFGS
except ImportError as error:
    raise ImportError(
        "optimize takes its steps from ASE: run pip install 'pyscf-ipu[ase]'"
    ) from error

FORCE_LIMIT = 1e-4
"""Hartree/Bohr: geomeTRIC and Gaussian stop at 4.5e-4, which leaves soft torsions undecided."""


@dataclass(frozen=True)
class Optimized:
    """A geometry optimisation, as far as it came.

    molecule   at the last geometry.
    energy     there, Hartree; NaN if it could not be computed.
    forces     there, [A, 3] Hartree/Bohr.
    positions  [K, A, 3] Bohr, the start and every step; energies [K] Hartree.
    converged  whether the largest force on an atom fell below the limit.
    message    why it ended, as a sentence.
    """

    molecule: Molecule
    energy: float
    forces: np.ndarray
    positions: np.ndarray
    energies: np.ndarray
    converged: bool
    message: str


def optimize(
    molecules: Molecule | Sequence[Molecule],
    basis: str | None = None,
    xc: str | None = None,
    grid_level: int | None = None,
    precision: str | None = None,
    *,
    cart: bool | None = None,
    max_cycles: int | None = None,
    max_steps: int = 200,
    max_force_hartree_per_bohr: float = FORCE_LIMIT,
    solver: Solver | None = None,
) -> Optimized | list[Optimized]:
    """The nearest minimum of the energy: one Optimized, or a list of them for a list.

    molecules  one Molecule, or a list that may mix molecules of any shape.
    basis, xc, grid_level, precision, cart, max_cycles, solver  as for `rks`.
    max_steps  after which a molecule counts as not converged.
    max_force_hartree_per_bohr  largest length of the force on an atom at a minimum.

    All atoms move: a Molecule has no constraints, not even those of the `ase.Atoms` that it was
    made from.

    Raises ImportError without ASE, ValueError for unusable settings or limits, TypeError for what
    is no Molecule, and InvalidMolecule for a single molecule that cannot be computed; in a list it
    ends with that as its message.  A molecule whose SCF does not converge on the way ends there.
    """
    if max_steps < 0 or not max_force_hartree_per_bohr > 0:
        raise ValueError(
            f"max_steps={max_steps}, max_force_hartree_per_bohr={max_force_hartree_per_bohr}: "
            "steps have to be at least 0, and the largest force above 0"
        )
    solver = solver_for(solver, basis, xc, grid_level, precision, cart, max_cycles)
    alone = isinstance(molecules, Molecule)
    mols = [molecules] if alone else molecules
    if alone:
        molecules.check()
        solver.shape(molecules)
    # `rks` refuses what is no list of molecules, before anything is made of its entries.
    rows = unstack(rks(mols, solver=solver, forces=True))
    walks = [_Walk(mol, max_force_hartree_per_bohr) for mol in mols]
    moving = walks
    while moving:
        for walk, row in zip(moving, rows, strict=True):
            walk.take(row, max_steps)
        moving = [walk for walk in moving if not walk.message]
        rows = unstack(rks([walk.here for walk in moving], solver=solver, forces=True))
    found = [walk.result() for walk in walks]
    return found[0] if alone else found


@dataclass
class _Walk:
    """One molecule on its way, `here` at present; `message` once it can or need not go on."""

    here: Molecule
    limit: float
    message: str = ""
    converged: bool = False
    rows: list[Row] = field(default_factory=list)
    positions: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        # By number: ASE has no symbol for every number that a list may hold.
        self.atoms = Atoms(self.here.numbers, self.here.positions * BOHR_TO_ANGSTROM)
        self.stepper = BFGS(self.atoms, logfile=None)

    def take(self, row: Row, max_steps: int) -> None:
        """Record the energy and forces here, and take a step or end."""
        self.rows.append(row)
        self.positions.append(self.here.positions)
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
            forces=forces * (HARTREE_TO_EV / BOHR_TO_ANGSTROM),
        )
        self.stepper.step()
        mol, positions = self.here, self.atoms.positions / BOHR_TO_ANGSTROM
        self.here = Molecule(mol.numbers, positions, mol.charge, mol.name, mol.smiles)

    def result(self) -> Optimized:
        last = self.rows[-1]
        assert last.forces is not None
        return Optimized(
            self.here,
            last.energy,
            last.forces,
            np.array(self.positions),
            np.array([row.energy for row in self.rows]),
            self.converged,
            self.message,
        )

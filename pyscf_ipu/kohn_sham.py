"""`rks`: energies and orbitals of one molecule or of a mixed list, in one call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyscf_ipu.errors import ConvergenceError, InvalidMolecule
from pyscf_ipu.molecule import Molecule
from pyscf_ipu.result import RKSResult, Row, invalid_row, single, stack_rows, unstack
from pyscf_ipu.settings import Settings
from pyscf_ipu.shape import Shape
from pyscf_ipu.solver import Solver


def rks(
    molecules: Molecule | Sequence[Molecule],
    basis: str | None = None,
    xc: str | None = None,
    grid_level: int | None = None,
    precision: str | None = None,
    cart: bool | None = None,
    max_cycles: int | None = None,
    throw: bool = False,
    orbitals: bool = False,
    solver: Solver | None = None,
    forces: bool = False,
) -> RKSResult:
    """Restricted Kohn-Sham (or Hartree-Fock) energies.

    molecules   one Molecule, or a list that may mix molecules of any shape.
    basis       a PySCF basis-set name (s, p, d shells; H to Cl); default "sto-3g".
    xc          "hf", "lda", "pbe", "blyp", "b3lyp" (default), "b3lyp5" or "pbe0".
    grid_level  0 (default) to 9, PySCF's grids.
    precision   "float32" (default), "mixed" (float32 SCF, float64 energy) or "float64".
    cart        cartesian d functions; default False.
    max_cycles  SCF cycles at most; default 50.
    throw       raise on the first molecule that is invalid or does not converge.
    orbitals    also return mo_coeff and density_matrix.
    solver      reuse the compiled programs of a `Solver`; its settings stand in place of the above.
    forces      also return forces; a second program per shape.

    One program is compiled per shape of molecule; keep a Solver to call again without compiling.

    Raises ValueError for unusable settings, and InvalidMolecule (a ValueError) for a single
    molecule that cannot be computed; in a list such an entry has status "invalid: ..." and energy
    NaN.  With `throw`, ConvergenceError for the first molecule that does not converge.
    """
    alone = isinstance(molecules, Molecule)
    if not alone and not isinstance(molecules, Sequence):
        kind = type(molecules).__name__
        raise TypeError(f"a Molecule or a list of them is needed, not a {kind}")
    mols: list[Molecule] = [molecules] if alone else list(molecules)
    for i, mol in enumerate(mols):
        if not isinstance(mol, Molecule):
            raise TypeError(f"entry {i} is a {type(mol).__name__}: give pyscf_ipu.Molecule objects")
    solver = solver_for(solver, basis, xc, grid_level, precision, cart, max_cycles)
    rows, groups = _group(mols, solver, throw or alone)
    for shape, members in groups.items():
        size = solver.batch_size(shape)
        for start in range(0, len(members), size):
            part = members[start : start + size]
            some = [mols[i] for i in part]
            found = unstack(solver.run(shape, some, orbitals=orbitals, forces=forces))
            for i, row in zip(part, found, strict=True):
                rows[i] = row
    done = [row for row in rows if row is not None]
    if throw:
        _throw_unconverged(done, mols, solver.settings)
    result = stack_rows(done, orbitals, forces)
    return single(result) if alone else result


def forces(
    molecules: Molecule | Sequence[Molecule],
    basis: str | None = None,
    xc: str | None = None,
    grid_level: int | None = None,
    precision: str | None = None,
    cart: bool | None = None,
    max_cycles: int | None = None,
    throw: bool = False,
    solver: Solver | None = None,
) -> np.ndarray | list[np.ndarray]:
    """Forces on the nuclei, -dE/dR: [A, 3] in Hartree/Bohr; a list of them for a list.

    molecules   one Molecule, or a list that may mix molecules of any shape.

    The other arguments are those of `rks`; `rks(..., forces=True)` returns the same together with
    energies and everything else.  The derivative is that of the energy as computed: AOs, grid
    points and grid weights move with the nuclei (P. Pulay, Mol. Phys. 17, 197 (1969),
    doi:10.1080/00268976900100941).

    Raises what `rks` raises.  Forces are NaN for a molecule that did not converge, and for an
    invalid one in a list.
    """
    found = rks(
        molecules, basis, xc, grid_level, precision, cart, max_cycles, throw, False, solver, True
    )
    return found.forces  # type: ignore[return-value]


def solver_for(
    solver: Solver | None,
    basis: str | None,
    xc: str | None,
    grid_level: int | None,
    precision: str | None,
    cart: bool | None,
    max_cycles: int | None,
) -> Solver:
    """The given solver, or a new one for the settings that are not None.

    Raises TypeError if it is no Solver, ValueError if a setting contradicts it.
    """
    level = {
        "basis": basis,
        "xc": xc,
        "grid_level": grid_level,
        "precision": precision,
        "cart": cart,
        "max_cycles": max_cycles,
    }
    given = {name: value for name, value in level.items() if value is not None}
    if solver is None:
        return Solver(Settings(**given))
    if not isinstance(solver, Solver):
        raise TypeError(f"solver is a {type(solver).__name__}: give a pyscf_ipu.Solver, or none")
    for name, value in given.items():
        if getattr(solver.settings, name) != value:
            raise ValueError(
                f"{name}={value!r} contradicts the solver, which was made with "
                f"{name}={getattr(solver.settings, name)!r}: leave one of them out"
            )
    return solver


def _group(
    mols: list[Molecule], solver: Solver, strict: bool
) -> tuple[list[Row | None], dict[Shape, list[int]]]:
    """Sort molecules by shape; rows of those that cannot be computed are ready at once."""
    rows: list[Row | None] = [None] * len(mols)
    groups: dict[Shape, list[int]] = {}
    for i, mol in enumerate(mols):
        try:
            mol.check()
            groups.setdefault(solver.shape(mol), []).append(i)
        except InvalidMolecule as error:
            if strict:
                raise type(error)(
                    f"molecule {i}: {error}" if len(mols) > 1 else str(error)
                ) from error
            rows[i] = invalid_row(str(error), mol.n_atoms)
    return rows, groups


def _throw_unconverged(rows: list[Row], mols: list[Molecule], settings: Settings) -> None:
    for i, (row, mol) in enumerate(zip(rows, mols, strict=True)):
        if not row.converged:
            raise ConvergenceError(
                f"molecule {i} ({mol!r}) ended as {row.status} after {row.cycles} of "
                f"{settings.max_cycles} cycles with commutator {row.commutator_norm:.1e} Hartree: "
                "raise max_cycles, try precision='float64', or check the geometry"
            )

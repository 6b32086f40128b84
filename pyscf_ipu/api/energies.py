"""`rks` and `uks`: energies and orbitals of one molecule or of a mixed list, in one call."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack, cast

import numpy as np

from pyscf_ipu.api.advice import explains_keywords
from pyscf_ipu.api.machine_names import find_machine
from pyscf_ipu.base.errors import ConvergenceError, UsageError
from pyscf_ipu.elements.basis_sets import pyscf_ecp
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.results.result import ILL_CONDITIONED, MoleculeResult, RKSResult, stacked
from pyscf_ipu.scf.lowest.guess import SpinGuess
from pyscf_ipu.settings import LevelKeywords, Settings
from pyscf_ipu.solver.batches import molecule_list, results
from pyscf_ipu.solver.platform import Platform
from pyscf_ipu.solver.shared import shared_solver
from pyscf_ipu.solver.solver import Solver, Wanted

if TYPE_CHECKING:
    from pyscf_ipu import ipu


@explains_keywords
def rks(
    molecules: Molecule | Sequence[Molecule],
    *,
    throw: bool = False,
    orbitals: bool = False,
    forces: bool = False,
    stability: bool = False,
    stable_unrestricted: bool = False,
    history: bool = False,
    workers: int | None = None,
    machine: "str | Platform | ipu.Target | None" = None,
    solver: Solver | None = None,
    **level: Unpack[LevelKeywords],
) -> RKSResult:
    """Restricted Kohn-Sham (or Hartree-Fock) energies.

    One program is compiled per shape of molecule, and kept: in this process until `clear`, and on
    disk (see `enable_disk_cache`).  The level of theory is given by name; what is left out, or
    None, is the solver's, or the default.

    Args:
        molecules: one Molecule, or a list that may mix molecules of any shape.
        basis: a PySCF basis-set name (s to f shells; H to Kr); default "sto-3g".
        xc: "hf", "lda", "pbe", "blyp", "b3lyp" (default), "b3lyp5", "pbe0", or another one of
            `pyscf_ipu.xc.suffixes.names.FUNCTIONALS`, such as "wb97x"; with a suffix for
            dispersion, D3(BJ) "b3lyp-d3bj", D3 with zero damping "pbe-d3" or D4 "pbe0-d4".
        grid_level: 0 to 9, PySCF's grids and its default, 3; level 0, that of QM1B, takes a tenth
            of the time and shifts conformer energies by up to a kcal/mol.  Or radial points and
            points of each sphere, for example (75, 302).
        precision: "float32" (default), "mixed" (float32 SCF, float64 energy) or "float64".
        cart: cartesian d and f functions; "6d7f" for cartesian d and spherical f; default False.
        max_cycles: SCF cycles at most, and as many more after a second start; the same for each of
            the other starts that follow where the gap is small; default 50.
        nlc_grid: the grid of VV10's pairs of points, as grid_level; default 3, as in PySCF.
        prune: leave out grid points as PySCF does (default True), or keep all.
        grid_kind: "pyscf" (default), or "gaussian" for Gaussian's grid before its pruning.
        jk: "exact" electron repulsion (default), "ri" for density fitting, or "auto": "ri" for
            shapes of more than 128 AOs.
        fixed_cycles: do exactly this many cycles; default 0, to end when converged.
        accuracy: what is to be right: "energy" alone, "orbitals" too, or all "properties"
            (default), which forces need.
        first_cycles: integrate on few grid points in most cycles, "coarse" (default), or on all of
            them, "full".
        throw: raise on the first molecule that is invalid or does not converge.
        orbitals: also return mo_coeff and density_matrix.
        forces: also return forces; a second program per shape.
        stability: follow instabilities of the orbitals to the lowest state and also return `stable`
            and `followed`; another program per shape.  Its calls take up to twice as long, and
            several times as long where there is an instability to follow.
        stable_unrestricted: also return whether the state is stable with unequal spins, by a second
            program per shape.
        history: also return energy, commutator and gap of every SCF cycle, by another program.
        workers: batches of a list that are computed at the same time; default: one per core that
            this process may use.  Results do not depend on it.
        machine: "bow" or "gc200" for a simulated IPU, whose own program computes each molecule and
            gives the price of its run (`ipu_cycles_low` and the like); also one with other figures,
            "bow:tile_clock_frequency=1.5e9", a `pyscf_ipu.ipu.Target`, or a machine that
            `pyscf_ipu.ipu.machine` has made.  Default: JAX's device, which "cpu" and "gpu" check.
        solver: a `Solver` of your own; default: the one that all calls at these settings share.

    Raises:
        UsageError: (a ValueError) a setting cannot be used, `history` goes with `stability`, or the
            machine does not compute this.
        InvalidMolecule: a single molecule cannot be computed; in a list such an entry has status
            "invalid: ..." and energy NaN.
        ConvergenceError: with `throw`, the first molecule that does not converge, or whose basis
            the precision cannot hold.
        ImportError: the package of a dispersion correction is missing.
    """
    solver = _on_machine(solver_for(solver, **level), machine, is_given=solver is not None)
    solver = _with_history(solver) if history else solver
    wanted = Wanted(orbitals, forces, stability, stable_unrestricted=stable_unrestricted)
    return computed(molecules, solver, wanted, throw=throw, workers=workers)


class OpenShellKeywords(LevelKeywords, total=False):
    """What `uks` takes besides molecules and guess, as `rks` does; None for its default."""

    throw: bool | None
    orbitals: bool | None
    forces: bool | None
    stability: bool | None
    history: bool | None
    workers: int | None
    solver: Solver | None


@explains_keywords
def uks(
    molecules: Molecule | Sequence[Molecule],
    *,
    guess: SpinGuess | Sequence[SpinGuess] = "atoms",
    **options: Unpack[OpenShellKeywords],
) -> RKSResult:
    """Unrestricted Kohn-Sham (or Hartree-Fock) energies: radicals, ions, triplets and atoms.

    Alpha and beta electrons have orbitals of their own (J. A. Pople, R. K. Nesbet, J. Chem. Phys.
    22, 571 (1954), doi:10.1063/1.1740120).  How many there are of each follows from
    `Molecule.multiplicity`; all multiplicities of a shape share a program.  What is not described
    here is as in `rks`: where the gap of a spin is small, or the SCF has not converged, other
    guesses follow, and the state of lowest energy counts.

    Args:
        molecules: one Molecule, or a list that may mix molecules of any shape and multiplicity.
        guess: "atoms" for superposed atoms with as many alpha as beta electrons; "mixed" to go on
            from mixed frontier orbitals, whatever the gap, so that the spins of a diradical or of
            a torn bond part; or the number of unpaired electrons on every atom, those of beta
            spin negative.  For a list one for all, or a list of guesses.
        options: as in `rks`.

    Returns:
        What `rks` returns, with `s_squared` and `spin_populations`; levels, orbitals and density
        matrices are those of alpha and of beta electrons, as in PySCF.

    Raises:
        UsageError: as in `rks`, or the guess does not fit the molecules.
        InvalidMolecule: as in `rks`.
        ConvergenceError: as in `rks`.
    """
    mols = molecule_list(molecules)
    solver = options.get("solver")
    names = [name for name in LevelKeywords.__annotations__ if name in options]
    level = cast(LevelKeywords, {name: options[name] for name in names})  # type: ignore[literal-required]
    made = solver_for(solver, **level)
    made = _with_history(made) if options.get("history") else made
    wanted = Wanted(
        orbitals=bool(options.get("orbitals")),
        forces=bool(options.get("forces")),
        stability=bool(options.get("stability")),
        guesses=spin_guesses(guess, mols, alone=isinstance(molecules, Molecule)),
    )
    throw, workers = bool(options.get("throw")), options.get("workers")
    return computed(molecules, made, wanted, throw=throw, workers=workers)


def spin_guesses(
    guess: SpinGuess | Sequence[SpinGuess], mols: Sequence[Molecule], alone: bool
) -> tuple[SpinGuess, ...]:
    """The guess of every molecule; raises UsageError for one that does not fit."""
    if alone or isinstance(guess, str):
        every = cast(Sequence[SpinGuess], [guess] * len(mols))
    else:
        every = cast(Sequence[SpinGuess], guess)
    if len(every) != len(mols):
        raise UsageError(f"{len(every)} guesses for {len(mols)} molecules: give one for each")
    return tuple(_guess(one, mol) for one, mol in zip(every, mols, strict=True))


def _guess(guess: SpinGuess, mol: Molecule) -> SpinGuess:
    """One guess; raises UsageError if it does not fit the molecule."""
    if isinstance(guess, str):
        if guess not in ("atoms", "mixed"):
            raise UsageError(
                f"guess={guess!r}: give 'atoms', 'mixed', or the unpaired electrons of each atom"
            )
        return guess
    spins = np.asarray(guess)
    if spins.shape != (mol.n_atoms,) or not np.issubdtype(spins.dtype, np.number):
        raise UsageError(
            f"guess={guess!r}: {mol!r} needs {mol.n_atoms} numbers, the unpaired electrons of "
            "each atom, or 'atoms' or 'mixed'"
        )
    if not (np.abs(spins) <= np.maximum(mol.numbers, 1)).all():
        raise UsageError(f"guess={guess!r}: no atom has more unpaired electrons than electrons")
    return tuple(spins.tolist())


def computed(
    molecules: Molecule | Sequence[Molecule],
    solver: Solver,
    wanted: Wanted,
    throw: bool,
    workers: int | None = None,
) -> RKSResult:
    """Compute one molecule or a list; the errors are those of `rks` and `uks`."""
    check_wanted(solver, wanted)
    alone, mols = isinstance(molecules, Molecule), molecule_list(molecules)
    rows = results(mols, solver, wanted, strict=throw or alone, workers=workers)
    if throw:
        _throw_unconverged(rows, mols, solver.settings)
    if alone:
        return rows[0]
    return stacked(
        rows,
        wanted.orbitals,
        wanted.forces,
        stability=wanted.stability,
        prices=solver.platform.has_prices,
        spins=wanted.guesses is not None,
    )


def check_wanted(solver: Solver, wanted: Wanted) -> None:
    """Raise UsageError where a level or a machine does not compute what is wanted."""
    analysed, is_open = wanted.stability or wanted.stable_unrestricted, wanted.guesses is not None
    solver.platform.check(wanted.forces, analysed, open_shell=is_open)
    if wanted.forces:
        solver.settings.check_forces()
    if wanted.stability and (solver.settings.history or solver.settings.fixed_cycles):
        raise UsageError(
            "stability=True runs several SCFs, so it cannot be combined with history=True or "
            "fixed_cycles: leave one out"
        )


@explains_keywords
def forces(
    molecules: Molecule | Sequence[Molecule],
    *,
    throw: bool = False,
    workers: int | None = None,
    solver: Solver | None = None,
    **level: Unpack[LevelKeywords],
) -> np.ndarray | list[np.ndarray]:
    """Forces on the nuclei, -dE/dR: [A, 3] in Hartree/Bohr; a list of them for a list.

    Arguments and errors are those of `rks`; `rks(..., forces=True)` returns the same together with
    energies and everything else.  The derivative is that of the energy as computed: AOs, grid
    points and grid weights move with the nuclei (P. Pulay, Mol. Phys. 17, 197 (1969),
    doi:10.1080/00268976900100941).  Forces are NaN for a molecule that did not converge, and for
    an invalid one in a list.
    """
    row = rks(molecules, throw=throw, forces=True, workers=workers, solver=solver, **level)
    return row.forces  # type: ignore[return-value]


@explains_keywords
def solver_for(solver: Solver | None, **level: Unpack[LevelKeywords]) -> Solver:
    """The given solver, or the shared one of a level of theory.

    Args:
        solver: None for the shared one.
        level: what is given of it, by the names of `Settings`.

    Raises:
        TypeError: the solver is not a Solver.
        UsageError: a setting contradicts the solver, or cannot be used.
    """
    given = {name: value for name, value in level.items() if value is not None}
    if solver is None:
        return shared_solver(Settings.from_dict(given))
    if not isinstance(solver, Solver):
        raise TypeError(f"solver is a {type(solver).__name__}: give a pyscf_ipu.Solver, or none")
    asked = replace(solver.settings, **given)
    for name in given:
        made_with = getattr(solver.settings, name)
        if getattr(asked, name) != made_with:
            raise UsageError(
                f"{name}={getattr(asked, name)!r} contradicts the solver, which was made with "
                f"{name}={made_with!r}: leave one of them out"
            )
    return solver


def _on_machine(
    solver: Solver, machine: "str | Platform | ipu.Target | None", is_given: bool
) -> Solver:
    """The solver of the same level on a machine; raises UsageError if a given one has another."""
    platform = find_machine(machine)
    if machine is None or platform == solver.machine:
        return solver
    if is_given:
        raise UsageError(
            f"machine={machine!r} contradicts the solver, which was made with another one: leave "
            "one of them out"
        )
    return shared_solver(solver.settings, platform)


def _with_history(solver: Solver) -> Solver:
    """The solver of the same level that keeps a record of every cycle."""
    if solver.settings.history:
        return solver
    return shared_solver(replace(solver.settings, history=True), solver.machine)


def ill_conditioned(smallest: float, mol: Molecule, settings: Settings) -> str:
    """What is wrong with a molecule whose overlap has this eigenvalue, and what to do."""
    heavy = bool(pyscf_ecp(settings.basis, mol.numbers))
    needs, levels = (
        level.numerics_of(has_float64=True, heavy=heavy)
        for level in (settings, replace(settings, accuracy="orbitals"))
    )
    enough = settings.accuracy == "properties" and levels.holds(smallest)
    only = ", or Settings(accuracy='orbitals') for energies and gaps alone" if enough else ""
    return (
        f"ended as {ILL_CONDITIONED}: the smallest eigenvalue of the overlap of "
        f"{settings.basis} is {smallest:.1e}, and precision={settings.precision!r} needs "
        f"{needs.least_overlap:.0e}: use precision='mixed' or 'float64', or a smaller "
        f"basis without diffuse functions{only}"
    )


def _throw_unconverged(
    results: list[MoleculeResult], mols: list[Molecule], settings: Settings
) -> None:
    for i, (row, mol) in enumerate(zip(results, mols, strict=True)):
        if row.status == ILL_CONDITIONED:
            why = ill_conditioned(float(row.overlap_smallest), mol, settings)
            raise ConvergenceError(f"molecule {i} ({mol!r}) {why}")
        if not row.converged:
            raise ConvergenceError(
                f"molecule {i} ({mol!r}) ended as {row.status} after {row.cycles} cycles, "
                f"commutator {row.commutator_norm:.1e} Hartree, with "
                f"max_cycles={settings.max_cycles}: raise it, look for the lowest state "
                "(stability=True), or check the geometry"
            )

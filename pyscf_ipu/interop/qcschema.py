"""QCSchema, the common language of programs for quantum chemistry: inputs to answers."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float
from qcelemental.models import v2

from pyscf_ipu.api.energies import check_wanted, solver_for, spin_guesses
from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.interop.qcschema_answers import answer
from pyscf_ipu.interop.qcschema_models import Answer, Given, failed, in_form_of, read
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.results.result import MoleculeResult
from pyscf_ipu.settings.keywords import MISTAKES, LevelKeywords
from pyscf_ipu.solver.batches import results
from pyscf_ipu.solver.solver import Solver, Wanted
from pyscf_ipu.xc.suffixes.names import OWN_BASIS

STEP_BOHR = 0.005
"""By which a coordinate is moved both ways for a Hessian."""
OTHER_KEYWORDS = ("guess", "stability")


def compute(given: Given) -> Answer:
    """Answer one input of QCSchema: energy, gradient, Hessian or properties.

    Args:
        given: an AtomicInput of QCElemental, of version 1 or 2, or a dict with its fields.  Its
            method is a functional as `rks` names it ("wb97x-d3bj"), its basis a name; keywords are
            those of `rks` for the level of theory, besides `stability`, and `guess` as of `uks`.
            A molecule with unpaired electrons, or with a guess, is unrestricted.

    Returns:
        An AtomicResult, a dict for a dict, with the wavefunction that the protocols ask for; or a
        FailedOperation, if the input cannot be computed (input_error) or the SCF does not converge
        (convergence_error).  Units are atomic ones.

    Raises:
        MissingPackage: QCElemental, or the package of a dispersion correction, is not installed.
        TypeError: this is neither a dict nor a model.
    """
    return compute_many([given])[0]


def compute_many(inputs: Sequence[Given], *, workers: int | None = None) -> list[Answer]:
    """Answer many inputs of QCSchema, which may differ in all, in batches of like shapes.

    Args:
        inputs: as for `compute`.
        workers: batches that are computed at the same time; default: one per core.

    Returns:
        The answers in the order of the inputs, each as of `compute`; one that fails costs no other.

    Raises:
        MissingPackage: as `compute`.
        TypeError: as `compute`.
    """
    answers: list[Answer | None] = [None] * len(inputs)
    groups: defaultdict[Hashable, list[tuple[int, Calculation]]] = defaultdict(list)
    for place, given in enumerate(inputs):
        try:
            asked = Calculation.of(read(given))
            groups[asked.kind].append((place, asked))
        except UsageError as error:
            answers[place] = in_form_of(failed(given, "input_error", str(error)), given)
    for group in groups.values():
        every = [asked for _, asked in group]
        for (place, asked), rows in zip(group, _computed(every, workers), strict=True):
            answers[place] = in_form_of(_answered(asked, rows), inputs[place])
    return [one for one in answers if one is not None]


@dataclass(frozen=True)
class Calculation:
    """What one input asks for."""

    given: v2.AtomicInput
    molecule: Molecule
    solver: Solver
    wanted: Wanted

    @classmethod
    def of(cls, given: v2.AtomicInput) -> "Calculation":
        """Read an input.

        Raises:
            UsageError: the level, the molecule, the driver or a keyword cannot be computed.
        """
        asked, molecule = given.specification, _molecule(given.molecule)
        keywords = dict(asked.keywords)
        guess, stability = keywords.pop("guess", None), bool(keywords.pop("stability", False))
        driver = asked.driver.value
        if driver == "hessian":  # float32 forces are too noisy for differences
            keywords["precision"] = keywords.get("precision") or "float64"
        open_shell = molecule.multiplicity > 1 or guess is not None
        solver = _solver(asked.model, keywords)
        molecule.check(solver.settings.precision, open_shell=open_shell)
        in_full = asked.protocols.wavefunction.value != "none"
        if in_full and solver.settings.cart:
            raise UsageError("a wavefunction is written for spherical functions: give cart=False")
        wanted = Wanted(
            orbitals=driver == "properties" or in_full,
            forces=driver in ("gradient", "hessian"),
            stability=stability,
            guesses=spin_guesses(guess or "atoms", [molecule], alone=True) if open_shell else None,
        )
        check_wanted(solver, wanted)
        return cls(given, molecule, solver=solver, wanted=wanted)

    @property
    def kind(self) -> Hashable:
        """What calculations of one call share."""
        return self.solver.settings, replace(self.wanted, guesses=None), self.wanted.guesses is None

    @cached_property
    def geometries(self) -> list[Molecule]:
        """The molecule, for a Hessian with every coordinate moved both ways, too."""
        mol, moved = self.molecule, []
        if self.given.specification.driver.value == "hessian":
            for step in STEP_BOHR * np.eye(3 * mol.n_atoms).reshape(-1, mol.n_atoms, 3):
                moved += [replace(mol, positions=mol.positions + sign * step) for sign in (1, -1)]
        return [mol, *moved]


def _molecule(given: v2.Molecule) -> Molecule:
    """Raises UsageError for ghosts and for a charge that is no integer."""
    if not np.all(given.real):
        raise UsageError("the molecule has ghost atoms, which are not computed: leave them out")
    charge = float(given.molecular_charge)
    if not charge.is_integer():
        raise UsageError(f"molecular_charge is {charge}: it must be an integer")
    return Molecule(
        given.atomic_numbers,
        given.geometry,
        int(charge),
        multiplicity=int(given.molecular_multiplicity),
    )


def _solver(model: v2.Model, keywords: dict) -> Solver:
    """The level of theory; raises UsageError where it cannot be used."""
    allowed = sorted({*LevelKeywords.__annotations__} - {"basis", "xc"})
    for name in keywords:
        if name not in allowed:
            offered = ", ".join([*allowed, *OTHER_KEYWORDS])
            raise UsageError(f"keyword {name!r}: {MISTAKES.get(name, f'there are {offered}')}")
    xc, basis = model.method.lower(), model.basis
    if not isinstance(basis, str | None):
        raise UsageError("model.basis must be the name of a basis set")
    if not basis and xc not in OWN_BASIS:
        raise UsageError(f"model.basis is missing: give one, for example def2-svp, with {xc}")
    return solver_for(None, xc=xc, basis=basis or None, **keywords)


def _computed(
    calculations: Sequence[Calculation], workers: int | None
) -> Iterator[list[MoleculeResult]]:
    """The results of all geometries of each calculation of one kind, in one call."""
    mols = [mol for one in calculations for mol in one.geometries]
    solver, wanted = calculations[0].solver, calculations[0].wanted
    if wanted.guesses is not None:
        guesses = (
            g for one in calculations for g in (one.wanted.guesses or ()) * len(one.geometries)
        )
        wanted = replace(wanted, guesses=tuple(guesses))
    rows = iter(results(mols, solver, wanted, strict=False, workers=workers))
    for one in calculations:
        yield [next(rows) for _ in one.geometries]


def _answered(
    asked: Calculation, rows: Sequence[MoleculeResult]
) -> v2.AtomicResult | v2.FailedOperation:
    """An AtomicResult, or a FailedOperation if one of the geometries has no result."""
    for row in rows:
        if row.status.startswith("invalid"):
            return failed(asked.given, "input_error", row.status)
        if row.status != "converged":
            message = (
                f"the SCF ended as {row.status} after {int(row.cycles)} cycles; try precision "
                "'float64', more max_cycles, or stability"
            )
            return failed(asked.given, "convergence_error", message)
    return answer(asked.given, rows[0], hessian=_hessian(rows[1:]))


def _hessian(moved: Sequence[MoleculeResult]) -> Float[np.ndarray, "H H"] | None:
    """[3 A, 3 A] second derivatives in Hartree/Bohr^2, from forces of moved geometries."""
    if not moved:
        return None
    forces = np.array([row.forces for row in moved]).reshape(len(moved), -1)
    matrix = (forces[1::2] - forces[0::2]) / (2.0 * STEP_BOHR)
    return 0.5 * (matrix + matrix.T)

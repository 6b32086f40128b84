"""Shapes, compiled programs and batches: from a list of molecules to the device, and back."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

import jax
import numpy as np
from jaxtyping import PyTree

from pyscf_ipu.base.errors import InvalidMolecule, TooLarge, UsageError
from pyscf_ipu.base.host.backend import backend
from pyscf_ipu.base.host.memory_limit import return_memory
from pyscf_ipu.base.host.modes import plain_jax
from pyscf_ipu.codelets import warn_if_missing
from pyscf_ipu.elements.gaussian_grid import valence_radius
from pyscf_ipu.gradient import gradients
from pyscf_ipu.integrals.supermatrix import MOST_AOS
from pyscf_ipu.kohn_sham.batch import empty_states
from pyscf_ipu.kohn_sham.program import Program, State, energies, lowest_energies
from pyscf_ipu.kohn_sham.spin_stability import spin_stabilities
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.numerics.precision import Precision
from pyscf_ipu.results.result import MoleculeResult, from_solution
from pyscf_ipu.scf.convergence import PLAIN, Convergence
from pyscf_ipu.settings import Settings, usable
from pyscf_ipu.shapes import conformer
from pyscf_ipu.shapes import tables as shapes_tables
from pyscf_ipu.shapes.auxiliary import check_auxiliary
from pyscf_ipu.shapes.core import has_core, numerics_of
from pyscf_ipu.shapes.shape import Shape, count_ao, shape_of
from pyscf_ipu.solver import kept
from pyscf_ipu.solver.memory import spin_bytes
from pyscf_ipu.solver.platform import MEMORY_SHARE, Platform, platform
from pyscf_ipu.xc.dispersion.correction import check_coefficients

Programs = dict[tuple[Shape, int], Callable[..., PyTree]]
"""By shape and size of the batch."""


@dataclass(frozen=True)
class CompileEvent:
    """A program became ready: how long it took, and whether it came from the disk cache."""

    shape: Shape
    seconds: float
    cached: bool


@dataclass(frozen=True)
class Wanted:
    """What else results have besides energies; see `pyscf_ipu.rks`."""

    orbitals: bool = False
    forces: bool = False
    stability: bool = False
    guesses: tuple[conformer.SpinGuess | None, ...] | None = None
    """One for each molecule that is an open shell, None for closed ones; None if all are closed."""
    stable_unrestricted: bool = False
    """Of closed shells."""

    def guess(self, place: int) -> conformer.SpinGuess | None:
        """The guess of a molecule of the list."""
        return None if self.guesses is None else self.guesses[place]


SPIN_STABILITY = "spin stabilities"
"""Name of its programs."""


def _energies_of(open_shell: bool, stability: bool) -> str:
    return "lowest " * stability + "energies" + " of open shells" * open_shell


def _gradients_of(open_shell: bool) -> str:
    return "gradients" + " of open shells" * open_shell


def usual_guess(mol: Molecule) -> conformer.SpinGuess | None:
    """The guess of an open shell for which nobody has given one; None for a closed shell."""
    return "atoms" if mol.multiplicity > 1 else None


class Solver:
    """Runs molecules of any shape at one level of theory; compiles each shape once.

    Cheap to make: nothing is compiled before `compile` or `run`.  Threads may share one.

    Args:
        settings: the level of theory.
        machine: computes, for example `pyscf_ipu.ipu.machine("bow")`; default: what JAX computes
            on when it is asked to.

    Raises:
        TypeError: these are not Settings, or this is not a machine.
        UsageError: the basis cannot be used, or the machine does not compute this level.
    """

    def __init__(self, settings: Settings, machine: Platform | None = None) -> None:
        if machine is not None and not isinstance(machine, Platform):
            raise TypeError(
                f"a machine is needed, not a {type(machine).__name__}: "
                "pyscf_ipu.ipu.machine('bow') makes one, and without JAX's device computes"
            )
        self.settings = usable(settings)
        self.machine = machine
        """Computes; None for what JAX computes on."""
        level = self.settings.without_dispersion()
        self._computed = level if machine is None else machine.level(level)  # as programs have it
        self._programs: Programs = {}
        self._others: defaultdict[str, Programs] = defaultdict(dict)  # by what they compute
        self._tables: dict[Shape, tuple] = {}
        self._batch_sizes: dict[Shape, int] = {}
        self._refused: dict[Shape, str] = {}
        self._locks: dict[tuple[str, Shape, int], threading.Lock] = {}

    def __reduce__(self) -> tuple[type[Solver], tuple[Settings, Platform | None]]:
        """Pickled by its settings: compiled programs belong to this process."""
        return type(self), (self.settings, self.machine)

    def __deepcopy__(self, memo: dict[int, object]) -> Solver:
        """Itself: compiled programs can be shared."""
        return self

    def with_dispersion(self, settings: Settings) -> Solver:
        """A solver of a level that differs in dispersion alone; both use the same programs.

        Raises:
            UsageError: the level differs in more than that, or cannot be used.
        """
        new = Solver(settings, self.machine)
        if new._computed != self._computed:
            raise UsageError(f"{settings} has other programs than {self.settings}")
        vars(new).update({k: v for k, v in vars(self).items() if k != "settings"})
        return new

    @property
    def platform(self) -> Platform:
        """The machine that computes a call that is made now."""
        return self.machine or platform()

    def numerics(self, shape: Shape) -> Precision:
        """The dtypes and thresholds of the machine that computes a call that is made now."""
        return numerics_of(shape, self.settings, self.platform.has_float64)

    def shape(self, mol: Molecule, coarse: int = 0) -> Shape:
        """The bucket of a molecule.

        Args:
            mol: the molecule.
            coarse: 1 or 2 for one of fewer and larger buckets, for few molecules (`shape_of`).

        Raises:
            InvalidMolecule: the level lacks an element (`n_ao`), or the basis has too few functions
                for the electrons.
            TooLarge: (an InvalidMolecule) this machine has too little memory, or float32 too few
                places for the integrals.
        """
        room, (alpha, beta) = self.n_ao(mol.numbers), mol.n_occupied(self.settings.basis)
        if not (0 < alpha <= room and beta >= 0):
            raise InvalidMolecule(
                f"charge {mol.charge} gives {alpha + beta} electrons, and the {room} functions "
                f"of {self.settings.basis} hold 1 to {2 * room}, at most {room} of a spin: check "
                "charge and multiplicity"
            )
        level = self.settings
        shape = shape_of(mol.numbers, level.basis, level.cart, grid=level.grid, coarse=coarse)
        if why := self.platform.refuses(shape):
            raise InvalidMolecule(why)
        if level.form(shape.n_ao) == "ri":
            check_auxiliary(mol.numbers, level)
        elif self.numerics(shape).matrix_dtype == np.float32 and shape.n_ao > MOST_AOS:
            raise TooLarge(
                f"too large: {shape.n_ao} AOs, and exact integrals in {level.precision} take at "
                f"most {MOST_AOS}: use jk='ri', or precision='float64'"
            )
        needed = self.memory_bytes(shape, open_shell=mol.multiplicity > 1)
        there = self.platform.room()
        if needed > MEMORY_SHARE * there:
            raise TooLarge(
                f"too large: {shape.n_ao} AOs need about {needed / 2**30:.2g} GiB, and of this "
                f"machine's {there / 2**30:.3g} GiB {MEMORY_SHARE:.0%} may be used; use a smaller "
                "molecule or basis"
            )
        return shape

    def n_ao(self, numbers: Sequence[int] | np.ndarray) -> int:
        """Number of AOs of a molecule, from atomic numbers.

        Raises:
            InvalidMolecule: the level lacks an element: its basis, grid, dispersion or fit.
        """
        level, elements = self.settings, np.unique(numbers)
        count = count_ao(numbers, level.basis, level.cart)
        check_coefficients(level.dispersion, elements)
        for number in elements.tolist() if level.grid.turns else ():
            valence_radius(number)
        if level.jk == "ri":
            check_auxiliary(elements, level)
        return count

    def memory_bytes(self, shape: Shape, forces: bool = False, open_shell: bool = False) -> int:
        """Estimated peak memory of a process that makes the programs and a call of a full batch."""
        size = self.batch_size(shape)
        needed = self.platform.call_bytes(shape, self.settings, size, forces=forces)
        return needed + open_shell * spin_bytes(shape, self.settings)

    def batch_size(self, shape: Shape) -> int:
        """Conformers per call at most; fixed for a shape.

        The same on machines of the same memory; see `Platform.batch_size`. On a CPU results do not
        depend on it.
        """
        if shape not in self._batch_sizes:  # once: a container's limit may change under way
            self._batch_sizes[shape] = self.platform.batch_size(shape, self.settings)
        return self._batch_sizes[shape]

    def compile(
        self,
        shape: Shape,
        stability: bool = False,
        count: int | None = None,
        open_shell: bool = False,
    ) -> CompileEvent | None:
        """Make the program of a shape ready; None if it is already.

        Args:
            shape: of the molecules.
            stability: the program that follows instabilities, which is another one.
            count: number of molecules of the call; default: a full batch.  One program serves all
                calls on a CPU.
            open_shell: the program of two spins, which is another one.

        Raises:
            UsageError: `stability` goes with `fixed_cycles`.
        """
        if stability and self.settings.fixed_cycles:
            raise UsageError(
                f"fixed_cycles={self.settings.fixed_cycles} is of one SCF, and stability=True "
                "makes several of as many cycles as they need: leave one"
            )
        here = self.platform
        here.check(forces=False, stability=stability, open_shell=open_shell)
        make = self._planned(lowest_energies if stability else energies)
        size, name = self._call_size(shape, count), _energies_of(open_shell, stability)
        empty = partial(conformer.empty_batch, open_shell=open_shell)
        return self._compile(shape, size, name, make=make, empty=empty)

    def compile_spin_stability(self, shape: Shape, count: int | None = None) -> CompileEvent | None:
        """Make the program that says whether closed shells are stable with unequal spins ready."""
        self.platform.check(forces=False, stability=True)
        size, make = self._call_size(shape, count), self._planned(spin_stabilities)
        return self._compile(shape, size, SPIN_STABILITY, make=make, empty=empty_states)

    def _planned(self, make: Callable[..., Program]) -> Callable[[Shape, Settings], Program]:
        """The machine plans a shape only when its program is traced."""
        here = self.platform

        def program(shape: Shape, settings: Settings) -> Program:
            return lambda *data: make(shape, settings, machine=here.machine(shape))(*data)

        return program

    def compile_gradient(
        self, shape: Shape, count: int | None = None, open_shell: bool = False
    ) -> CompileEvent | None:
        """Make the program that forces need besides ready; None if it is already.

        Raises:
            UsageError: the settings' accuracy does not reach forces.
        """
        self.platform.check(forces=True, stability=False, open_shell=open_shell)
        self.settings.check_forces()
        size = self._call_size(shape, count)
        empty = partial(empty_states, open_shell=open_shell)
        return self._compile(shape, size, _gradients_of(open_shell), make=gradients, empty=empty)

    def _named(self, name: str) -> Programs:
        return self._programs if name == "energies" else self._others[name]

    def _call_size(self, shape: Shape, count: int | None) -> int:
        size = self.batch_size(shape)
        return self.platform.call_size(size if count is None else count, size)

    def _compile(
        self,
        shape: Shape,
        size: int,
        name: str,
        make: Callable[[Shape, Settings], Program],
        empty: Callable[[Shape, Settings, int], PyTree],
    ) -> CompileEvent | None:
        """Add a shape's program to those of a name; `empty` makes arrays of the right kinds."""
        programs = self._named(name)
        with self._locks.setdefault((name, shape, size), threading.Lock()):
            if (shape, size) in programs:
                return None
            if shape in self._refused:
                raise TooLarge(self._refused[shape])
            if backend() == "cpu":
                warn_if_missing()
            start = time.perf_counter()
            driver = self.platform.driver(make(shape, self._computed))
            numerics = self.numerics(shape)
            with plain_jax(), numerics.scope():
                tables = shapes_tables.shape_tables(shape, self._computed)
                example = empty(shape, self._computed, size)
                of = f"{self.platform.name} {name}".lstrip()
                key = f"{of} {shape!r} {self._computed!r} batch of {size}"
                arguments = (tables, example, np.int32(1))
                quick = make is not gradients or numerics.wide
                try:
                    program, cached = kept.compiled(driver, key, arguments, quick=quick)
                except TooLarge as error:
                    self._refused[shape] = str(error)
                    raise
                if shape not in self._tables:
                    self._tables[shape] = jax.device_put(tables)
            return_memory()
            programs[shape, size] = program
            return CompileEvent(shape, time.perf_counter() - start, cached)

    def run(
        self,
        shape: Shape,
        mols: Sequence[Molecule],
        orbitals: bool = False,
        convergence: Convergence = PLAIN,
        forces: bool = False,
        stability: bool = False,
    ) -> list[MoleculeResult]:
        """Compute 1 to `batch_size(shape)` closed shells of one shape; results in the order given.

        A molecule that fails to converge only changes its own row.

        Args:
            shape: of all the molecules.
            mols: they must have passed `Molecule.check`.
            orbitals: also mo_coeff and density_matrix.
            convergence: aids for molecules that did not converge without; the program is the same.
            forces: also -dE/dR, by a second program (`compile_gradient`).
            stability: follow instabilities to the lowest state, and say whether it is stable.

        Raises:
            UsageError: the list is empty or too long, `stability` goes with `fixed_cycles`, or the
                settings' accuracy does not reach `forces`.
        """
        wanted = Wanted(orbitals, forces, stability)
        return self.compute(shape, mols, wanted, convergence=convergence)

    def compute(
        self,
        shape: Shape,
        mols: Sequence[Molecule],
        wanted: Wanted,
        convergence: Convergence = PLAIN,
    ) -> list[MoleculeResult]:
        """Compute closed or open shells, as `run` does.

        Args:
            shape: of all the molecules.
            mols: they must have passed `Molecule.check`.
            wanted: what the results hold; with guesses, one for each molecule, by the program of
                open shells.
            convergence: as in `run`.

        Raises:
            UsageError: as in `run`.
        """
        forces, stability, guesses = wanted.forces, wanted.stability, wanted.guesses
        largest = self.batch_size(shape)
        if not 1 <= len(mols) <= largest:
            raise UsageError(f"{len(mols)} molecules in a batch: this shape takes 1 to {largest}")
        size, is_open = self._call_size(shape, len(mols)), guesses is not None
        if forces:
            self.compile_gradient(shape, len(mols), is_open)
        if wanted.stable_unrestricted:
            self.compile_spin_stability(shape, len(mols))
        self.compile(shape, stability, len(mols), open_shell=is_open)
        batch = conformer.batch(
            mols, shape, self.settings, size=size, convergence=convergence, spins=guesses
        )
        numerics = self.numerics(shape)

        def computed(name: str, data: PyTree) -> PyTree:
            program = self._named(name)[shape, size]
            return program(self._tables[shape], data, np.int32(len(mols)))

        with plain_jax(), numerics.scope():
            out, gradient = computed(_energies_of(is_open, stability), batch), None
            state = State(batch, out.density, out.orbitals, levels=out.orbital_energy)
            if forces:
                gradient = jax.device_get(computed(_gradients_of(is_open), state))
            if wanted.stable_unrestricted:
                out = out._replace(stable_unrestricted=computed(SPIN_STABILITY, state))
            if not wanted.orbitals:
                empty = np.zeros((size, 0, 0))
                keeps = forces and has_core(shape, self.settings)  # on the host for their part
                out = out._replace(orbitals=empty, density=out.density if keeps else empty)
            out = jax.device_get(out)

        level = {"settings": self.settings, "numerics": numerics}

        def result(b: int, mol: Molecule) -> MoleculeResult:
            row = jax.tree.map(itemgetter(b), (out, gradient))
            return from_solution(row, mol, shape, **level, stability=stability)

        return [result(b, mol) for b, mol in enumerate(mols)]

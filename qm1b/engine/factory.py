"""The engine as the generator sees it: an object made by a named factory.

A string ("module:function") names the factory, because workers are separate processes that import
it themselves, and because tests and other devices bring their own. The factory gets the fields of a
`Settings` as keywords.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import numpy as np

from pyscf_ipu.settings import Settings
from qm1b.errors import UserError
from qm1b.settings import RunSettings

if TYPE_CHECKING:
    from pyscf_ipu.molecule.molecule import Molecule
    from pyscf_ipu.results.result import MoleculeResult
    from pyscf_ipu.scf.convergence import Convergence
    from pyscf_ipu.solver.solver import CompileEvent, Solver

DEFAULT = "qm1b.engine.factory:pyscf_ipu_solver"

Shape = Any
"""The key of a compiled program. It is hashable; only the engine knows what else it is."""


@runtime_checkable
class Engine(Protocol):
    """What computes, at one level of theory. `pyscf_ipu.solver.Solver` is one."""

    def n_ao(self, numbers: Sequence[int] | np.ndarray, /) -> int:
        """AOs of some atomic numbers; raises InvalidMolecule if the basis lacks an element."""
        ...

    def shape(self, molecule: Molecule, /, *, coarse: int = ...) -> Hashable:
        """The shape of a molecule; raises InvalidMolecule if the engine cannot compute it.

        With coarse, 1 or 2, more molecules share one: for runs too short for many programs.
        """
        ...

    def batch_size(self, shape: Shape, /) -> int:
        """Molecules of a shape in one batch."""
        ...

    def memory_bytes(self, shape: Shape, /, *, forces: bool = ...) -> int:
        """The memory that a batch of a shape needs at most, its programs included."""
        ...

    def compile(self, shape: Shape, /, *, stability: bool = ...) -> CompileEvent | None:
        """Make the program of a shape ready; None if it was."""
        ...

    def compile_gradient(self, shape: Shape, /) -> CompileEvent | None:
        """Make the program that forces need besides ready; None if it was."""
        ...

    def run(
        self,
        shape: Shape,
        molecules: Sequence[Molecule],
        /,
        *,
        convergence: Convergence = ...,
        forces: bool = ...,
        stability: bool = ...,
        orbitals: bool = ...,
    ) -> Sequence[MoleculeResult]:
        """Compute a batch of molecules of one shape; with stability, the lowest states.

        With forces, each result has those of the state that it describes; with orbitals, which are
        asked for where rows have properties, its density.
        """
        ...


def pyscf_ipu_solver(
    machine: str | None = None, run_vertices: bool = False, **level: Any
) -> Engine:
    """The project's own engine.

    Args:
        machine: a simulated IPU; None for what JAX computes on.
        run_vertices: as of `RunSettings`.
        **level: the fields of a `Settings`.

    Raises:
        ValueError: a setting is not offered; the message names what is.
        UserError: there is no folder for compiled programs, or others may write to it.
    """
    from pyscf_ipu.api.machine_names import find_machine
    from pyscf_ipu.base.errors import UntrustedCache
    from pyscf_ipu.base.host.disk_cache import keep_programs
    from pyscf_ipu.solver.solver import Solver

    solver = Solver(Settings(**level), find_machine(machine, run_vertices))
    try:
        keep_programs()
    except UntrustedCache as error:
        raise UserError(str(error)) from None
    return solver


@dataclass(frozen=True)
class Unrestricted:
    """An `Engine` that computes molecules by unrestricted Kohn-Sham.

    A molecule with more alpha than beta electrons starts from its atoms; of as many, from a guess
    in which the HOMO of alpha is mixed with the LUMO, so that the spins may part.
    """

    engine: Solver

    def n_ao(self, numbers: Sequence[int] | np.ndarray, /) -> int:
        """AOs of some atomic numbers."""
        return self.engine.n_ao(numbers)

    def shape(self, molecule: Molecule, /, *, coarse: int = 0) -> Hashable:
        """The shape of a molecule, which closed shells share."""
        return self.engine.shape(molecule, coarse=coarse)

    def batch_size(self, shape: Shape, /) -> int:
        """Molecules of a shape in one batch."""
        return self.engine.batch_size(shape)

    def memory_bytes(self, shape: Shape, /, *, forces: bool = False) -> int:
        """The memory that a batch of a shape needs at most."""
        return self.engine.memory_bytes(shape, forces=forces, open_shell=True)

    def compile(self, shape: Shape, /, *, stability: bool = False) -> CompileEvent | None:
        """Make the program of a shape ready; None if it was."""
        return self.engine.compile(shape, stability=stability, open_shell=True)

    def compile_gradient(self, shape: Shape, /) -> CompileEvent | None:
        """Make the program that forces need besides ready; None if it was."""
        return self.engine.compile_gradient(shape, open_shell=True)

    def run(
        self,
        shape: Shape,
        molecules: Sequence[Molecule],
        /,
        *,
        convergence: Convergence | None = None,
        forces: bool = False,
        stability: bool = False,
        orbitals: bool = False,
    ) -> Sequence[MoleculeResult]:
        """Compute a batch of molecules of one shape; see `Engine.run`."""
        from pyscf_ipu.scf.convergence import PLAIN
        from pyscf_ipu.solver.solver import Wanted, usual_guess

        guesses = tuple(usual_guess(molecule) or "mixed" for molecule in molecules)
        wanted = Wanted(orbitals, forces, stability, guesses=guesses)
        return self.engine.compute(shape, molecules, wanted, convergence=convergence or PLAIN)


def build(factory: str, settings: RunSettings) -> Engine:
    """The engine that `factory` makes for a level of theory, on the machine of the run."""
    module, _, name = factory.partition(":")
    names = ("machine", "run_vertices") if settings.is_simulated or settings.run_vertices else ()
    machine = {name: getattr(settings, name) for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySCF adds advice of its own to an unknown basis
        return getattr(importlib.import_module(module), name)(**machine, **vars(settings.level))


def ao_counter(engine: Engine) -> Callable[[Iterable[int]], int]:
    """A function that counts the AOs of atomic numbers; it asks the engine once per element.

    The function raises InvalidMolecule if the basis lacks an element.
    """
    of_element = functools.cache(lambda number: engine.n_ao([number]))
    return lambda numbers: sum(of_element(int(number)) for number in numbers)


@runtime_checkable
class EngineAt(Protocol):
    """The engine of a level, and of variants of the level."""

    def __call__(
        self, precision: str | None, *, stability: bool = ..., open_shell: bool = ...
    ) -> Engine:
        """The engine in a precision, or for None in the level's own.

        With stability, one whose number of cycles is not fixed, since it makes several SCFs; with
        open_shell, one that is unrestricted.
        """
        ...


def at_precisions(factory: str, settings: RunSettings) -> EngineAt:
    """The engines of a run's level; each is made when it is first asked for."""
    level = settings.level

    @functools.cache
    def engine(precision: str, fixed_cycles: int) -> Engine:
        variant = replace(level, precision=precision, fixed_cycles=fixed_cycles)
        return build(factory, replace(settings, level=variant))

    def at(precision: str | None, *, stability: bool = False, open_shell: bool = False) -> Engine:
        made = engine(precision or level.precision, 0 if stability else level.fixed_cycles)
        return Unrestricted(cast("Solver", made)) if open_shell else made

    return at


def definition(xc: str) -> str:
    """What a functional's name means, with libxc ids."""
    from pyscf_ipu.xc.registry import functional

    return functional(xc).definition

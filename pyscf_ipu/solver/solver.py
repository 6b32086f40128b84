"""Shapes, compiled programs and batches: from a list of molecules to the device, and back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import jax
import numpy as np
from jaxtyping import PyTree

from pyscf_ipu.codelets import warn_if_missing
from pyscf_ipu.convergence import PLAIN, Convergence
from pyscf_ipu.errors import InvalidMolecule, TooLarge
from pyscf_ipu.gradient import State, empty_states, gradients
from pyscf_ipu.kohn_sham.batch import DRIVERS
from pyscf_ipu.kohn_sham.program import Program, energies, lowest_energies
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes import conformer
from pyscf_ipu.shapes import tables as shapes_tables
from pyscf_ipu.shapes.shape import Shape, count_ao, shape_of
from pyscf_ipu.solver import kept
from pyscf_ipu.solver.memory import available_bytes, program_bytes
from pyscf_ipu.solver.result import MoleculeResult, from_solution

BATCH_SIZES = ((64, 16), (100, 8), (160, 2))
"""(AOs at most, conformers per call): larger batches gain nothing."""

MEMORY_SHARE = 0.8
"""Part of this machine's memory that one call may need."""


@dataclass(frozen=True)
class CompileEvent:
    """A program became ready: how long it took, and whether it came from the disk cache."""

    shape: Shape
    seconds: float
    cached: bool


class Solver:
    """Runs molecules of any shape at one level of theory; compiles each shape once.

    Cheap to make: nothing is compiled before `compile` or `run`.  Threads may share one.

    Raises:
        ValueError: a setting cannot be used.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings.check()
        self._programs: dict[Shape, Callable[..., PyTree]] = {}
        self._lowest: dict[Shape, Callable[..., PyTree]] = {}
        self._gradients: dict[Shape, Callable[..., PyTree]] = {}
        self._tables: dict[Shape, tuple] = {}
        self._batch_sizes: dict[Shape, int] = {}
        self._locks: dict[tuple[str, Shape], threading.Lock] = {}

    def __reduce__(self) -> tuple[type[Solver], tuple[Settings]]:
        """Pickled by its settings: compiled programs belong to this process."""
        return type(self), (self.settings,)

    def __deepcopy__(self, memo: dict[int, object]) -> Solver:
        """Itself: compiled programs can be shared."""
        return self

    def shape(self, mol: Molecule) -> Shape:
        """The bucket of a molecule.

        Raises:
            InvalidMolecule: the basis lacks an element, or has too few functions for the electrons.
            TooLarge: (an InvalidMolecule) this machine has too little memory.
        """
        pairs, room = mol.n_electrons // 2, self.n_ao(mol.numbers)
        if pairs > room:
            raise InvalidMolecule(
                f"charge {mol.charge} gives {mol.n_electrons} electrons, and the {room} functions "
                f"of {self.settings.basis} hold at most {2 * room}: check the charge"
            )
        shape = shape_of(
            mol.numbers, self.settings.basis, self.settings.cart, self.settings.grid_level
        )
        needed, there = self.memory_bytes(shape), available_bytes()
        if needed > MEMORY_SHARE * there:
            raise TooLarge(
                f"too large: {shape.n_ao} AOs need about {needed / 2**30:.0f} GiB and this machine "
                f"has {there / 2**30:.0f}; use a smaller molecule or basis"
            )
        return shape

    def n_ao(self, numbers: Sequence[int] | np.ndarray) -> int:
        """Number of AOs of a molecule, from atomic numbers; errors as of `shape`."""
        return count_ao(numbers, self.settings.basis, self.settings.cart)

    def memory_bytes(self, shape: Shape) -> int:
        """Estimated peak memory of a call on a CPU, whose molecules run one after another."""
        return self._call_bytes(shape, self.batch_size(shape))

    def batch_size(self, shape: Shape) -> int:
        """Conformers per call; fixed for a shape, so that one program serves every call.

        The number of BATCH_SIZES, halved until the estimate of `memory_bytes` fits into
        MEMORY_SHARE of the memory: the same on machines of the same size. Results do not depend
        on it.
        """
        if shape not in self._batch_sizes:  # once: a container's limit may change under way
            size = next((n for limit, n in BATCH_SIZES if shape.n_ao <= limit), 1)
            room = MEMORY_SHARE * available_bytes()
            while size > 1 and self._call_bytes(shape, size) > room:
                size //= 2
            self._batch_sizes[shape] = size
        return self._batch_sizes[shape]

    def _call_bytes(self, shape: Shape, size: int) -> int:
        """What one molecule needs while it runs, and what is kept of every molecule of a batch."""
        word = np.dtype(self.settings.numerics.energy_dtype).itemsize
        kept = (2 * shape.n_ao + 1) * shape.n_ao * word  # orbitals, density, their energies
        return program_bytes(shape, self.settings) + size * kept

    def compile(self, shape: Shape, stability: bool = False) -> CompileEvent | None:
        """Make the program of a shape ready; None if it is already.

        Args:
            shape: of the molecules.
            stability: the program that follows instabilities, which is another one.
        """
        if stability:
            programs, name, make = self._lowest, "lowest energies", lowest_energies
        else:
            programs, name, make = self._programs, "energies", energies
        return self._compile(shape, programs, name, make, conformer.empty_batch)

    def compile_gradient(self, shape: Shape) -> CompileEvent | None:
        """Make the program that forces need besides ready; None if it is already."""
        return self._compile(shape, self._gradients, "gradients", gradients, empty_states)

    def _compile(
        self,
        shape: Shape,
        programs: dict[Shape, Callable[..., PyTree]],
        name: str,
        make: Callable[[Shape, Settings], Program],
        empty: Callable[[Shape, Settings, int], PyTree],
    ) -> CompileEvent | None:
        """Add a shape's program to `programs`; `empty` makes arrays of the right kinds for it."""
        with self._locks.setdefault((name, shape), threading.Lock()):
            if shape in programs:
                return None
            if jax.default_backend() == "cpu":
                warn_if_missing()
            start = time.perf_counter()
            driver = DRIVERS.get(jax.default_backend(), DRIVERS["gpu"])(make(shape, self.settings))
            with self.settings.numerics.scope():
                tables = shapes_tables.shape_tables(shape, self.settings)
                size = self.batch_size(shape)
                example = empty(shape, self.settings, size)
                key = f"{name} {shape!r} {self.settings!r} batch of {size}"
                arguments, quick = (tables, example, np.int32(1)), make is not gradients
                program, cached = kept.compiled(driver, key, arguments, quick)
                if shape not in self._tables:
                    self._tables[shape] = jax.device_put(tables)
            programs[shape] = program
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
        """Compute 1 to `batch_size(shape)` molecules of one shape; results in the order given.

        A molecule that fails to converge only changes its own row.

        Args:
            shape: of all the molecules.
            mols: they must have passed `Molecule.check`.
            orbitals: also mo_coeff and density_matrix.
            convergence: aids for molecules that did not converge without; the program is the same.
            forces: also -dE/dR, by a second program (`compile_gradient`).
            stability: follow instabilities to the lowest state, and say whether it is stable.

        Raises:
            ValueError: the list is empty or too long.
        """
        size = self.batch_size(shape)
        if not 1 <= len(mols) <= size:
            raise ValueError(f"{len(mols)} molecules in a batch: this shape takes 1 to {size}")
        self.compile(shape, stability)
        if forces:
            self.compile_gradient(shape)
        batch = conformer.batch(mols, shape, self.settings, size, convergence)
        with self.settings.numerics.scope():
            count = np.int32(len(mols))
            programs = self._lowest if stability else self._programs
            out = programs[shape](self._tables[shape], batch, count)
            gradient = None
            if forces:
                state = State(batch, out.density, out.orbitals, out.orbital_energy)
                gradient = jax.device_get(self._gradients[shape](self._tables[shape], state, count))
            if not orbitals:
                empty = np.zeros((size, 0, 0))
                out = out._replace(orbitals=empty, density=empty)
            out = jax.device_get(out)

        def row(b: int) -> PyTree:
            return jax.tree.map(itemgetter(b), (out, gradient))

        return [
            from_solution(row(b), mol, shape, self.settings, orbitals, stability)
            for b, mol in enumerate(mols)
        ]

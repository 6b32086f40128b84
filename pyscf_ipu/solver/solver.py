"""Shapes, compiled programs and batches: from a list of molecules to the device, and back."""

from __future__ import annotations

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
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.numerics.two_words import to_float64
from pyscf_ipu.scf.batch import DRIVERS
from pyscf_ipu.scf.program import Program, Solution, energies
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes import conformer
from pyscf_ipu.shapes import tables as shapes_tables
from pyscf_ipu.shapes.shape import Shape, count_ao, shape_of
from pyscf_ipu.solver import exported
from pyscf_ipu.solver.disk_cache import cache_hits
from pyscf_ipu.solver.memory import available_bytes, program_bytes
from pyscf_ipu.solver.result import TERM_NAMES, MoleculeResult, status_of

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

    Cheap to make: nothing is compiled before `compile` or `run`.

    Raises:
        ValueError: a setting cannot be used.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings.check()
        self._programs: dict[Shape, Callable[..., PyTree]] = {}
        self._gradients: dict[Shape, Callable[..., PyTree]] = {}
        self._tables: dict[Shape, tuple] = {}
        self._batch_sizes: dict[Shape, int] = {}

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

    def compile(self, shape: Shape) -> CompileEvent | None:
        """Make the program of a shape ready; None if it is already."""
        return self._compile(shape, self._programs, "energies", energies, conformer.empty_batch)

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
        if shape in programs:
            return None
        if jax.default_backend() == "cpu":
            warn_if_missing()
        start, hits = time.perf_counter(), cache_hits().count
        driver = DRIVERS.get(jax.default_backend(), DRIVERS["gpu"])(make(shape, self.settings))
        with self.settings.numerics.scope():
            tables = shapes_tables.shape_tables(shape, self.settings)
            size = self.batch_size(shape)
            example = empty(shape, self.settings, size)
            key = f"{name} {shape!r} {self.settings!r} batch of {size}"
            lowered = exported.lower(driver, key, (tables, example, np.int32(1)))
            programs[shape] = lowered.compile()
            if shape not in self._tables:
                self._tables[shape] = jax.device_put(tables)
        seconds = time.perf_counter() - start
        return CompileEvent(shape, seconds, cached=cache_hits().count > hits)

    def run(
        self,
        shape: Shape,
        mols: Sequence[Molecule],
        orbitals: bool = False,
        convergence: Convergence = PLAIN,
        forces: bool = False,
    ) -> list[MoleculeResult]:
        """Compute 1 to `batch_size(shape)` molecules of one shape; results in the order given.

        A molecule that fails to converge only changes its own row.

        Args:
            shape: of all the molecules.
            mols: they must have passed `Molecule.check`.
            orbitals: also mo_coeff and density_matrix.
            convergence: aids for molecules that did not converge without; the program is the same.
            forces: also -dE/dR, by a second program (`compile_gradient`).

        Raises:
            ValueError: the list is empty or too long.
        """
        size = self.batch_size(shape)
        if not 1 <= len(mols) <= size:
            raise ValueError(f"{len(mols)} molecules in a batch: this shape takes 1 to {size}")
        self.compile(shape)
        if forces:
            self.compile_gradient(shape)
        batch = conformer.batch(mols, shape, self.settings, size, convergence)
        with self.settings.numerics.scope():
            count = np.int32(len(mols))
            out = self._programs[shape](self._tables[shape], batch, count)
            gradient = None
            if forces:
                state = State(batch, out.density, out.orbitals, out.orbital_energy)
                gradient = jax.device_get(self._gradients[shape](self._tables[shape], state, count))
            if not orbitals:
                empty = np.zeros((size, 0, 0))
                out = out._replace(orbitals=empty, density=empty)
            out = jax.device_get(out)
        return [
            _result(
                jax.tree.map(itemgetter(b), (out, gradient)), mol, shape, self.settings, orbitals
            )
            for b, mol in enumerate(mols)
        ]


def _result(
    found: tuple[Solution, np.ndarray | None],
    mol: Molecule,
    shape: Shape,
    settings: Settings,
    orbitals: bool,
) -> MoleculeResult:
    """One molecule's result: words added up in float64, no padding, AOs in PySCF's order."""
    out, gradient = found
    n = count_ao(mol.numbers, settings.basis, settings.cart)
    terms = [np.float64(to_float64(t)) for t in out.terms]
    n_kept = n - int(out.n_dropped)
    mo_energy = np.asarray(out.orbital_energy, np.float64)[:n_kept]
    occupied = mol.n_electrons // 2
    cycles = int(out.cycles)
    energies = to_float64(out.energies)[:cycles]  # inf beyond the cycles that there were
    finite = bool(np.isfinite(terms).all() and np.isfinite(mo_energy).all())
    held = settings.numerics.holds(float(out.overlap_smallest))
    converged = bool(out.converged) and finite and held
    # Coordinates were centred; a charged molecule's dipole moment notices.
    dipole = np.asarray(out.dipole, np.float64) + mol.charge * mol.positions.mean(axis=0)
    atoms = np.argsort(conformer.slot_order(mol, shape, settings))[-mol.n_atoms :]
    forces = None
    if gradient is not None:
        forces = np.where(converged, -np.asarray(gradient, np.float64)[atoms], np.nan)
    coefficients = density = None
    if orbitals:
        order = conformer.ao_order(mol, shape, settings)
        coefficients = np.asarray(out.orbitals, np.float64)[order][:, :n_kept]
        density = np.asarray(out.density, np.float64)[np.ix_(order, order)]
    homo = mo_energy[occupied - 1]
    lumo = mo_energy[occupied] if occupied < n_kept else np.float64("nan")
    return MoleculeResult(
        energy=np.float64(sum(terms)),
        homo=homo,
        lumo=lumo,
        gap=lumo - homo,
        dipole=dipole,
        converged=np.bool_(converged),
        cycles=np.int64(cycles),
        commutator_norm=np.float64(out.commutator),
        energy_std=float(np.std(energies)) if cycles else float("nan"),
        overlap_smallest=np.float64(out.overlap_smallest),
        n_dropped=np.int64(out.n_dropped),
        energy_terms=dict(zip(TERM_NAMES, terms, strict=True)),
        status=status_of(converged, held, finite),
        mo_energy=mo_energy,
        mulliken_charges=np.asarray(out.charges, np.float64)[atoms],
        mo_coeff=coefficients,
        density_matrix=density,
        forces=forces,
    )

"""The compiled core of `rks` as a plain JAX function, for simulators and for reading."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
import numpy as np

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.fitting.operators import Operators
from pyscf_ipu.kohn_sham.fitted import fit_of, with_fit
from pyscf_ipu.kohn_sham.hamiltonian import guess_density
from pyscf_ipu.kohn_sham.program import Solution, kohn_sham
from pyscf_ipu.machines.machine import HOST, Machine
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.settings import Settings, usable
from pyscf_ipu.shapes import conformer as shapes_conformer
from pyscf_ipu.shapes import tables
from pyscf_ipu.shapes.core import numerics_of
from pyscf_ipu.shapes.shape import Shape
from pyscf_ipu.solver.solver import Solver

Arguments = (
    tuple[tuple[tables.ClassTable, ...], shapes_conformer.Conformer]
    | tuple[tuple[tables.ClassTable, ...], shapes_conformer.Conformer, Operators]
)
Core = Callable[..., Solution]


def rks_core(
    mol: Molecule,
    settings: Settings | None = None,
    machine: Callable[[Shape], Machine] | None = None,
    coarse: int = 0,
) -> tuple[Core, Arguments]:
    """(function, arguments): `jax.jit(function)(*arguments)` is one SCF, coordinates to results.

    For a machine without float64 density fitting has one more argument, the fit, which is made here
    and now by the host.

    Args:
        mol: one molecule.
        settings: level of theory; default `Settings()`.
        machine: from the molecule's shape, the algorithms of a machine; default: those of CPUs.
        coarse: as of `Solver.shape`.

    Raises:
        InvalidMolecule: as `Solver.shape`.
        UsageError: a setting cannot be used, or float64 is asked for without JAX's 64-bit mode.
    """
    settings = usable(settings)
    mol.check(settings.precision)
    shape = Solver(settings).shape(mol, coarse)
    how = machine(shape) if machine else HOST
    numerics = numerics_of(shape, settings, how.has_float64)
    if not how.branches:
        settings = replace(settings, first_cycles="full")
    if settings.form(shape.n_ao) == "ri" and not how.has_float64 and not numerics.refines:
        return _with_fit(mol, shape, settings, machine=how)
    if numerics.wants64 and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise UsageError(
            f"precision={numerics.name!r} with basis={str(settings.basis)!r} and "
            f"jk={settings.jk!r} computes in float64: make, trace and run the program inside `with "
            "jax.enable_x64(True)`, or choose float32, exact and a basis such as 6-31g*"
        )

    def core(
        table: tuple[tables.ClassTable, ...], conformer: shapes_conformer.Conformer
    ) -> Solution:
        return kohn_sham(shape, settings, table, mol=conformer, machine=how)

    return core, (
        tables.shape_tables(shape, settings),
        shapes_conformer.conformer(mol, shape, settings),
    )


def _with_fit(
    mol: Molecule, shape: Shape, settings: Settings, machine: Machine
) -> tuple[Core, Arguments]:
    """The SCF of a machine without float64, whose fit comes from the host."""
    exact = replace(settings, jk="exact")
    conformer = shapes_conformer.conformer(mol, shape, settings)
    with jax.enable_x64(True):
        make = jax.jit(partial(fit_of, shape, settings, guess_density))
        fit = make(tables.shape_tables(shape, settings), conformer)
    dtype = settings.numerics.scf_dtype
    fit = jax.tree.map(lambda x: np.asarray(x, x.dtype if x.dtype == np.int32 else dtype), fit)

    def core(
        table: tuple[tables.ClassTable, ...],
        conformer: shapes_conformer.Conformer,
        fit: Operators,
    ) -> Solution:
        how = with_fit(machine, fit, guess_density)
        return kohn_sham(shape, exact, table, mol=conformer, machine=how)

    return core, (tables.shape_tables(shape, exact), conformer, fit)

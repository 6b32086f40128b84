"""The compiled core of `rks` as a plain JAX function, for simulators and for reading."""

from collections.abc import Callable
from dataclasses import replace

import jax

from pyscf_ipu.kohn_sham.program import Solution, restricted_kohn_sham
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.scf.machine import HOST, Machine
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes import conformer as shapes_conformer
from pyscf_ipu.shapes import tables
from pyscf_ipu.shapes.shape import Shape
from pyscf_ipu.solver.solver import Solver

Arguments = tuple[tuple[tables.ClassTable, ...], shapes_conformer.Conformer]
Core = Callable[[tuple[tables.ClassTable, ...], shapes_conformer.Conformer], Solution]


def rks_core(
    mol: Molecule,
    settings: Settings | None = None,
    machine: Callable[[Shape], Machine] | None = None,
    coarse: bool = False,
) -> tuple[Core, Arguments]:
    """(function, arguments): `jax.jit(function)(*arguments)` is one SCF, coordinates to results.

    Args:
        mol: one molecule.
        settings: level of theory; default `Settings()`.
        machine: from the molecule's shape, the algorithms of a machine; default: those of CPUs.
        coarse: as of `Solver.shape`.

    Raises:
        InvalidMolecule: as `Solver.shape`.
        ValueError: a setting cannot be used, float64 is asked for without JAX's 64-bit mode, or
            density fitting of a machine that has no float64.
    """
    settings = (settings or Settings()).check()
    numerics = settings.numerics
    mol.check(settings.precision)
    shape = Solver(settings).shape(mol, coarse)
    how = machine(shape) if machine else HOST
    if settings.form(shape.n_ao) == "ri" and not how.has_float64:
        raise ValueError(
            f"jk={settings.jk!r} fits in float64, which this machine does not have: use jk='exact'"
        )
    if numerics.wants64 and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise ValueError(
            f"precision={numerics.name!r} with jk={settings.jk!r} computes in float64: make, trace "
            "and run the program inside `with jax.enable_x64(True)`, or choose float32 and exact"
        )

    if not how.branches:
        settings = replace(settings, first_cycles="full")

    def core(
        table: tuple[tables.ClassTable, ...], conformer: shapes_conformer.Conformer
    ) -> Solution:
        return restricted_kohn_sham(shape, settings, table, conformer, how)

    return core, (
        tables.shape_tables(shape, settings),
        shapes_conformer.conformer(mol, shape, settings),
    )

"""The compiled core of `rks` as a plain JAX function, for simulators and for reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from pyscf_ipu import tables
from pyscf_ipu.machine import HOST, Machine
from pyscf_ipu.molecule import Molecule
from pyscf_ipu.program import Solution, restricted_kohn_sham
from pyscf_ipu.settings import Settings
from pyscf_ipu.shape import Shape
from pyscf_ipu.solver import Solver

Core = Callable[..., Solution]


def rks_core(
    mol: Molecule,
    settings: Settings | None = None,
    machine: Callable[[Shape], Machine] | None = None,
) -> tuple[Core, tuple[Any, ...]]:
    """(function, arguments): `jax.jit(function)(*arguments)` is one SCF, coordinates to results.

    mol       one molecule.
    settings  level of theory; default `Settings()`.
    machine   from the molecule's shape, the algorithms of a machine; default those of CPUs.

    Raises InvalidMolecule and TooLarge as `Solver.shape` does, ValueError for unusable settings,
    and for a precision with float64 unless JAX's 64-bit mode is on.
    """
    settings = (settings or Settings()).check()
    numerics = settings.numerics
    wide = np.float64 in (numerics.scf_dtype, numerics.energy_dtype)
    if wide and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise ValueError(
            f"precision={numerics.name!r} computes in float64: make, trace and run the program "
            "inside `with jax.enable_x64(True)`, or choose float32"
        )
    mol.check()
    shape = Solver(settings).shape(mol)
    how = machine(shape) if machine else HOST

    def core(table: Any, conformer: Any) -> Solution:
        return restricted_kohn_sham(shape, settings, table, conformer, how)

    return core, (tables.shape_tables(shape, settings), tables.conformer(mol, shape, settings))

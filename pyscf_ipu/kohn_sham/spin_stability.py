"""Whether a restricted state stays lowest when alpha and beta orbitals may differ.

The Hessian of both spins falls into two parts in closed shells: rotations that are the same for
both, which `stability` looks at, and those that are opposite, the triplet ones (R. Seeger, J. A.
Pople, J. Chem. Phys. 66, 3045 (1977), doi:10.1063/1.434318).  Of the latter Coulomb repulsion drops
out, since the density of all electrons stays.
"""

from dataclasses import replace

import jax.numpy as jnp

from pyscf_ipu.grid.orbital_products import by_orbitals
from pyscf_ipu.kohn_sham.fitted import fitted
from pyscf_ipu.kohn_sham.hamiltonian import Hamiltonian, guess_density, hamiltonian
from pyscf_ipu.kohn_sham.program import Program, State, gathered
from pyscf_ipu.machines.machine import HOST, Machine
from pyscf_ipu.numerics.arrays import Count, Flag, FloatN, FloatNN
from pyscf_ipu.scf.lowest.descent import rotations
from pyscf_ipu.scf.lowest.rotation import Response, RotationField, lowest_rotation
from pyscf_ipu.scf.orbitals import density_of
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.core import numerics_of
from pyscf_ipu.shapes.shape import Shape
from pyscf_ipu.shapes.tables import ClassTable
from pyscf_ipu.xc.registry import functional


def is_stable_unrestricted(
    shape: Shape,
    settings: Settings,
    tables: tuple[ClassTable, ...],
    state: State,
    machine: Machine = HOST,
) -> Flag:
    """Say whether no rotation that parts the spins lowers the energy of a converged closed shell.

    Args:
        shape: of the molecule.
        settings: of the SCF.
        tables: of the shape.
        state: the closed shell.
        machine: its algorithms.
    """
    numerics, xc = numerics_of(shape, settings, machine.has_float64), functional(settings.xc)
    atoms, on_grid = gathered(shape, tables, state.mol, numerics=numerics)
    products = by_orbitals(machine.grid_products, xc, many_aos=numerics.wide)
    fit = fitted(machine, shape, settings, reference=guess_density)
    problem = hamiltonian(
        atoms,
        xc,
        replace(fit, grid_products=products),
        on_grid=on_grid,
        open_shell=True,
    )
    orbitals, levels = (x.astype(atoms.dtype) for x in (state.orbitals, state.levels))
    n_occupied = state.mol.n_occupied
    field = stationary_field(problem, orbitals, levels, n_occupied=n_occupied)
    response = triplet_response(problem, density_of(orbitals, n_occupied))
    return lowest_rotation(response, field).is_of_minimum


def stationary_field(
    problem: Hamiltonian, orbitals: FloatNN, levels: FloatN, n_occupied: Count
) -> RotationField:
    """The field of a converged closed shell, whose gradient counts as zero."""
    occupied = jnp.arange(levels.shape[0], dtype=jnp.int32) < n_occupied
    return RotationField(
        orbitals,
        levels,
        jnp.zeros_like(orbitals),
        allowed=rotations(orbitals, occupied, problem.padded),
        stationary=jnp.ones((), bool),
    )


def triplet_response(problem: Hamiltonian, density: FloatNN) -> Response:
    """Change of the alpha density -> change of its Fock matrix, where beta's changes oppositely.

    Args:
        problem: of two spins.
        density: of the closed shell.
    """
    of_spins = problem.response(jnp.stack([density, density]))
    return lambda change: of_spins(jnp.stack([change, -change]))[0]


def spin_stabilities(shape: Shape, settings: Settings, machine: Machine = HOST) -> Program:
    """The program of a shape: (tables, State) -> whether it is stable towards unequal spins."""
    return lambda tables, state: is_stable_unrestricted(
        shape, settings, tables, state=state, machine=machine
    )

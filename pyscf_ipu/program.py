"""The compiled function of a shape: conformers in, energies out, no host round trip."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from pyscf_ipu.codelets import strip_primitives
from pyscf_ipu.exchange_correlation import atom_data
from pyscf_ipu.hamiltonian import EnergyTerms, Hamiltonian, guess_density, hamiltonian
from pyscf_ipu.layout import Layout
from pyscf_ipu.machine import HOST, Machine
from pyscf_ipu.precision import Pair
from pyscf_ipu.scf import ScfRun, density_of, orthonormal, reorthonormalise, scf, similar
from pyscf_ipu.settings import Settings
from pyscf_ipu.shape import Shape
from pyscf_ipu.tables import ClassTable, Conformer
from pyscf_ipu.tiles import tile_plan
from pyscf_ipu.xc import functional


class Solution(NamedTuple):
    """What the device returns for one conformer, in slot order and atomic units.

    terms         EnergyTerms of the converged density.
    orbital_energy [N] ascending, padded AOs last; orbitals [N, N]; density [N, N].
    dipole        [3] about the origin of the conformer's frame.
    charges       [A] Mulliken's net charges in units of e.
    converged, cycles, commutator; energies: Pair [5], the latest cycles, newest first.
    """

    terms: EnergyTerms
    orbital_energy: Array
    orbitals: Array
    density: Array
    dipole: Array
    charges: Array
    converged: Array
    cycles: Array
    commutator: Array
    energies: Pair


Program = Callable[[tuple[ClassTable, ...], Any], Any]
"""(tables, the data of one molecule) -> its results; both pytrees of arrays."""

Driver = Callable[[tuple[ClassTable, ...], Any, Array], Any]
"""The same for a batch, with a leading axis, of which the first `count` are to be computed."""


def restricted_kohn_sham(
    shape: Shape,
    settings: Settings,
    tables: tuple[ClassTable, ...],
    mol: Conformer,
    machine: Machine = HOST,
) -> Solution:
    """One conformer from coordinates to results; pure, to be jitted with shape and settings fixed.

    The SCF runs in the precision's `scf_dtype`.  The energy is then evaluated once at the
    converged orbitals, re-orthonormalised in `energy_dtype`: the energy is variational, so the
    orbitals' remaining error enters squared, but only if the density is idempotent.
    """
    numerics = settings.numerics
    plan = tile_plan(shape, strip_primitives=strip_primitives())
    xc = functional(settings.xc)
    problem = hamiltonian(plan, xc, tables, mol, numerics.scf_dtype, machine)
    basis = orthonormal(problem.overlap, machine.eigh)
    guess = guess_density(plan.layout, tables, mol)
    run = scf(
        problem.fock, basis, guess, mol.n_occupied, settings.max_cycles, numerics, machine.eigh,
        mol.aids,
    )  # fmt: skip
    if numerics.refines:
        problem = hamiltonian(plan, xc, tables, mol, numerics.energy_dtype)
        run = _evaluate(problem, run, mol.n_occupied)
    energy, orbitals = _padding_last(run.energy, run.orbitals, problem.padded)
    charge, _ = atom_data(plan.layout, tables, mol)
    positions = mol.positions.astype(energy.dtype).value()
    nuclear = charge[:, None].astype(energy.dtype) * positions
    return Solution(
        run.terms,
        energy,
        orbitals,
        run.density,
        problem.dipole(run.density) + nuclear.sum(0),
        charge.astype(energy.dtype) - _populations(plan.layout, run.density, problem.overlap.hi),
        run.converged,
        run.cycles,
        run.commutator,
        run.energies,
    )


def _evaluate(problem: Hamiltonian, run: ScfRun, n_occupied: Array) -> ScfRun:
    """Energy and orbital energies once more, in the dtype of `problem`, at converged orbitals."""
    basis = orthonormal(problem.overlap)
    orbitals = reorthonormalise(run.orbitals.astype(basis.root.dtype), basis.overlap)
    density = density_of(orbitals, n_occupied)
    fock, terms = problem.fock(density)
    energy, vectors = jnp.linalg.eigh(similar(fock, basis.inverse))
    orbitals = jnp.matmul(basis.inverse, vectors, precision="highest")
    return run._replace(density=density, terms=terms, energy=energy, orbitals=orbitals)


def _populations(layout: Layout, density: Array, overlap: Array) -> Array:
    """Electrons on every atom [A]: the diagonal of D S, summed over an atom's AOs.

    R. S. Mulliken, J. Chem. Phys. 23, 1833 (1955), doi:10.1063/1.1740588.
    """
    on_ao = jnp.sum(density * overlap, axis=1)
    padded = jnp.append(on_ao, jnp.zeros(1, on_ao.dtype))
    return padded[layout.atom_aos].sum(1)


def _padding_last(energy: Array, orbitals: Array, padded: Array) -> tuple[Array, Array]:
    """Move the orbitals of padded AOs to the end, with infinite energy."""
    weight = jnp.sum(jnp.where(padded[:, None], orbitals * orbitals, 0.0), axis=0)
    energy = jnp.where(weight > 0.5, jnp.inf, energy)
    order = jnp.argsort(energy)
    return energy[order], orbitals[:, order]


def energies(shape: Shape, settings: Settings) -> Program:
    """The program of a shape: (tables, one conformer) -> Solution."""
    return lambda tables, mol: restricted_kohn_sham(shape, settings, tables, mol)


def sequential(program: Program) -> Driver:
    """A batch driver for CPUs: molecules one after another, only the first `count` of them.

    One supermatrix at a time stays in cache, a converged molecule costs nothing more, and one
    compiled program serves every batch size.
    """

    def run(tables: tuple[ClassTable, ...], rows: Any, count: Array) -> Any:
        def one(index: Array) -> Any:
            row = jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, index, 0, False), rows)
            return program(tables, row)

        batch = jax.tree.leaves(rows)[0].shape[0]
        empty = jax.tree.map(
            lambda s: jnp.zeros((batch, *s.shape), s.dtype),
            jax.eval_shape(one, jax.ShapeDtypeStruct((), jnp.int32)),
        )

        def step(index: Array, out: Any) -> Any:
            return jax.tree.map(lambda o, x: o.at[index].set(x), out, one(index))

        return lax.fori_loop(0, count, step, empty)

    return run


def side_by_side(program: Program) -> Driver:
    """A batch driver for GPUs: all molecules at once; those beyond `count` are computed in vain."""

    def run(tables: tuple[ClassTable, ...], rows: Any, count: Array) -> Any:
        del count
        return jax.vmap(lambda row: program(tables, row))(rows)

    return run


DRIVERS = {"cpu": sequential, "gpu": side_by_side}

"""The compiled function of a shape: conformers in, energies out, no host round trip."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, PyTree

from pyscf_ipu.codelets import strip_primitives
from pyscf_ipu.grid.orbital_products import by_orbitals
from pyscf_ipu.kohn_sham.fitted import fitted
from pyscf_ipu.kohn_sham.hamiltonian import (
    EnergyTerms,
    Hamiltonian,
    guess_density,
    hamiltonian,
    on_grid_of,
    total_density,
)
from pyscf_ipu.kohn_sham.idempotent import of_idempotent
from pyscf_ipu.machines.machine import HOST, Machine
from pyscf_ipu.numerics.arrays import (
    Count,
    Counts,
    Flag,
    FloatA,
    FloatN,
    FloatNN,
    FloatSN,
    FloatSNN,
    Scalar,
    by_spin,
)
from pyscf_ipu.numerics.precision import PRECISIONS, Precision
from pyscf_ipu.numerics.products import after, product
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.scf.algebra import Algebra
from pyscf_ipu.scf.cycle import AUFBAU_ERROR
from pyscf_ipu.scf.lowest.lowest import Lowest, lowest_scf
from pyscf_ipu.scf.lowest.starts import Start, scf, small_gap
from pyscf_ipu.scf.orbitals import (
    Orthonormal,
    density_of,
    is_padding,
    left_out,
    orthonormal,
    purified,
)
from pyscf_ipu.scf.run import ORDINARY, Cycling, History, ScfRun
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.atoms import Atoms, gather_atoms
from pyscf_ipu.shapes.conformer import Conformer
from pyscf_ipu.shapes.core import numerics_of
from pyscf_ipu.shapes.layout import Layout
from pyscf_ipu.shapes.shape import Shape
from pyscf_ipu.shapes.tables import ClassTable
from pyscf_ipu.shapes.tile_plan import tile_plan
from pyscf_ipu.xc.registry import functional

TURNED = 0.5
"""Spin density over density of an atom in the guess that turns the spins of neighbours apart."""


class Spin(NamedTuple):
    """What only open shells have."""

    squared: Scalar  # expectation value of S^2
    populations: FloatA  # Mulliken's, of alpha less those of beta electrons
    fractional: Flag  # see `ScfRun`


class Solution(NamedTuple):
    """What the device returns for one conformer, in slot order and atomic units.

    See `ScfRun` and `Lowest`.
    """

    terms: EnergyTerms
    orbital_energy: FloatSN  # ascending, padded AOs last
    orbitals: FloatSNN
    density: FloatSNN
    dipole: Float[Array, "3"]  # about the origin of the conformer's frame
    charges: FloatA  # Mulliken's net charges in units of e
    converged: Flag
    cycles: Count
    commutator: Scalar
    energies: Pair
    stable: Flag  # False without `stability`
    followed: Count
    overlap_smallest: Scalar  # smallest eigenvalue of the overlap
    n_dropped: Count  # eigenvectors of the overlap that were left out
    spin: Spin | None = None  # of open shells
    stable_unrestricted: Flag | None = None  # of closed shells, by another program
    history: History | None = None
    figures: Mapping[str, Pair] | None = None
    """What a simulated machine says of its run, by the name of a result's field."""


class State(NamedTuple):
    """A conformer and its converged SCF (see `Solution`), in the dtype of the final energy."""

    mol: Conformer
    density: FloatSNN
    orbitals: FloatSNN
    levels: FloatSN


Program = Callable[[tuple[ClassTable, ...], PyTree], PyTree]
"""(tables, the data of one molecule) -> its results; both pytrees of arrays."""

Driver = Callable[[tuple[ClassTable, ...], PyTree, Count], PyTree]
"""The same for a batch, with a leading axis, of which the first `count` are to be computed."""


def gathered(
    shape: Shape, tables: tuple[ClassTable, ...], mol: Conformer, numerics: Precision
) -> tuple[Atoms, Atoms]:
    """The atoms of a conformer in the dtype of matrices, and in that of the grid."""
    plan = tile_plan(shape, strip_primitives=strip_primitives())
    atoms = gather_atoms(plan, tables, mol, dtype=numerics.matrix_dtype)
    if not numerics.wide:
        return atoms, atoms
    return atoms, gather_atoms(plan, tables, mol, dtype=numerics.scf_dtype)


def kohn_sham(
    shape: Shape,
    settings: Settings,
    tables: tuple[ClassTable, ...],
    mol: Conformer,
    machine: Machine = HOST,
    stability: bool = False,
) -> Solution:
    """One conformer from coordinates to results; pure, to be jitted with shape and settings fixed.

    With two numbers of occupied orbitals, of alpha and of beta electrons, the shell is open: then
    orbitals, levels and densities are those of both spins, each density that of closed shells of
    its orbitals.  The density of all electrons is their mean.
    With `stability` the SCF is followed along its instabilities to the lowest state.

    The SCF runs in the precision's `scf_dtype`.  The energy is then evaluated once at the
    converged density, purified in `energy_dtype`: the energy is variational, so the density's
    remaining error enters squared, but only if the density is idempotent.  Where the overlap has
    smaller eigenvalues than `scf_dtype` can hold, this evaluation becomes an SCF.
    """
    numerics, xc = numerics_of(shape, settings, machine.has_float64), functional(settings.xc)
    open_shell = jnp.ndim(mol.n_occupied) == 1
    products = by_orbitals(machine.grid_products, xc, many_aos=numerics.wide)
    products = products._replace(in_part=products.in_part and not open_shell)
    machine = replace(machine, grid_products=products)
    machine = fitted(machine, shape, settings, reference=guess_density)
    atoms, on_grid = gathered(shape, tables, mol, numerics=numerics)
    build = partial(hamiltonian, functional=xc, open_shell=open_shell)
    problem = build(atoms, machine=machine, coarse=machine.branches, on_grid=on_grid)
    drop_below = 0.0 if numerics.refines and not numerics.wide else numerics.drop_below
    basis = orthonormal(problem.overlap, machine.eigh, drop_below)
    gap = small_gap(xc.exchange, open_shell) if machine.other_starts else 0.0
    start = _start(atoms, mol, Cycling(settings.fixed_cycles > 0, settings.history, gap))
    solve, algebra = lowest_scf if stability else _one_run, machine.algebra
    most = settings.fixed_cycles or settings.max_cycles
    lowest = solve(problem, basis, start, max_cycles=most, tolerance=numerics, algebra=algebra)
    run = lowest.run
    if numerics.refines:
        mol = mol._replace(positions=after(run.cycles, mol.positions))  # the SCF's arrays are freed
        atoms = gather_atoms(atoms.plan, tables, mol, dtype=numerics.energy_dtype)
        if numerics.wide:
            problem = on_grid_of(atoms, problem, machine, run=run)
        else:
            problem = build(atoms, machine=_wide_machine(machine, shape, settings))
            basis = orthonormal(problem.overlap, drop_below=numerics.drop_below)
        start, most = _start(atoms, mol, ORDINARY), settings.max_cycles
        run = _evaluate(problem, basis, run, start=start, numerics=numerics, most_cycles=most)
    terms = run.terms
    if machine.idempotent and numerics.result_dtype == np.float32:
        # A density that is far from its end need not be that of any orbitals.
        terms = jax.tree.map(partial(jnp.where, run.converged), of_idempotent(problem, run), terms)
    lowest = lowest._replace(run=run._replace(terms=terms))
    charged = run.density
    if numerics.refines and numerics.wide:
        # Rounding on the grid moves electrons between nearly dependent AOs, but not of orbitals.
        charged = by_spin(density_of, open_shell)(run.orbitals, mol.n_occupied)
    return _solution(lowest, problem, atoms, basis=basis, charged=charged, counts=mol.n_occupied)


def _start(atoms: Atoms, mol: Conformer, cycling: Cycling) -> Start:
    """Superposed atoms; in open shells each spin has its share of every atom."""
    density, slots = guess_density(atoms), atoms.layout.ao_atom
    aids = mol.aids.astype(density.dtype.type)
    start = Start(density, mol.n_occupied, aids, cycling=cycling)
    if mol.guess is None:
        return start

    def polarised(by: FloatN) -> FloatSNN:
        more = density * by.astype(density.dtype)[:, None]
        return jnp.stack([density + more, density - more])

    turned = jnp.asarray(np.where(slots % 2, -TURNED, TURNED))
    guess = polarised(mol.guess.polarised[slots])
    return start._replace(guess=guess, mixes=mol.guess.mixes, parted=polarised(turned))


def _wide_machine(machine: Machine, shape: Shape, settings: Settings) -> Machine:
    """The machine for an evaluation in float64."""
    return (
        machine if machine.has_float64 else fitted(HOST, shape, settings, reference=guess_density)
    )


def _one_run(
    problem: Hamiltonian,
    basis: Orthonormal,
    start: Start,
    max_cycles: int,
    tolerance: Precision,
    algebra: Algebra,
) -> Lowest:
    """An SCF whose instabilities nobody follows."""
    run = scf(
        problem.cycled, basis, start, max_cycles=max_cycles, tolerance=tolerance, algebra=algebra
    )
    return Lowest(run, jnp.zeros((), bool), jnp.zeros((), jnp.int32))


@jax.named_scope("properties")
def _solution(
    lowest: Lowest,
    problem: Hamiltonian,
    atoms: Atoms,
    basis: Orthonormal,
    charged: FloatSNN,
    counts: Counts,
) -> Solution:
    """The results of an SCF; the density `charged`, of this many orbitals, has the charges."""
    run = lowest.run
    last = by_spin(partial(_padding_last, padded=problem.padded), charged.ndim == 3)
    energy, orbitals = last(run.energy, run.orbitals)
    nuclear = atoms.charge[:, None] * atoms.nuclei.value()
    total = total_density(charged)
    populations = _populations(atoms.plan.layout, total, problem.overlap.hi)
    spin = None
    if charged.ndim == 3:
        difference = 0.5 * (charged[0] - charged[1])
        spin = Spin(
            spin_squared(charged, problem.overlap.hi, counts),
            _populations(atoms.plan.layout, difference, problem.overlap.hi),
            jnp.zeros((), bool) if run.fractional is None else run.fractional,
        )
    return Solution(
        terms=run.terms,
        orbital_energy=energy,
        orbitals=orbitals,
        density=run.density,
        dipole=problem.dipole(run.density) + nuclear.sum(0),
        charges=atoms.charge - populations,
        converged=run.converged,
        cycles=run.cycles,
        commutator=run.commutator,
        energies=run.energies,
        stable=lowest.stable & run.converged,
        followed=lowest.followed,
        overlap_smallest=basis.smallest,
        n_dropped=basis.dropped,
        spin=spin,
        history=run.history,
    )


def spin_squared(density: FloatSNN, overlap: FloatNN, counts: Counts) -> Scalar:
    """<S^2> = M (M + 1) + N_b - tr(P_a S P_b S), with M = (N_a - N_b) / 2 and P = D / 2.

    A. Szabo, N. S. Ostlund, Modern Quantum Chemistry (1989), equation 2.271.
    """
    alpha, beta = (0.5 * product(one, overlap) for one in density)
    n_alpha, n_beta = counts.astype(density.dtype)
    half = 0.5 * (n_alpha - n_beta)
    return half * (half + 1.0) + n_beta - jnp.sum(alpha * beta.T)


def _evaluate(
    problem: Hamiltonian,
    basis: Orthonormal,
    run: ScfRun,
    start: Start,
    numerics: Precision,
    most_cycles: int,
) -> ScfRun:
    """Energy and orbitals in float64: of the density that a float32 SCF ended with.

    That density, not the one of its orbitals: these are one plain step further, which is a step
    back where the field answers strongly to a change of the density.  So it is the one cycle of a
    loop, which goes on only if the overlap has too small an eigenvalue, and the matrices were in
    float32: then from this density if it has converged, else from the guess.

    Args:
        problem: in float64.
        basis: its orthonormaliser.
        run: how the SCF in float32 ended.
        start: of an SCF in float64.
        numerics: of the program.
        most_cycles: of a loop that goes on.
    """
    small = (basis.smallest < numerics.least_overlap) & (not numerics.wide)
    purify = partial(purified, overlap=problem.overlap.hi)
    purer = by_spin(purify, run.density.ndim == 3)(run.density.astype(basis.root.dtype))
    guess = jnp.where(small & ~run.converged, start.guess, purer)
    cycles = 1 if numerics.wide else jnp.where(small, most_cycles, 1)
    evaluated = scf(
        problem.cycled,
        basis,
        start._replace(guess=guess),
        max_cycles=cycles,
        tolerance=PRECISIONS["float64"],
    )
    converged = run.converged & (evaluated.density_error < AUFBAU_ERROR)
    return evaluated._replace(
        converged=jnp.where(small, evaluated.converged, converged),
        fractional=run.fractional,
        cycles=jnp.where(small, evaluated.cycles, run.cycles),
        history=jax.tree.map(lambda kept: jnp.where(small, jnp.inf, kept), run.history),
        energies=Pair(
            *(
                jnp.where(small, new, old.astype(new.dtype))
                for new, old in zip(evaluated.energies, run.energies, strict=True)
            )
        ),
    )


def _populations(layout: Layout, density: FloatNN, overlap: FloatNN) -> FloatA:
    """Electrons on every atom: the diagonal of D S, summed over an atom's AOs.

    R. S. Mulliken, J. Chem. Phys. 23, 1833 (1955), doi:10.1063/1.1740588.
    """
    on_ao = jnp.sum(density * overlap, axis=1)
    padded = jnp.append(on_ao, jnp.zeros(1, on_ao.dtype))
    return padded[layout.atom_aos].sum(1)


def _padding_last(
    energy: FloatN, orbitals: FloatNN, padded: Bool[Array, " N"]
) -> tuple[FloatN, FloatNN]:
    """Move the orbitals of padded AOs, and those left out, to the end, with infinite energy."""
    squares = orbitals * orbitals
    last = is_padding(squares, padded) | left_out(squares)
    energy = jnp.where(last, jnp.inf, energy)
    order = jnp.argsort(energy)
    return energy[order], orbitals[:, order]


def energies(shape: Shape, settings: Settings, machine: Machine = HOST) -> Program:
    """The program of a shape: (tables, one conformer) -> Solution."""
    return partial(kohn_sham, shape, settings, machine=machine)


def lowest_energies(shape: Shape, settings: Settings, machine: Machine = HOST) -> Program:
    """The program of a shape that follows instabilities to the lowest state."""
    return partial(kohn_sham, shape, settings, machine=machine, stability=True)

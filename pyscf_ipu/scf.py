"""The self-consistent field: from a guess density to converged orbitals, in one while loop.

`scf` knows a molecule only through its orthonormaliser and a function `fock(density)`; how the
Fock matrix comes about (stored supermatrix, direct, density fitting) is not its business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array, lax

from pyscf_ipu.convergence import PLAIN, Aids
from pyscf_ipu.diis import Diis, diis_start, diis_step, latest
from pyscf_ipu.machine import Eigh, library_eigh
from pyscf_ipu.precision import Pair, Precision

DIIS_DEPTH = 8
LOOSE = 0.1  # off-diagonal elements that an eigensolver may leave, over the largest of [F, D]
STALLED = 2  # cycles without a smaller commutator after which it is taken for rounding noise
ENERGY_WINDOW = 5  # cycles over which QM1B takes the standard deviation of the energy


class Orthonormal(NamedTuple):
    """S^(-1/2) and S^(1/2) [N, N], and S itself as a Pair."""

    inverse: Array
    root: Array
    overlap: Pair


class Terms(Protocol):
    """Parts of an energy: a pytree that knows its sum in Hartree."""

    def total(self) -> Pair: ...


class ScfRun(NamedTuple):
    """How the loop ended.

    density [N, N] in the AO basis, and `terms`, the energy's parts at it.
    orbitals [N, N] in the AO basis (columns) and energy [N] of the Fock matrix at that density.
    converged, cycles (the last evaluation at converged orbitals not counted).
    commutator  largest element of [F, D] in the orthonormal basis, Hartree.
    energies  Pair [5], Hartree: the latest cycles, newest first (inf before there were any).
    """

    density: Array
    terms: Any
    orbitals: Array
    energy: Array
    converged: Array
    cycles: Array
    commutator: Array
    energies: Pair


class _State(NamedTuple):
    run: ScfRun
    vectors: Array  # eigenvectors of the last cycle in the orthonormal basis
    trial: Array  # density matrix of the next cycle, in the AO basis
    orthonormal: Array  # the same in the orthonormal basis: converting it costs float32 digits
    diis: Diis
    best: Array  # smallest commutator so far that was clearly smaller than the one before
    stalled: Array  # cycles since then
    free: Array  # no aids, or none any more
    final: Array  # the last evaluation is done


def orthonormal(overlap: Pair, eigh: Eigh = library_eigh) -> Orthonormal:
    """Loewdin's symmetric orthonormalisation, which disturbs the AOs least."""
    with jax.named_scope("eigensolver"):
        start = jnp.eye(overlap.hi.shape[0], dtype=overlap.dtype)
        values, vectors = eigh(overlap.hi, start, jnp.zeros((), overlap.dtype))
    floor = float(jnp.finfo(overlap.dtype).eps) * overlap.hi.shape[0]
    root = jnp.sqrt(jnp.maximum(values, floor))
    inverse = _product(vectors / root, vectors.T)
    return Orthonormal(inverse, _product(vectors * root, vectors.T), overlap)


def reorthonormalise(orbitals: Array, overlap: Pair) -> Array:
    """Orbitals C with C^T S C = 1 again, by Newton-Schulz steps: C <- C (3 - C^T S C) / 2.

    The energy is variational in the orbitals only if the density is idempotent: without this
    step a float32 energy is wrong to first order in the rounding of the orbitals.
    """
    eye = jnp.eye(orbitals.shape[1], dtype=orbitals.dtype)
    for _ in range(3):
        metric = similar(overlap.hi, orbitals) + similar(overlap.lo, orbitals)
        orbitals = _product(orbitals, 1.5 * eye - 0.5 * metric)
    return orbitals


def density_of(orbitals: Array, n_occupied: Array) -> Array:
    """Closed-shell density matrix: 2 C C^T over the lowest `n_occupied` orbitals."""
    occupied = jnp.arange(orbitals.shape[1], dtype=jnp.int32) < n_occupied
    chosen = jnp.where(occupied, orbitals, 0.0)
    return 2.0 * _product(chosen, chosen.T)


def scf(
    fock: Callable[[Array], tuple[Array, Terms]],
    basis: Orthonormal,
    guess: Array,
    n_occupied: Array,
    max_cycles: int,
    tolerance: Precision,
    eigh: Eigh = library_eigh,
    aids: Aids | None = None,
) -> ScfRun:
    """Iterate until the energy and the commutator [F, D] stand still.

    Rounding keeps the commutator above a floor that depends on the basis and the elements.  Once
    it has stopped shrinking, the wider `rounding_floor` of the precision decides.

    fock   density [N, N] -> (Fock matrix [N, N], the energy's parts).
    guess  density matrix [N, N] in the AO basis; need not be idempotent.
    eigh   eigenvalues and vectors of a matrix, from the vectors of the cycle before; see Machine.
    aids   damping, late DIIS, level shift; default: none.

    Once converged, one more evaluation gives the results: at the next density, with orbitals of
    its plain, not extrapolated, Fock matrix.  A non-finite energy ends the loop as not converged.
    """

    aids = PLAIN.aids(guess.dtype.type) if aids is None else aids

    def unfinished(state: _State) -> Array:
        run = state.run
        sound = (run.cycles == 0) | jnp.isfinite(run.energies.hi[0])
        return ~state.final & ((run.cycles < max_cycles) | run.converged) & sound

    def cycle(state: _State) -> _State:
        before = state.run
        matrix, terms = fock(state.trial)
        energy = terms.total()
        matrix = similar(matrix, basis.inverse)
        product = _product(matrix, state.orthonormal)
        error = product - product.T
        commutator = jnp.max(jnp.abs(error))
        last = before.energies
        change = jnp.abs((energy.hi - last.hi[0]) + (energy.lo - last.lo[0]))
        better = commutator < 0.7 * state.best
        stalled = jnp.where(better, 0, state.stalled + 1)
        floor = max(tolerance.commutator, tolerance.rounding_floor)
        small = jnp.where(stalled < STALLED, tolerance.commutator, floor)
        arrived = (commutator < small) & (change < tolerance.energy_change)
        met = arrived & state.free
        free = state.free | arrived
        freed = free & ~state.free  # the commutator may grow once more
        with jax.named_scope("diis"):
            last_matrix = latest(state.diis, before.cycles)
            diis, extrapolated = diis_step(state.diis, before.cycles, matrix, error)
            aided = aids.next_matrix(
                before.cycles, matrix, last_matrix, extrapolated, state.orthonormal
            )
            following = jnp.where(free, extrapolated, aided)
        with jax.named_scope("eigensolver"):
            # The last orbitals are those of a plain Fock matrix, neither extrapolated nor shifted.
            last_cycle = before.cycles + 1 >= max_cycles
            chosen = jnp.where(before.converged | last_cycle, matrix, following)
            # Far from convergence rough orbitals do; those of a converged density are exact.
            accuracy = jnp.where(before.converged, 0.0, LOOSE * commutator)
            levels, vectors = eigh(chosen, state.vectors, accuracy)
        orbitals = reorthonormalise(_product(basis.inverse, vectors), basis.overlap)
        window = Pair(*(jnp.roll(w, 1).at[0].set(e) for w, e in zip(last, energy, strict=True)))
        # The evaluation after convergence is not a cycle.
        window = Pair(
            *(jnp.where(before.converged, old, new) for old, new in zip(last, window, strict=True))
        )
        run = ScfRun(
            density=state.trial,
            terms=terms,
            orbitals=orbitals,
            energy=levels,
            converged=before.converged | met,
            cycles=before.cycles + (~before.converged).astype(jnp.int32),
            commutator=commutator,
            energies=window,
        )
        return _State(
            run,
            vectors,
            density_of(orbitals, n_occupied),
            density_of(vectors, n_occupied),
            diis,
            jnp.where(freed, jnp.inf, jnp.where(better, commutator, state.best)),
            jnp.where(freed, 0, stalled),
            free,
            before.converged,
        )

    start = _start(fock, guess, similar(guess, basis.root), aids.none())
    return lax.while_loop(unfinished, cycle, start).run


def _start(
    fock: Callable[[Array], tuple[Array, Terms]], guess: Array, orthonormal: Array, free: Array
) -> _State:
    n, dtype = guess.shape[0], guess.dtype
    shapes = jax.eval_shape(fock, guess)[1]
    run = ScfRun(
        density=guess,
        terms=jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes),
        orbitals=jnp.zeros((n, n), dtype),
        energy=jnp.zeros(n, dtype),
        converged=jnp.zeros((), bool),
        cycles=jnp.zeros((), jnp.int32),
        commutator=jnp.full((), jnp.inf, dtype),
        energies=Pair(jnp.full(ENERGY_WINDOW, jnp.inf, dtype), jnp.zeros(ENERGY_WINDOW, dtype)),
    )
    diis = diis_start(DIIS_DEPTH, n, dtype)
    never = jnp.full((), jnp.inf, dtype)
    count = jnp.zeros((), jnp.int32)
    vectors = jnp.eye(n, dtype=dtype)
    no = jnp.zeros((), bool)
    return _State(run, vectors, guess, orthonormal, diis, never, count, jnp.asarray(free), no)


def similar(matrix: Array, x: Array) -> Array:
    """X^T M X."""
    return _product(_product(x.T, matrix), x)


def _product(a: Array, b: Array) -> Array:
    return jnp.matmul(a, b, precision="highest")

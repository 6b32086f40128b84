"""The self-consistent field: from a guess density to converged orbitals, in one while loop.

`scf` reads a molecule only through its orthonormaliser and a function `fock(density)`; it does not
matter here how the Fock matrix comes about (stored supermatrix, direct, density fitting).
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import PyTree

from pyscf_ipu.convergence import PLAIN, Aids, Convergence
from pyscf_ipu.numerics.arrays import Count, Flag, FloatN, FloatNN, Scalar
from pyscf_ipu.numerics.precision import Precision
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.scf.diis import Diis, diis_start, diis_step, latest
from pyscf_ipu.scf.machine import Eigh, library_eigh

DIIS_DEPTH = 8
LOOSE = 0.1  # off-diagonal elements that an eigensolver may leave, over the largest of [F, D]
STALLED = 2  # cycles without a smaller commutator after which it is taken for rounding noise
OWN_DENSITY = 0.1
"""Largest element by which a density may differ from that of the orbitals of its own Fock matrix.
A converged one differs by less than 0.03; one that occupies an orbital above an empty one by 2."""
LOST_CYCLES, LOST = 24, 1e-2
"""Cycles after which a commutator above this many Hartree is no approach to an end."""
ANEW = Convergence(damping=0.5, diis_start=10_000, level_shift_hartree=1.0)
ENERGY_WINDOW = 5  # cycles over which QM1B takes the standard deviation of the energy


class Orthonormal(NamedTuple):
    """S^(-1/2), S^(1/2), and S itself."""

    inverse: FloatNN
    root: FloatNN
    overlap: Pair


class EnergySum(Protocol):
    """Parts of an energy: a pytree with their sum in Hartree."""

    def total(self) -> Pair: ...


Fock = Callable[[FloatNN], tuple[FloatNN, EnergySum]]


class ScfRun(NamedTuple):
    """How the loop ended."""

    density: FloatNN  # in the AO basis
    terms: PyTree  # the energy's parts at this density, as `fock` gives them
    orbitals: FloatNN  # columns in the AO basis, of the Fock matrix at this density
    energy: FloatN  # theirs
    converged: Flag
    cycles: Count  # the last evaluation at converged orbitals not counted
    commutator: Scalar  # largest element of [F, D] in the orthonormal basis, Hartree
    density_error: Scalar  # largest element of D - 2 C C^T, with the C of this density's F
    energies: Pair
    """[5] Hartree: the latest cycles, newest first (inf before there were any)."""


class Start(NamedTuple):
    """Where the loop begins, and with what."""

    guess: FloatNN  # density matrix in the AO basis; need not be idempotent
    n_occupied: Count
    aids: Aids | None = None


class _State(NamedTuple):
    run: ScfRun
    vectors: FloatNN  # eigenvectors of the last cycle in the orthonormal basis
    trial: FloatNN  # density matrix of the next cycle, in the AO basis
    orthonormal: FloatNN  # the same in the orthonormal basis: converting it costs float32 digits
    diis: Diis
    best: Scalar  # smallest commutator so far that was clearly smaller than the one before
    stalled: Count  # cycles since then
    free: Flag  # no aids, or none any more
    aids: Aids
    final: Flag  # the last evaluation is done


def orthonormal(overlap: Pair, eigh: Eigh = library_eigh) -> Orthonormal:
    """Loewdin's symmetric orthonormalisation, which disturbs the AOs least."""
    with jax.named_scope("eigensolver"):
        start = jnp.eye(overlap.hi.shape[0], dtype=overlap.dtype)
        values, vectors = eigh(overlap.hi, start, jnp.zeros((), overlap.dtype))
    floor = float(jnp.finfo(overlap.dtype).eps) * overlap.hi.shape[0]
    root = jnp.sqrt(jnp.maximum(values, floor))
    inverse = product(vectors / root, vectors.T)
    return Orthonormal(inverse, product(vectors * root, vectors.T), overlap)


def reorthonormalise(orbitals: FloatNN, overlap: Pair) -> FloatNN:
    """Orbitals C with C^T S C = 1 again, by Newton-Schulz steps: C <- C (3 - C^T S C) / 2.

    The energy is variational in the orbitals only if the density is idempotent: without this
    step a float32 energy is wrong to first order in the rounding of the orbitals.
    """
    eye = jnp.eye(orbitals.shape[1], dtype=orbitals.dtype)
    for _ in range(3):
        metric = similar(overlap.hi, orbitals) + similar(overlap.lo, orbitals)
        orbitals = product(orbitals, 1.5 * eye - 0.5 * metric)
    return orbitals


def density_of(orbitals: FloatNN, n_occupied: Count) -> FloatNN:
    """Closed-shell density matrix: 2 C C^T over the lowest `n_occupied` orbitals."""
    occupied = jnp.arange(orbitals.shape[1], dtype=jnp.int32) < n_occupied
    chosen = jnp.where(occupied, orbitals, 0.0)
    return 2.0 * product(chosen, chosen.T)


def purified(density: FloatNN, overlap: FloatNN) -> FloatNN:
    """The idempotent density next to one that is nearly so: D S D = 2 D.

    R. McWeeny, Rev. Mod. Phys. 32, 335 (1960), doi:10.1103/RevModPhys.32.335.
    """
    half = 0.5 * density
    for _ in range(3):
        square = product(product(half, overlap), half)
        half = 3.0 * square - 2.0 * product(product(square, overlap), half)
    return 2.0 * half


def commutator_of(fock: FloatNN, density: FloatNN) -> FloatNN:
    """[F, D] in an orthonormal basis."""
    both = product(fock, density)
    return both - both.T


def scf(
    fock: Fock,
    basis: Orthonormal,
    start: Start,
    max_cycles: int,
    tolerance: Precision,
    eigh: Eigh = library_eigh,
) -> ScfRun:
    """Iterate until the energy and the commutator [F, D] stand still.

    Rounding keeps the commutator above a floor that depends on the basis and the elements.  Once
    it has stopped shrinking, the wider `rounding_floor` of the precision decides.

    Once converged, one more evaluation gives the results: at the next density, with orbitals of
    its plain, not extrapolated, Fock matrix.  A non-finite energy ends the loop as not converged.

    Args:
        fock: density -> (Fock matrix, the energy's parts).
        basis: the orthonormaliser of the AOs.
        start: guess, number of occupied orbitals, aids.
        max_cycles: the loop ends after this many cycles at the latest.
        tolerance: when it has converged.
        eigh: eigenvalues and vectors of a matrix, from those of the cycle before; see Machine.
    """
    guess, n_occupied, aids = start
    dtype = guess.dtype.type
    aids = PLAIN.aids(dtype) if aids is None else aids

    first = _start(fock, guess, similar(guess, basis.root), aids)

    def unfinished(state: _State) -> Flag:
        run = state.run
        sound = (run.cycles == 0) | jnp.isfinite(run.energies.hi[0])
        return ~state.final & ((run.cycles < max_cycles) | run.converged) & sound

    def cycle(state: _State) -> _State:
        before = state.run
        matrix, terms = fock(state.trial)
        energy = terms.total()
        matrix = similar(matrix, basis.inverse)
        error = commutator_of(matrix, state.orthonormal)
        commutator = jnp.max(jnp.abs(error))
        last = before.energies
        change = jnp.abs((energy.hi - last.hi[0]) + (energy.lo - last.lo[0]))
        better = commutator < 0.7 * state.best
        stalled = jnp.where(better, 0, state.stalled + 1)
        floor = max(tolerance.commutator, tolerance.rounding_floor)
        small = jnp.where(stalled < STALLED, tolerance.commutator, floor)
        arrived = (commutator < small) & (change < tolerance.energy_change)
        sound = before.converged & (commutator < floor)
        free = state.free | arrived
        freed = free & ~state.free  # the commutator may grow once more
        with jax.named_scope("diis"):
            last_matrix = latest(state.diis, before.cycles)
            diis, extrapolated = diis_step(state.diis, before.cycles, matrix, error)
            aided = state.aids.next_matrix(
                before.cycles, matrix, last_matrix, extrapolated, state.orthonormal
            )
            ahead = jnp.where(free, extrapolated, aided)
        with jax.named_scope("eigensolver"):
            # The last orbitals are those of a plain Fock matrix, neither extrapolated nor shifted.
            last_cycle = before.cycles + 1 >= max_cycles
            chosen = jnp.where(sound | last_cycle, matrix, ahead)
            # Far from convergence rough orbitals do; those of a converged density are exact.
            accuracy = jnp.where(before.converged, 0.0, LOOSE * commutator)
            levels, vectors = eigh(chosen, state.vectors, accuracy)
        orbitals = reorthonormalise(product(basis.inverse, vectors), basis.overlap)
        density, new = density_of(orbitals, n_occupied), density_of(vectors, n_occupied)
        density_error = jnp.max(jnp.abs(density - state.trial))
        own = density_error < OWN_DENSITY
        stands = jnp.where(before.converged, sound, arrived & state.free)
        proved = before.converged & stands & own
        excited = stands & ~own
        lost = (before.cycles == LOST_CYCLES) & (commutator > LOST) & ~before.converged
        window = [jnp.roll(w, 1).at[0].set(e) for w, e in zip(last, energy, strict=True)]
        # The evaluation after convergence is not a cycle.
        kept = [jnp.where(proved, *x) for x in zip(last, window, strict=True)]
        run = ScfRun(
            density=state.trial,
            terms=terms,
            orbitals=orbitals,
            energy=levels,
            converged=stands & own,
            cycles=before.cycles + (~proved).astype(jnp.int32),
            commutator=commutator,
            density_error=density_error,
            energies=Pair(*kept),
        )
        again = freed | excited | (before.converged & ~proved)
        following = _State(
            run,
            vectors,
            density,
            new,
            diis,
            jnp.where(again, jnp.inf, jnp.where(better, commutator, state.best)),
            jnp.where(again, 0, stalled),
            free,
            state.aids,
            proved,
        )
        anew = first._replace(
            run=run, vectors=vectors, free=jnp.zeros((), bool), aids=ANEW.aids(dtype)
        )
        return _chosen(excited | lost, anew, following)

    return lax.while_loop(unfinished, cycle, first).run


def _start(fock: Fock, guess: FloatNN, orthonormal: FloatNN, aids: Aids) -> _State:
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
        density_error=jnp.full((), jnp.inf, dtype),
        energies=Pair(jnp.full(ENERGY_WINDOW, jnp.inf, dtype), jnp.zeros(ENERGY_WINDOW, dtype)),
    )
    diis = diis_start(DIIS_DEPTH, n, dtype)
    never = jnp.full((), jnp.inf, dtype)
    count = jnp.zeros((), jnp.int32)
    vectors = jnp.eye(n, dtype=dtype)
    no = jnp.zeros((), bool)
    free = jnp.asarray(aids.is_plain())
    return _State(run, vectors, guess, orthonormal, diis, never, count, free, aids, no)


def _chosen(flag: Flag, yes: _State, no: _State) -> _State:
    return jax.tree.map(lambda a, b: jnp.where(flag, a, b), yes, no)


def similar(matrix: FloatNN, x: FloatNN) -> FloatNN:
    """X^T M X."""
    return product(product(x.T, matrix), x)


def product(a: FloatNN, b: FloatNN) -> FloatNN:
    """A B, in the full precision of their dtype."""
    return jnp.matmul(a, b, precision="highest")

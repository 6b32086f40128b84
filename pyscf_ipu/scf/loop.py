"""The self-consistent field: from a guess density to converged orbitals, in one while loop.

`scf` reads a molecule only through its orthonormaliser and a function `fock(density)`; it does not
matter here how the Fock matrix comes about (stored supermatrix, direct, density fitting).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from pyscf_ipu.numerics.arrays import Count, Flag, FloatNN, Scalar
from pyscf_ipu.numerics.precision import Precision
from pyscf_ipu.numerics.two_words import difference
from pyscf_ipu.scf.algebra import LIBRARY, Algebra
from pyscf_ipu.scf.convergence import PLAIN, Aids
from pyscf_ipu.scf.diis import Diis, diis_start, diis_step, latest
from pyscf_ipu.scf.orbitals import (
    Orthonormal,
    are_lowest,
    density_of,
    frontier_gap,
    level_error,
    occupied,
    reorthonormalise,
    similar,
)
from pyscf_ipu.scf.run import (
    Fock,
    ScfRun,
    empty_run,
    latest_energies,
    no_history,
)
from pyscf_ipu.scf.staged import Stage, evaluate, first_stage
from pyscf_ipu.scf.starts import (
    LOST_COMMUTATOR,
    LOST_CYCLES,
    OTHER_STARTS,
    SHIFTED,
    SHIFTED_CYCLES,
    Begin,
    Start,
    first_start,
    lowest_of_starts,
)

DIIS_DEPTH = 8
LOOSE = 0.1  # off-diagonal elements that an eigensolver may leave, over the largest of [F, D]
STALLED = 2  # cycles without a smaller commutator after which it is taken for rounding noise
OWN_DENSITY = 0.1
"""Largest element by which a density may differ from that of the orbitals of its own Fock matrix,
in the orthonormal basis, where rounding is not magnified by nearly dependent AOs.
A converged one differs by less than 0.03; one that occupies an orbital above an empty one by 2."""
UNSETTLED = 5.0
"""Once the commutator has stopped shrinking, a last step may be this many times its floor."""
SOFT = 0.06
"""A first gap below this many Hartree has several states near it, among which a rough matrix may
choose another one than all points do: so all of them are asked, from the first cycle on."""


class _State(NamedTuple):
    run: ScfRun
    vectors: FloatNN  # eigenvectors of the last cycle in the orthonormal basis
    trial: FloatNN  # density matrix of the next cycle, in the AO basis
    orthonormal: FloatNN  # the same in the orthonormal basis: converting it costs float32 digits
    diis: Diis
    stage: Stage | None
    best: Scalar  # smallest commutator so far that was clearly smaller than the one before
    stalled: Count  # cycles since then
    free: Flag  # no aids, or none any more
    aids: Aids
    final: Flag  # the last evaluation is done
    second: Count  # cycle of the second try, with a level shift; 0 if there was none


def scf(
    fock: Fock,
    basis: Orthonormal,
    start: Start,
    max_cycles: int | Count,
    tolerance: Precision,
    algebra: Algebra = LIBRARY,
) -> ScfRun:
    """Iterate until the energy and the commutator [F, D] stand still.

    Rounding keeps the commutator above a floor that depends on the basis and the elements.  Once
    it has stopped shrinking, the wider `rounding_floor` of the precision decides.

    Converged orbitals are those of the extrapolated Fock matrix of the last cycle: to the density
    and the levels at the end they are ten times closer than those of its plain one, as if there
    were one cycle more.  The energy is that of the density before, which costs an error of second
    order.  The commutator alone does not say that the extrapolation is good: it knows nothing of
    the occupied orbitals among themselves, nor of the empty ones, and a step is long where the gap
    is small.  So the step to the last density, and the difference of the levels to those of the
    plain matrix, have to be within the commutator's threshold, too.

    If the two densities are not alike, or if the loop is lost, it starts again from the guess, with
    a level shift and as many cycles more.  A non-finite energy ends the loop as not converged.

    Where the run has converged to a small gap, others follow from other guesses in the same way,
    and the lowest one counts; its cycles are then those of all, and the record has all of them.

    Args:
        fock: density -> (Fock matrix, the energy's parts).  If it is `Staged`, most cycles compute
            a part of it roughly; never the last one, and none of a second start, with aids or where
            the first gap is small.
        basis: the orthonormaliser of the AOs.
        start: guess, number of occupied orbitals, aids; whether to do exactly `max_cycles` cycles,
            to keep a record of them, and below which gap to try other guesses.
        max_cycles: a run ends after this many cycles at the latest, or after twice as many if it
            started again with a level shift; 0 for no evaluation at all.
        tolerance: when it has converged.
        algebra: eigenvalues and vectors of a matrix, from those of the cycle before, and products;
            see Machine.
    """
    guess, n_occupied, aids, (fixed, history, small_gap), careful = start
    dtype = guess.dtype.type
    aids = PLAIN.aids(dtype) if aids is None else aids
    several = small_gap > 0 and not fixed
    room = None
    if history:
        assert isinstance(max_cycles, int)
        runs = 1 if fixed else 2 * (1 + OTHER_STARTS * several)
        room = no_history(max_cycles * runs, guess.dtype)

    def limit(state: _State) -> Count:
        return jnp.where(state.second > 0, 2, 1) * max_cycles

    def unfinished(state: _State) -> Flag:
        """Whether this start goes on."""
        run = state.run
        sound = (run.cycles == 0) | jnp.isfinite(run.energies.hi[0])
        if fixed:
            return (run.cycles < max_cycles) & sound
        return ~state.final & ((run.cycles < limit(state)) | run.converged) & sound

    def cycle(begin: Begin, state: _State) -> _State:
        before = state.run
        noise = (state.stalled >= STALLED) & (state.best < _floor(tolerance))
        late = before.cycles >= LOST_CYCLES
        last_cycle = before.cycles + 1 >= limit(state)
        found = evaluate(
            fock,
            (basis, algebra.products),
            (state.trial, state.orthonormal),
            history=(before.cycles, state.diis, state.stage),
            careful=begin.careful | ~state.aids.is_plain() | late | noise | last_cycle,
            tolerance=tolerance,
        )
        matrix, error, terms = found.matrix, found.error, found.terms
        energy = terms.total()
        commutator = jnp.max(jnp.abs(error))
        best, stalled = _progress(state, found.near)
        small_enough = jnp.where(stalled < STALLED, tolerance.commutator, _floor(tolerance))
        change = jnp.abs(difference(energy, before.energies.at(0)))
        arrived = (commutator < small_enough) & (change < tolerance.energy_change) & found.whole
        sound = before.converged & (commutator < _floor(tolerance))
        long = (state.second > 0) & (before.cycles - state.second >= SHIFTED_CYCLES)
        free = state.free | arrived | long
        # A guess need not be the density of any orbitals: its commutator means nothing.
        of_guess = before.cycles == jnp.where(state.second > 0, state.second + 1, 0)
        with jax.named_scope("diis"):
            last_matrix = latest(found.diis, before.cycles, matrix)
            diis, extrapolated = diis_step(
                found.diis, before.cycles, matrix, error=error, lasting=~of_guess
            )
            # The first orbitals overshoot, and DIIS has but one entry: take the middle.
            middle = 0.5 * (matrix + last_matrix)
            second = (before.cycles == 1) & ~arrived
            extrapolated = jnp.where(second, middle, extrapolated)
            aided = state.aids.next_matrix(
                before.cycles, matrix, last_matrix, diis=extrapolated, density=state.orthonormal
            )
            ahead = jnp.where(free, extrapolated, aided)
        with jax.named_scope("eigensolver"):
            # Without convergence the last orbitals are neither extrapolated nor shifted.
            ends = (arrived & state.free) | sound
            chosen = jnp.where(last_cycle & ~ends, matrix, ahead)
            # Far from convergence rough orbitals do; those of a converged density are exact.
            accuracy = jnp.where(before.converged | ends, 0.0, LOOSE * commutator)
            levels, vectors = algebra.eigh(chosen, state.vectors, accuracy)
        lowest = occupied(vectors, n_occupied)
        in_aos, images, half = algebra.products(
            (basis.inverse, vectors), (matrix, vectors), (lowest, lowest.T)
        )
        orbitals = reorthonormalise(in_aos, basis.overlap, algebra.products)
        density, new = density_of(orbitals, n_occupied), 2.0 * half
        density_error = jnp.max(jnp.abs(new - state.orthonormal))
        plain = jnp.sum(vectors * images, axis=0)
        step = jnp.maximum(density_error, level_error(plain, levels, n_occupied))
        settled = step < jnp.where(stalled < STALLED, 1.0, UNSETTLED) * small_enough
        # An extrapolated matrix may agree with a density whose own matrix does not.
        lowest = are_lowest(plain, n_occupied)
        density_error = jnp.where(lowest, density_error, jnp.maximum(density_error, 2.0))
        own = density_error < OWN_DENSITY
        stands = jnp.where(before.converged, sound, arrived & state.free & (settled | ~own))
        final = stands & own & (not fixed)
        lost = (before.cycles == LOST_CYCLES) & (commutator > LOST_COMMUTATOR) & ~before.converged
        # The commutator may grow once more after aids are dropped or all points were asked.
        again = (free & ~state.free) | (before.converged & ~final)
        if found.stage is not None:
            again = again | found.whole
        # The first cycle is to be done once more, with all points.
        soft = jnp.zeros((), bool)
        if found.stage is not None:
            soft = (before.cycles == 0) & ~found.whole & (frontier_gap(levels, n_occupied) < SOFT)
        energies = latest_energies(before.energies, energy)
        run = ScfRun(
            density=jnp.where(stands & own, density, state.trial),
            evaluated=state.trial,
            terms=terms,
            orbitals=orbitals,
            energy=levels,
            converged=stands & own,
            cycles=before.cycles + (~soft).astype(jnp.int32),
            commutator=commutator,
            density_error=density_error,
            energies=jax.tree.map(partial(jnp.where, soft), before.energies, energies),
            history=before.history
            and before.history.with_cycle(
                begin.earlier + before.cycles,
                energy,
                commutator,
                gap=frontier_gap(levels, n_occupied),
            ),
        )
        # A density that stands still, but not as that of its lowest orbitals, is an excited state.
        retried = ((stands & ~own) | lost) & (before.cycles + 2 < max_cycles) & (not fixed)

        # Both begin at the guess of this start.
        restarts = retried | soft

        def unless_restarted(value: Array, fresh: ArrayLike) -> Array:
            return jnp.where(restarts, fresh, value)

        return _State(
            run=run,
            vectors=vectors,
            trial=unless_restarted(density, begin.guess),
            orthonormal=unless_restarted(new, begin.orthonormal),
            diis=diis._replace(norm=unless_restarted(diis.norm, 0.0)),
            stage=found.stage and found.stage._replace(poor=found.stage.poor | soft),
            best=jnp.where(again | restarts, jnp.inf, best),
            stalled=jnp.where(again | restarts, 0, stalled),
            free=free & ~retried,
            aids=Aids(*map(partial(jnp.where, retried), SHIFTED.aids(dtype), state.aids)),
            final=final,
            second=jnp.where(retried, before.cycles, state.second),
        )

    def one_start(begin: Begin) -> tuple[ScfRun, FloatNN]:
        """The run of a start, and its last vectors."""
        goes_on = unfinished if not several else lambda now: begin.wanted & unfinished(now)
        last = lax.while_loop(goes_on, partial(cycle, begin), _before(fock, begin, aids))
        return last.run, last.vectors

    begin = first_start(guess, similar(guess, basis.root), room, careful=careful)
    if not several:
        return one_start(begin)[0]
    none = empty_run(fock, guess)
    return lowest_of_starts(
        one_start, begin, none, root=basis.root, n_occupied=n_occupied, small_gap=small_gap
    )


def _before(fock: Fock, begin: Begin, aids: Aids) -> _State:
    """The state before the first cycle of a start."""
    n, dtype = begin.guess.shape[0], begin.guess.dtype
    diis = diis_start(DIIS_DEPTH, n, dtype)
    never, count = jnp.full((), jnp.inf, dtype), jnp.zeros((), jnp.int32)
    no, free = jnp.zeros((), bool), jnp.asarray(aids.is_plain())
    return _State(
        run=empty_run(fock, begin.guess)._replace(history=begin.history),
        vectors=begin.vectors,
        trial=begin.guess,
        orthonormal=begin.orthonormal,
        diis=diis,
        stage=first_stage(fock, begin.guess, diis),
        best=never,
        stalled=count,
        free=free,
        aids=aids,
        final=no,
        second=count,
    )


def _progress(state: _State, near: Scalar) -> tuple[Scalar, Count]:
    """The smallest commutator that was clearly smaller than the one before, and cycles since."""
    better = near < 0.7 * state.best
    return jnp.where(better, near, state.best), jnp.where(better, 0, state.stalled + 1)


def _floor(tolerance: Precision) -> float:
    return max(tolerance.commutator, tolerance.rounding_floor)

"""One cycle of the self-consistent field: D -> F -> the next F -> C, eps -> D.

The equations are those of Roothaan and Hall, F C = S C eps and D = 2 C C^T over the occupied
orbitals.  With X = S^(-1/2) everything but D is in an orthonormal basis, Fx = X^T F X, where they
are Fx Cx = Cx eps.  At the end F and D commute: e = [Fx, Dx] = 0.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from pyscf_ipu.numerics.arrays import (
    Count,
    Counts,
    Flag,
    FloatN,
    FloatNN,
    FloatSN,
    FloatSNN,
    Scalar,
    by_spin,
    spin_after_spin,
)
from pyscf_ipu.numerics.precision import Precision
from pyscf_ipu.numerics.products import product
from pyscf_ipu.numerics.two_words import Pair, difference
from pyscf_ipu.scf.algebra import Algebra
from pyscf_ipu.scf.convergence import COOLING, Aids, Convergence, level_shifted, once_cold
from pyscf_ipu.scf.diis import Diis, diis_step, latest
from pyscf_ipu.scf.orbitals import (
    Orthonormal,
    are_lowest,
    fermi_dirac,
    frontier_gap,
    level_error,
    occupied,
    reorthonormalise,
)
from pyscf_ipu.scf.run import LOWER_HARTREE, Cycling, Fock, History, ScfRun, latest_energies
from pyscf_ipu.scf.staged import Evaluated, Evaluation, Stage, evaluate

LOOSE = 0.1  # off-diagonal elements that an eigensolver may leave, over the largest of [F, D]
STALLED = 2  # cycles without a smaller commutator after which it is taken for rounding noise
AUFBAU_ERROR = 0.1
"""Largest element by which a density may differ from that of the orbitals of its own Fock matrix,
in the orthonormal basis, where rounding is not magnified by nearly dependent AOs.
A converged one differs by less than 0.03; one that occupies an orbital above an empty one by 2."""
STALLED_STEP = 5.0
"""Once the commutator has stopped shrinking, a last step may be this many times its floor."""
SOFT_CYCLES, SOFT_SHIFT = 16, 2.0
"""In open shells: where F and D commute after so many cycles, and yet the SCF has not ended, the
energy hardly depends on some rotation, as that of an atom's p shell, and DIIS would go on along it.
A level shift of so many Hartree keeps the density where it is."""
SMALL_FIRST_GAP = 0.06
"""A first gap below this many Hartree has several states near it, among which a coarse grid may
choose another one than the full grid does: so all cycles have the full grid then."""
NEAR_COMMUTATOR = 1e-3
"""In Hartree: so near its end, a start whose energy is not below that of another ends no lower."""
LOST_CYCLES, LOST_COMMUTATOR = 24, 3e-3
"""After this many cycles, a commutator above this many Hartree is no approach to an end."""
SHIFTED = Convergence(damping=0.5, diis_start=10_000, level_shift_hartree=1.0)
"""The aids of a second try of a start: so large a shift that occupied orbitals stay occupied."""
SHIFTED_CYCLES = 25
"""Cycles after which they are dropped: they lead to the right state, but slowly to its end."""


class ScfProblem(NamedTuple):
    """What stays the same in all cycles."""

    fock: Fock
    basis: Orthonormal  # S and X
    n_occupied: Counts
    cycling: Cycling
    max_cycles: int | Count
    tolerance: Precision
    algebra: Algebra

    @property
    def open_shell(self) -> bool:
        """Whether alpha and beta electrons have orbitals of their own."""
        return jnp.ndim(self.n_occupied) == 1

    @property
    def floor(self) -> float:
        """Commutator in Hartree that rounding may keep it at."""
        return max(self.tolerance.commutator, self.tolerance.rounding_floor)

    def limit(self, state: "CycleState") -> Count:
        """Cycles at most, those of a second try included."""
        return jnp.where(state.second > 0, 2, 1) * self.max_cycles


class Begin(NamedTuple):
    """What the loop of one start begins with."""

    D: FloatSNN
    Dx: FloatSNN
    Cx: FloatSNN  # where the eigensolver begins
    history: History | None
    earlier: Count  # cycles of the starts before
    full_grid: Flag  # whether all cycles have the full grid
    wanted: Flag  # false where other rows of a batch go on, and this one has ended
    smearing: Scalar | None = None  # kT in Hartree, of open shells
    to_beat: Pair | None = None  # the lowest energy of the starts before, of open shells


class CycleState(NamedTuple):
    """Between two cycles."""

    run: ScfRun
    D: FloatSNN  # density matrix of the next cycle, in the AO basis
    Dx: FloatSNN  # the same in the orthonormal basis: converting it costs float32 digits
    Cx: FloatSNN  # orbitals of the last cycle
    diis: Diis
    stage: Stage | None
    best: Scalar  # smallest commutator so far that was clearly smaller than the one before
    stalled: Count  # cycles since then
    aids: Aids
    unaided: Flag  # no aids, or none any more
    final: Flag  # the last evaluation is done
    second: Count  # cycle of the second try, with a level shift; 0 if there was none
    smearing: Scalar | None  # kT in Hartree until no aids are left; None in closed shells


class Progress(NamedTuple):
    """What the Fock matrix of a cycle says."""

    energy: Pair
    commutator: Scalar  # largest element of e
    best: Scalar
    stalled: Count
    limit: Scalar  # commutator that counts as converged
    arrived: Flag  # energy and commutator stand still
    holds: Flag  # they still do, after convergence
    unaided: Flag
    of_guess: Flag  # whether D was a guess, which need not be the density of any orbitals


class Orbitals(NamedTuple):
    """What a Fock matrix gives."""

    eps: FloatSN
    Cx: FloatSNN
    C: FloatSNN
    D: FloatSNN
    Dx: FloatSNN
    plain_eps: FloatSN
    """Levels of the same orbitals in the Fock matrix that was not extrapolated."""


class Verdict(NamedTuple):
    """What a cycle means for the loop."""

    density_error: Scalar  # see ScfRun
    converged: Flag
    final: Flag  # no cycle follows
    wrong: Flag  # an excited state, or no approach to an end: to begin again with a level shift
    small_gap: Flag  # the first cycle is to be done once more, on the full grid


def cycle(problem: ScfProblem, begin: Begin, state: CycleState) -> CycleState:
    """From one density to the next, or back to the first one."""
    built, last = build_fock(problem, begin, state)
    progress = assess(problem, state, built)
    diis, ahead = extrapolate(state, built, progress)
    orbitals = diagonalise(problem, state, built, ahead=ahead, progress=progress, last=last)
    verdict = judge(problem, state, built, progress=progress, orbitals=orbitals)
    history = with_cycle(problem, begin, state, progress=progress, eps=orbitals.eps)
    run = record(state, built, progress, orbitals=orbitals, verdict=verdict)
    after = CycleState(
        run=run._replace(history=history),
        D=orbitals.D,
        Dx=orbitals.Dx,
        Cx=orbitals.Cx,
        diis=diis,
        stage=built.stage,
        best=progress.best,
        stalled=progress.stalled,
        aids=state.aids,
        unaided=progress.unaided,
        final=verdict.final,
        second=state.second,
        smearing=state.smearing,
    )
    if state.smearing is not None and begin.to_beat is not None:
        arrived = progress.arrived & (verdict.density_error < AUFBAU_ERROR)
        beaten = difference(progress.energy, begin.to_beat) > -LOWER_HARTREE
        after = after._replace(
            smearing=jnp.where(arrived, COOLING * state.smearing, state.smearing),
            final=after.final | (beaten & (progress.commutator < NEAR_COMMUTATOR)),
        )
    return restart(problem, begin, state, after=after, verdict=verdict)


def build_fock(problem: ScfProblem, begin: Begin, state: CycleState) -> tuple[Evaluated, Flag]:
    """Make F and e of D, on the coarse grid where that is enough; whether no cycle may follow."""
    cycles = state.run.cycles
    noise = (state.stalled >= STALLED) & (state.best < problem.floor)
    late = cycles >= LOST_CYCLES
    last = cycles + 1 >= problem.limit(state)
    at = Evaluation(
        basis=problem.basis,
        products=problem.algebra.products,
        D=state.D,
        Dx=state.Dx,
        cycle=cycles,
        diis=state.diis,
        stage=state.stage,
        full_grid=begin.full_grid | ~state.aids.is_plain() | late | noise | last,
        tolerance=problem.tolerance,
    )
    return evaluate(problem.fock, at), last


@jax.named_scope("convergence")
def assess(problem: ScfProblem, state: CycleState, built: Evaluated) -> Progress:
    """Judge the Fock matrix: does the energy stand still, do F and D commute?

    Rounding keeps the commutator above a floor.  Once it has stopped shrinking, it counts as
    converged below this floor.
    """
    tolerance, before = problem.tolerance, state.run
    energy = built.terms.total()
    commutator = jnp.max(jnp.abs(built.error))
    better = built.coarse_commutator < 0.7 * state.best
    best = jnp.where(better, built.coarse_commutator, state.best)
    stalled = jnp.where(better, 0, state.stalled + 1)
    limit = jnp.where(stalled < STALLED, tolerance.commutator, problem.floor)
    change = jnp.abs(difference(energy, before.energies.at(0)))
    arrived = (commutator < limit) & (change < tolerance.energy_change) & built.full_grid
    long = (state.second > 0) & (before.cycles - state.second >= SHIFTED_CYCLES)
    return Progress(
        energy=energy,
        commutator=commutator,
        best=best,
        stalled=stalled,
        limit=limit,
        arrived=arrived,
        holds=before.converged & (commutator < problem.floor),
        unaided=state.unaided | once_cold(arrived, state.smearing) | long,
        of_guess=before.cycles == jnp.where(state.second > 0, state.second + 1, 0),
    )


@jax.named_scope("diis")
def extrapolate(state: CycleState, built: Evaluated, progress: Progress) -> tuple[Diis, FloatSNN]:
    """Make the Fock matrix to diagonalise from those of this cycle and of earlier ones."""
    cycles, Fx = state.run.cycles, built.matrix
    before = latest(built.diis, cycles, Fx)
    # The commutator of a guess means nothing for later cycles.
    lasting = ~progress.of_guess
    diis, extrapolated = diis_step(built.diis, cycles, Fx, error=built.error, lasting=lasting)
    # The first orbitals overshoot, and DIIS has but one entry: take the middle.
    middle = 0.5 * (Fx + before)
    second = (cycles == 1) & ~progress.arrived
    extrapolated = jnp.where(second, middle, extrapolated)
    aided = state.aids.next_matrix(cycles, Fx, before, diis=extrapolated, density=state.Dx)
    return diis, jnp.where(progress.unaided, extrapolated, aided)


def diagonalise(
    problem: ScfProblem,
    state: CycleState,
    built: Evaluated,
    ahead: FloatSNN,
    progress: Progress,
    last: Flag,
) -> Orbitals:
    """Solve Fx Cx = Cx eps; C = X Cx, D = 2 C C^T and Dx = 2 Cx Cx^T over the occupied orbitals."""
    basis, products = problem.basis, problem.algebra.products
    each = partial(by_spin, open_shell=problem.open_shell)
    with jax.named_scope("eigensolver"):
        # Without convergence the last orbitals are neither extrapolated nor shifted.
        ends = (progress.arrived & state.unaided) | progress.holds
        chosen = jnp.where(last & ~ends, built.matrix, ahead)
        if problem.open_shell:
            is_soft = state.run.cycles - state.second >= SOFT_CYCLES
            is_soft &= (progress.commutator < progress.limit) & progress.unaided
            chosen = jnp.where(is_soft, level_shifted(built.matrix, state.Dx, SOFT_SHIFT), chosen)
        # Far from convergence loose orbitals do; those of a converged density are exact.
        accuracy = jnp.where(state.run.converged | ends, 0.0, LOOSE * progress.commutator)

        def eigh(matrix: FloatNN, start: FloatNN) -> tuple[FloatN, FloatNN]:
            return problem.algebra.eigh(matrix, start, accuracy)

        eps, Cx = spin_after_spin(eigh, problem.open_shell)(chosen, state.Cx)
    with jax.named_scope("occupation"):
        filled = _filling(problem, eps, smearing=state.smearing, unaided=progress.unaided)
        lowest = filled(Cx)
        C, FxCx, half = products((basis.inverse, Cx), (built.matrix, Cx), (lowest, lowest.mT))
    orthonormalised = partial(reorthonormalise, overlap=basis.overlap, products=products)
    C = each(orthonormalised)(C)
    with jax.named_scope("occupation"):
        D = 2.0 * each(lambda chosen: product(chosen, chosen.T))(filled(C))
    plain_eps = jnp.sum(Cx * FxCx, axis=-2)
    return Orbitals(
        eps=jnp.where(is_soft, plain_eps, eps) if problem.open_shell else eps,
        Cx=Cx,
        C=C,
        D=D,
        Dx=2.0 * half,
        plain_eps=plain_eps,
    )


def _filling(
    problem: ScfProblem, eps: FloatSN, smearing: Scalar | None, unaided: Flag
) -> Callable[[FloatSNN], FloatSNN]:
    """Makes of all orbitals the occupied ones; smeared ones times the root of their share."""
    n_occupied = problem.n_occupied
    if smearing is None:
        return lambda orbitals: occupied(orbitals, n_occupied)
    places = jnp.arange(eps.shape[-1], dtype=jnp.int32)
    full = (places < n_occupied[:, None]).astype(eps.dtype)
    smeared = jax.vmap(partial(fermi_dirac, smearing=smearing))
    shares = lax.cond(unaided | (smearing <= 0.0), lambda: full, lambda: smeared(eps, n_occupied))
    return lambda orbitals: orbitals * jnp.sqrt(shares)[:, None]


@jax.named_scope("occupation")
def judge(
    problem: ScfProblem, state: CycleState, built: Evaluated, progress: Progress, orbitals: Orbitals
) -> Verdict:
    """Decide whether D is the density of the lowest orbitals of its own Fock matrix.

    The commutator alone does not say that the extrapolation is good: so the step from D, and the
    difference of the levels to those of the plain matrix, have to be below its threshold, too.
    """
    before, n_occupied = state.run, problem.n_occupied
    each = partial(by_spin, open_shell=problem.open_shell)
    density_error = jnp.max(jnp.abs(orbitals.Dx - state.Dx))
    of_levels = each(level_error, reduce=jnp.max)(orbitals.plain_eps, orbitals.eps, n_occupied)
    step = jnp.maximum(density_error, of_levels)
    settled = step < jnp.where(progress.stalled < STALLED, 1.0, STALLED_STEP) * progress.limit
    # An extrapolated matrix may agree with a density whose own matrix does not.
    lowest = each(are_lowest, reduce=jnp.all)(orbitals.plain_eps, n_occupied)
    density_error = jnp.where(lowest, density_error, jnp.maximum(density_error, 2.0))
    aufbau = density_error < AUFBAU_ERROR
    ends = progress.arrived & state.unaided & (settled | ~aufbau)
    stationary = jnp.where(before.converged, progress.holds, ends)
    lost = (before.cycles == LOST_CYCLES) & (progress.commutator > LOST_COMMUTATOR)
    small_gap = jnp.zeros((), bool)
    if built.stage is not None:
        first = (before.cycles == 0) & ~built.full_grid
        small_gap = first & (smallest_gap(problem, orbitals.eps) < SMALL_FIRST_GAP)
    return Verdict(
        density_error=density_error,
        converged=stationary & aufbau,
        final=stationary & aufbau & (not problem.cycling.fixed),
        wrong=(stationary & ~aufbau) | (lost & ~before.converged),
        small_gap=small_gap,
    )


def with_cycle(
    problem: ScfProblem, begin: Begin, state: CycleState, progress: Progress, eps: FloatSN
) -> History | None:
    """The record of all cycles with this one, if one is kept."""
    history, cycles = state.run.history, state.run.cycles
    if history is None:
        return None
    gap = smallest_gap(problem, eps)
    place, commutator = begin.earlier + cycles, progress.commutator
    return history.with_cycle(place, progress.energy, commutator, gap=gap)


def smallest_gap(problem: ScfProblem, eps: FloatSN) -> Scalar:
    """The frontier gap in Hartree, the smaller one of both spins."""
    gap = by_spin(frontier_gap, problem.open_shell, reduce=jnp.min)
    return gap(eps, problem.n_occupied)


@jax.named_scope("convergence")
def record(
    state: CycleState,
    built: Evaluated,
    progress: Progress,
    orbitals: Orbitals,
    verdict: Verdict,
) -> ScfRun:
    """What to know of the cycle; a first one that is done once more leaves no trace."""
    before, again = state.run, verdict.small_gap
    energies = latest_energies(before.energies, progress.energy)
    return ScfRun(
        density=jnp.where(verdict.converged, orbitals.D, state.D),
        evaluated=state.D,
        terms=built.terms,
        orbitals=orbitals.C,
        energy=orbitals.eps,
        converged=verdict.converged,
        cycles=before.cycles + (~again).astype(jnp.int32),
        commutator=progress.commutator,
        density_error=verdict.density_error,
        energies=jax.tree.map(partial(jnp.where, again), before.energies, energies),
        lacking=built.stage.matrix if built.stage and before.lacking is not None else None,
        fractional=before.fractional,
    )


@jax.named_scope("convergence")
def restart(
    problem: ScfProblem, begin: Begin, before: CycleState, after: CycleState, verdict: Verdict
) -> CycleState:
    """Begin at the guess again where that is needed: with a level shift, or on the full grid.

    A density that stands still, but not as that of its lowest orbitals, is an excited state.
    """
    cycles, full = before.run.cycles, verdict.small_gap
    time_left = (cycles + 2 < problem.max_cycles) & (not problem.cycling.fixed)
    shifted = verdict.wrong & time_left
    restarts = shifted | full
    # The commutator may grow once more after aids are dropped or the full grid was asked.
    grows = (after.unaided & ~before.unaided) | (before.run.converged & ~after.final)
    if after.stage is not None:
        asked = after.stage.since == 0
        grows = grows | (asked & ~after.stage.always if problem.open_shell else asked)

    def unless_restarted(value: Array, fresh: ArrayLike) -> Array:
        return jnp.where(restarts, fresh, value)

    aids = SHIFTED.aids(after.D.dtype.type)
    return after._replace(
        D=unless_restarted(after.D, begin.D),
        Dx=unless_restarted(after.Dx, begin.Dx),
        diis=after.diis._replace(norm=unless_restarted(after.diis.norm, 0.0)),
        stage=after.stage and after.stage._replace(always=after.stage.always | full),
        best=jnp.where(grows | restarts, jnp.inf, after.best),
        stalled=jnp.where(grows | restarts, 0, after.stalled),
        unaided=after.unaided & ~shifted,
        aids=Aids(*map(partial(jnp.where, shifted), aids, after.aids)),
        second=jnp.where(shifted, cycles, after.second),
    )

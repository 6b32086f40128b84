"""Where the loop starts: at its guess, and where the gap is small at other densities, too.

A small gap means several states near each other, and the guess decides in which of them the loop
ends.  There it starts again, from densities that have no symmetry of the one it found and from no
electrons at all, and the state of lowest energy counts.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from pyscf_ipu.numerics.arrays import (
    Count,
    Counts,
    Flag,
    FloatN,
    FloatNN,
    FloatSN,
    FloatSNN,
    by_spin,
)
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.numerics.precision import Precision
from pyscf_ipu.numerics.products import product
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.scf.algebra import LIBRARY, Algebra
from pyscf_ipu.scf.convergence import PLAIN, Aids
from pyscf_ipu.scf.cycle import Begin, ScfProblem
from pyscf_ipu.scf.loop import iterate
from pyscf_ipu.scf.orbitals import Orthonormal, frontier_gap, similar
from pyscf_ipu.scf.run import ORDINARY, Cycling, Fock, ScfRun, lower, no_history
from pyscf_ipu.scf.staged import empty_run

PAIRS = 2
"""Of frontier orbitals that other starts mix: in the first one a single pair, in the next two."""
OTHER_STARTS = PAIRS + 1
"""The last one is at no electrons at all, so at the orbitals of the bare nuclei; in open shells at
atoms whose spins are turned in opposite directions."""
PAIR_HARTREE = 1.0
"""A pair of orbitals further apart than this is left as it is."""
SMALL_GAP_HARTREE, EXCHANGE_GAP_HARTREE = 0.05, 0.25
"""A gap is small below the first, plus the second times the fraction of exact exchange, which
widens gaps: 0.1 with B3LYP, 0.3 with Hartree-Fock.  QM9 molecules in STO-3G have at least 0.122 and
0.380 (198 of them)."""

SMEARING_HARTREE = 0.03
"""kT of one more start of an open shell of which none has converged; it is taken off again.  Of 38
such torn diatomics in PBE 27 are self-consistent only with electrons shared by orbitals of one
level."""


def small_gap(exchange: Interaction, open_shell: bool = False) -> float:
    """In Hartree, with this exact exchange, which counts half at long range; 0 for never.

    In closed shells without exact exchange other starts find nothing: in PBE none of 62 torn
    molecules has a lower state than that of the first start.  In open ones the spins may part.
    """
    if exchange.full <= 0 and not open_shell:
        return 0.0
    return SMALL_GAP_HARTREE + EXCHANGE_GAP_HARTREE * (exchange.full + 0.5 * exchange.long_range)


class Start(NamedTuple):
    """Where the loop begins, and with what."""

    guess: FloatSNN  # density matrix in the AO basis; need not be idempotent
    n_occupied: Counts
    aids: Aids | None = None
    cycling: Cycling = ORDINARY
    full_grid: Flag | bool = False
    """If true, use the full grid in every cycle and do not try other guesses."""
    mixes: Flag | None = None
    """In open shells: whether to try other guesses whatever the gap."""
    parted: FloatSNN | None = None
    """In open shells: the last other guess, with the spins on different atoms."""


class _Starts(NamedTuple):
    """Between two starts."""

    lowest: ScfRun  # of the lowest energy so far
    begin: Begin
    number: Count  # of the next start; 0 for the first


def scf(
    fock: Fock,
    basis: Orthonormal,
    start: Start,
    max_cycles: int | Count,
    tolerance: Precision,
    algebra: Algebra = LIBRARY,
) -> ScfRun:
    """Iterate until the energy and the commutator [F, D] stand still.

    Converged orbitals are those of the extrapolated Fock matrix of the last cycle: their error is
    ten times smaller than those of the plain one, as after one more cycle.  The energy is that of
    the density before, which costs an error of second order.

    Where the run has converged to a small gap, others follow from other guesses in the same way,
    and the lowest one counts; its cycles are then those of all, and the record has all of them.

    Args:
        fock: density -> (Fock matrix, the energy's parts).  If it is `Staged`, most cycles have a
            coarse grid; never the last one, and none of a second try, with aids or where the first
            gap is small.
        basis: the orthonormaliser of the AOs.
        start: guess, number of occupied orbitals, aids; whether to do exactly `max_cycles` cycles,
            to keep a record of them, and below which gap to try other guesses.
        max_cycles: a run ends after this many cycles at the latest, or after twice as many if it
            started again with a level shift; 0 for no evaluation at all.
        tolerance: when it has converged.
        algebra: eigenvalues and vectors of a matrix, from those of the cycle before, and products.
    """
    D, n_occupied, cycling = start.guess, start.n_occupied, start.cycling
    aids = PLAIN.aids(D.dtype.type) if start.aids is None else start.aids
    history = None
    if cycling.history:
        assert isinstance(max_cycles, int)
        starts = 1 + (OTHER_STARTS + (D.ndim == 3)) * cycling.tries_others
        history = no_history(max_cycles * (1 if cycling.fixed else 2 * starts), D.dtype)
    problem = ScfProblem(
        fock=fock,
        basis=basis,
        n_occupied=n_occupied,
        cycling=cycling,
        max_cycles=max_cycles,
        tolerance=tolerance,
        algebra=algebra,
    )
    none = Pair(jnp.asarray(jnp.inf, D.dtype), jnp.zeros((), D.dtype))
    begin = Begin(
        D=D,
        Dx=similar(D, basis.root),
        Cx=jnp.broadcast_to(jnp.eye(D.shape[-1], dtype=D.dtype), D.shape),
        history=history,
        earlier=jnp.zeros((), jnp.int32),
        full_grid=jnp.asarray(start.full_grid),
        wanted=jnp.ones((), bool),
        smearing=jnp.zeros((), D.dtype) if problem.open_shell else None,
        to_beat=none if problem.open_shell else None,
    )
    if not cycling.tries_others:
        return iterate(problem, begin, aids)[0]
    return _lowest_of_starts(problem, begin, aids, start=start)


def _lowest_of_starts(problem: ScfProblem, begin: Begin, aids: Aids, start: Start) -> ScfRun:
    """The lowest run of all starts, with the cycles and the history of them all."""
    n_occupied, root = problem.n_occupied, problem.basis.root
    last = 0.0 if start.parted is None else start.parted

    def next_start(starts: _Starts) -> _Starts:
        begin, number = starts.begin, starts.number
        run, Cx = iterate(problem, begin, aids)
        without_history = run._replace(history=None)
        better = (number == 0) | lower(run, starts.lowest)
        lowest = lax.cond(better, lambda: without_history, lambda: starts.lowest)
        follow = run.converged & _is_small_gap(problem, run.energy)
        if start.mixes is not None:  # spins that do not part may be why it has not converged
            follow = follow | start.mixes | ~run.converged
        follow = follow & ~begin.full_grid
        D = jnp.where(number < PAIRS, mixed(lowest, n_occupied, number + 1), last)
        wanted = jnp.where(number == 0, follow, number < OTHER_STARTS)
        smearing = to_beat = None
        if problem.open_shell:
            lowest = _with_smeared(starts.lowest, run, lowest)
            smears = ~lowest.converged & (number == OTHER_STARTS)
            D, wanted = jnp.where(smears, start.guess, D), wanted | smears
            smearing = smears.astype(D.dtype) * SMEARING_HARTREE
            energy = lowest.terms.total()
            to_beat = energy._replace(hi=jnp.where(lowest.converged, energy.hi, jnp.inf))
        following = Begin(
            D=D,
            Dx=similar(D, root),
            Cx=Cx,
            history=run.history,
            earlier=begin.earlier + run.cycles,
            full_grid=jnp.asarray(not problem.open_shell),
            wanted=wanted,
            smearing=smearing,
            to_beat=to_beat,
        )
        return _Starts(lowest, following, number + 1)

    first = _Starts(empty_run(problem.fock, begin.D), begin, jnp.zeros((), jnp.int32))
    ended = lax.while_loop(lambda starts: starts.begin.wanted, next_start, first)
    return ended.lowest._replace(cycles=ended.begin.earlier, history=ended.begin.history)


def _with_smeared(before: ScfRun, run: ScfRun, lowest: ScfRun) -> ScfRun:
    """The lowest run, which knows whether one of all was self-consistent while smeared."""
    assert before.fractional is not None  # only runs of closed shells have none
    assert run.fractional is not None
    return lowest._replace(fractional=~lowest.converged & (before.fractional | run.fractional))


def _is_small_gap(problem: ScfProblem, levels: FloatSN) -> Flag:
    """Whether the gap, of either spin, is small, and there are orbitals to mix."""

    def is_small(levels: FloatN, n_occupied: Count) -> Flag:
        has_empty = n_occupied < levels.shape[0]
        return has_empty & (frontier_gap(levels, n_occupied) < problem.cycling.small_gap)

    of_spins = by_spin(is_small, problem.open_shell, reduce=jnp.any)
    return of_spins(levels, problem.n_occupied)


def mixed(run: ScfRun, n_occupied: Counts, pairs: Count) -> FloatSNN:
    """The density of a run, with frontier orbitals mixed half and half, in the AO basis.

    In this many pairs, of the highest occupied orbital and the lowest empty one, of those beyond
    them, and so on: what has the symmetry of neither leads to states of any symmetry.  In open
    shells the alpha orbitals are mixed, so that the spins part.
    """
    if run.density.ndim == 2:
        return _mixed(run.density, (run.energy, run.orbitals), n_occupied, pairs=pairs)
    alpha = _mixed(run.density[0], (run.energy[0], run.orbitals[0]), n_occupied[0], pairs=pairs)
    return jnp.stack([alpha, run.density[1]])


def _mixed(
    density: FloatNN, of: tuple[FloatN, FloatNN], n_occupied: Count, pairs: Count
) -> FloatNN:
    """The density of one spin, or of closed shells, from levels and orbitals."""
    energy, orbitals = of
    n = energy.shape[0]
    steps = jnp.arange(PAIRS, dtype=jnp.int32)
    below, above = n_occupied - 1 - steps, n_occupied + steps
    there = (steps < pairs) & (below >= 0) & (above < n)
    places = jnp.clip(below, 0, n - 1), jnp.clip(above, 0, n - 1)
    highest, lowest = (orbitals[:, place] for place in places)
    apart = energy[places[1]] - energy[places[0]]
    weight = jnp.where(there & (apart < PAIR_HARTREE), 1.0, 0.0).astype(density.dtype)
    both = highest + lowest
    new, old = (product(some * weight, some.T) for some in (both, highest))
    return density + (new - 2.0 * old)

"""Where the loop starts: at its guess, and where the gap is small at other densities, too.

A small gap means several states near each other, and the guess decides in which of them the loop
ends.  There it starts again, from densities that have no symmetry of the one it found and from no
electrons at all, and the state of lowest energy counts.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from pyscf_ipu.numerics.arrays import Count, Flag, FloatNN
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.numerics.products import product
from pyscf_ipu.scf.convergence import Aids, Convergence
from pyscf_ipu.scf.orbitals import frontier_gap, similar
from pyscf_ipu.scf.run import ORDINARY, Cycling, History, ScfRun, lower

LOST_CYCLES, LOST_COMMUTATOR = 24, 3e-3
"""After this many cycles, a commutator above this many Hartree is no approach to an end."""
SHIFTED = Convergence(damping=0.5, diis_start=10_000, level_shift_hartree=1.0)
"""The aids of a second try of a start: so large a shift that occupied orbitals stay occupied."""
SHIFTED_CYCLES = 25
"""Cycles after which they are dropped: they lead to the right state, but slowly to its end."""
PAIRS = 2
"""Of frontier orbitals that other starts mix: in the first one a single pair, in the next two."""
OTHER_STARTS = PAIRS + 1
"""The last one is at no electrons at all, so at the orbitals of the bare nuclei."""
PAIR_HARTREE = 1.0
"""A pair of orbitals further apart than this is left as it is."""
SMALL_GAP_HARTREE, EXCHANGE_GAP_HARTREE = 0.05, 0.25
"""A gap is small below the first, plus the second times the fraction of exact exchange, which
widens gaps: 0.1 with B3LYP, 0.3 with Hartree-Fock.  QM9 molecules in STO-3G have at least 0.122 and
0.380 (198 of them)."""


def small_gap(exchange: Interaction) -> float:
    """In Hartree, with this exact exchange, which counts half at long range; 0 for never.

    Without exact exchange other starts find nothing: in PBE none of 62 torn molecules has a lower
    state than that of the first start.
    """
    if exchange.full <= 0:
        return 0.0
    return SMALL_GAP_HARTREE + EXCHANGE_GAP_HARTREE * (exchange.full + 0.5 * exchange.long_range)


class Start(NamedTuple):
    """Where the loop begins, and with what."""

    guess: FloatNN  # density matrix in the AO basis; need not be idempotent
    n_occupied: Count
    aids: Aids | None = None
    cycling: Cycling = ORDINARY
    careful: Flag | bool = False
    """Whether the guess is better than a rough matrix: no cycle is rough, no start follows."""


class Begin(NamedTuple):
    """What the loop of one start begins with."""

    guess: FloatNN  # density matrix in the AO basis
    orthonormal: FloatNN  # the same in the orthonormal basis
    vectors: FloatNN  # where the eigensolver begins
    history: History | None
    earlier: Count  # cycles of the starts before
    careful: Flag  # no cycle may be rough
    wanted: Flag  # false where other rows of a batch go on, and this one has ended


def first_start(
    guess: FloatNN, orthonormal: FloatNN, history: History | None, careful: Flag | bool
) -> Begin:
    """From no orbitals."""
    vectors, none = jnp.eye(guess.shape[0], dtype=guess.dtype), jnp.zeros((), jnp.int32)
    yes = jnp.ones((), bool)
    return Begin(
        guess,
        orthonormal,
        vectors,
        history=history,
        earlier=none,
        careful=jnp.asarray(careful),
        wanted=yes,
    )


class _Starts(NamedTuple):
    """Between two starts."""

    lowest: ScfRun  # of the lowest energy so far
    begin: Begin
    number: Count  # of the next start; 0 for the first


def lowest_of_starts(
    one_start: Callable[[Begin], tuple[ScfRun, FloatNN]],
    begin: Begin,
    none: ScfRun,
    root: FloatNN,
    n_occupied: Count,
    small_gap: float,
) -> ScfRun:
    """The lowest run of all starts, with the cycles and the history of them all.

    Args:
        one_start: the run of a start, and its last vectors.
        begin: the first start.
        none: a run that has not begun.
        root: takes a density into the orthonormal basis, see `similar`.
        n_occupied: number of occupied orbitals.
        small_gap: in Hartree; others follow if the first run has converged to a smaller one.
    """

    def next_start(starts: _Starts) -> _Starts:
        begin, number = starts.begin, starts.number
        run, vectors = one_start(begin)
        found = run._replace(history=None)
        better = (number == 0) | lower(run, starts.lowest)
        lowest = lax.cond(better, lambda: found, lambda: starts.lowest)
        has_empty = n_occupied < run.energy.shape[0]
        small = frontier_gap(run.energy, n_occupied) < small_gap
        follow = run.converged & has_empty & small & ~begin.careful
        wanted = jnp.where(number == 0, follow, number < OTHER_STARTS)
        guess = jnp.where(number < PAIRS, mixed(lowest, n_occupied, number + 1), 0.0)
        orthonormal, careful = similar(guess, root), jnp.ones((), bool)
        earlier = begin.earlier + run.cycles
        following = Begin(
            guess,
            orthonormal,
            vectors,
            history=run.history,
            earlier=earlier,
            careful=careful,
            wanted=wanted,
        )
        return _Starts(lowest, following, number + 1)

    first = _Starts(none, begin, jnp.zeros((), jnp.int32))
    ended = lax.while_loop(lambda starts: starts.begin.wanted, next_start, first)
    return ended.lowest._replace(cycles=ended.begin.earlier, history=ended.begin.history)


def mixed(run: ScfRun, n_occupied: Count, pairs: Count) -> FloatNN:
    """The density of a run, with frontier orbitals mixed half and half, in the AO basis.

    In this many pairs, of the highest occupied orbital and the lowest empty one, of those beyond
    them, and so on: what has the symmetry of neither leads to states of any symmetry.
    """
    n = run.energy.shape[0]
    steps = jnp.arange(PAIRS, dtype=jnp.int32)
    below, above = n_occupied - 1 - steps, n_occupied + steps
    there = (steps < pairs) & (below >= 0) & (above < n)
    places = jnp.clip(below, 0, n - 1), jnp.clip(above, 0, n - 1)
    highest, lowest = (run.orbitals[:, place] for place in places)
    apart = run.energy[places[1]] - run.energy[places[0]]
    weight = jnp.where(there & (apart < PAIR_HARTREE), 1.0, 0.0).astype(run.density.dtype)
    both = highest + lowest
    new, old = (product(some * weight, some.T) for some in (both, highest))
    return run.density + (new - 2.0 * old)

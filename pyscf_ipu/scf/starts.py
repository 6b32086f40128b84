"""Where the loop starts: at its guess, and where the gap is small at other densities, too.

A small gap means several states near each other, and the guess decides in which of them the loop
ends.  There it starts again, from densities that have no symmetry of the one it found and from no
electrons at all, and the state of lowest energy counts.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from pyscf_ipu.convergence import Aids, Convergence
from pyscf_ipu.numerics.arrays import Count, Flag, FloatNN
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.numerics.products import product
from pyscf_ipu.scf.levels import frontier_gap
from pyscf_ipu.scf.run import ORDINARY, Cycling, ScfRun, lower

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
    """Whether no cycle may be rough: where the guess is better than a rough matrix."""


class Starts(NamedTuple):
    """What the loop knows of its starts."""

    lowest: ScfRun  # of the lowest energy so far
    trial: FloatNN  # this start's guess in the AO basis
    orthonormal: FloatNN  # the same in the orthonormal basis
    number: Count  # of this start; 0 for the first
    earlier: Count  # cycles of the starts before


def first_starts(run: ScfRun, orthonormal: FloatNN) -> Starts:
    """Before any cycle of a run from its guess, which is also given in the orthonormal basis."""
    none = jnp.zeros((), jnp.int32)
    return Starts(run._replace(history=None), run.density, orthonormal, none, none)


def with_run(starts: Starts, run: ScfRun) -> Starts:
    """The same with the run of this start, which has ended, if it is the lowest so far."""
    better = (starts.number == 0) | lower(run, starts.lowest)
    run = run._replace(history=None)
    return starts._replace(lowest=jax.tree.map(partial(jnp.where, better), run, starts.lowest))


def following(starts: Starts, trial: FloatNN, orthonormal: FloatNN, cycles: Count) -> Starts:
    """Those with the next start, at this guess, after one of this many cycles."""
    number, earlier = starts.number + 1, starts.earlier + cycles
    return Starts(starts.lowest, trial, orthonormal, number, earlier)


def another(starts: Starts, run: ScfRun, n_occupied: Count, small_gap: float) -> Flag:
    """Whether one more start follows a run that has ended."""
    has_empty = n_occupied < run.energy.shape[0]
    small = run.converged & has_empty & (frontier_gap(run.energy, n_occupied) < small_gap)
    return jnp.where(starts.number == 0, small, starts.number < OTHER_STARTS)


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


def other_guess(starts: Starts, n_occupied: Count) -> FloatNN:
    """The density that the start after this one begins at, in the AO basis."""
    found = mixed(starts.lowest, n_occupied, starts.number + 1)
    return jnp.where(starts.number < PAIRS, found, 0.0)


def lowest_run(starts: Starts, last: ScfRun) -> ScfRun:
    """The lowest run of all starts, the last one included, with the cycles of them all."""
    cycles = starts.earlier + last.cycles
    return with_run(starts, last).lowest._replace(cycles=cycles, history=last.history)

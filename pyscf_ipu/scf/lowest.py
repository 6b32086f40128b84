"""The lowest state: an SCF, a look at its stability, another SCF from where the energy falls."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from pyscf_ipu.numerics.arrays import Count, Flag, FloatNN
from pyscf_ipu.numerics.precision import Precision
from pyscf_ipu.numerics.two_words import Pair, difference
from pyscf_ipu.scf.descent import Problem, descend
from pyscf_ipu.scf.loop import Start, scf
from pyscf_ipu.scf.machine import Eigh, library_eigh
from pyscf_ipu.scf.orbitals import Orthonormal
from pyscf_ipu.scf.run import ScfRun, empty_run

ROUNDS = 4
"""Self-consistent fields at most."""
LOWER_HARTREE = 1e-5
"""By which a state has to be lower to be another one: an instability that leads nowhere lower is
rounding, where the energy hardly depends on the orbitals."""


class Lowest(NamedTuple):
    """The lowest self-consistent field that was found."""

    run: ScfRun
    stable: Flag  # converged, and no rotation of its orbitals leads lower
    followed: Count  # how often a lower one was found


class _State(NamedTuple):
    lowest: Lowest
    guess: FloatNN
    rounds: Count
    done: Flag


def lowest_scf(
    problem: Problem,
    basis: Orthonormal,
    start: Start,
    max_cycles: int,
    tolerance: Precision,
    eigh: Eigh = library_eigh,
) -> Lowest:
    """`scf`, followed along its instabilities to a minimum of the energy.

    One that does not converge is led down in the same way, and then tried again.
    """

    def unfinished(state: _State) -> Flag:
        return ~state.done & (state.rounds < ROUNDS)

    def another(state: _State) -> _State:
        now = start._replace(guess=state.guess)
        run = scf(problem.fock, basis, now, max_cycles, tolerance, eigh)
        down = descend(problem, run.orbitals, start.n_occupied, tolerance, run.converged)
        nowhere = ~_below(down.energy, run.terms.total())
        stable = run.converged & down.sound & (down.minimum | nowhere)
        first = state.rounds == 0
        better = first | _lower(run, state.lowest.run)
        followed = state.lowest.followed + (better & ~first).astype(jnp.int32)
        found = Lowest(run, stable, followed)
        lowest = jax.tree.map(lambda new, old: jnp.where(better, new, old), found, state.lowest)
        done = stable | ~jnp.isfinite(run.energies.hi[0])
        return _State(lowest, down.density, state.rounds + 1, done)

    guess = start.guess
    none, no = jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    nothing = Lowest(empty_run(problem.fock, guess), no, none)
    first = _State(nothing, guess, none, no)
    return lax.while_loop(unfinished, another, first).lowest


def _lower(new: ScfRun, old: ScfRun) -> Flag:
    """Whether the new run converged, and the old one did not or has a higher energy."""
    return new.converged & (~old.converged | _below(new.terms.total(), old.terms.total()))


def _below(energy: Pair, other: Pair) -> Flag:
    return difference(energy, other) < -LOWER_HARTREE

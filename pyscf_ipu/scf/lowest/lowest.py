"""The lowest state: an SCF, a look at its stability, another SCF from where the energy falls.

A minimum of the energy need not be the lowest one.  Torn bonds have many, all of them shallow: some
rotation of the orbitals costs next to nothing.  Only there other guesses are tried.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float

from pyscf_ipu.numerics.arrays import (
    Count,
    Counts,
    Flag,
    FloatN,
    FloatNN,
    FloatSNN,
    spin_after_spin,
)
from pyscf_ipu.numerics.precision import Precision
from pyscf_ipu.numerics.products import product
from pyscf_ipu.scf.algebra import LIBRARY, Algebra
from pyscf_ipu.scf.lowest.descent import Problem, descend
from pyscf_ipu.scf.lowest.starts import Start, scf
from pyscf_ipu.scf.orbitals import Orthonormal, density_of
from pyscf_ipu.scf.run import Cycling, ScfRun, below, lower
from pyscf_ipu.scf.staged import empty_run

ROUNDS = 8
"""Self-consistent fields at most; two more for each other guess."""
OTHER_GUESSES = 12
"""From shallow minima.  Of 325 rows of torn molecules in B3LYP and Hartree-Fock 8 of them miss two
of the best states by more than 10 meV, 12 one."""
SHALLOW_HARTREE = 0.05
"""A minimum whose lowest eigenvalue is below this is shallow.  Molecules near their equilibrium
have more than 0.1."""
DISTURBANCE_HARTREE, NEAR_GAP_HARTREE = 0.3, 1.0
"""Size of the random field that makes another guess, and how far from the gap it acts."""


class Lowest(NamedTuple):
    """The lowest self-consistent field that was found."""

    run: ScfRun
    stable: Flag  # converged, and no rotation of its orbitals leads lower
    followed: Count  # how often a lower one was found


class _State(NamedTuple):
    lowest: Lowest
    guess: FloatSNN
    rounds: Count
    others: Count  # guesses made from shallow minima
    done: Flag


def lowest_scf(
    problem: Problem,
    basis: Orthonormal,
    start: Start,
    max_cycles: int,
    tolerance: Precision,
    algebra: Algebra = LIBRARY,
) -> Lowest:
    """`scf`, followed along its instabilities to a minimum of the energy.

    One that does not converge is led down in the same way, and then tried again.  No record of
    cycles is kept, and each ends by itself.
    """
    cycling = Cycling(small_gap=start.cycling.small_gap)

    def unfinished(state: _State) -> Flag:
        return ~state.done & (state.rounds < ROUNDS + 2 * state.others)

    def another(state: _State) -> _State:
        # Later guesses are better than what the coarse grid says.
        now = start._replace(guess=state.guess, cycling=cycling, full_grid=state.rounds > 0)
        run = scf(
            problem.cycled, basis, now, max_cycles=max_cycles, tolerance=tolerance, algebra=algebra
        )
        down = descend(
            problem, run.orbitals, start.n_occupied, tolerance=tolerance, converged=run.converged
        )
        # An instability that leads nowhere lower is rounding, of an energy that hardly changes.
        nowhere = ~below(down.energy, run.terms.total())
        stable = run.converged & down.sound & (down.minimum | nowhere)
        first = state.rounds == 0
        better = first | lower(run, state.lowest.run)
        followed = state.lowest.followed + (better & ~first).astype(jnp.int32)
        candidate = Lowest(run, stable, followed)
        lowest = jax.tree.map(lambda new, old: jnp.where(better, new, old), candidate, state.lowest)
        shallow = stable & (down.eigenvalue < SHALLOW_HARTREE) & (state.others < OTHER_GUESSES)
        guess = jnp.where(shallow, _other_guess(run, start.n_occupied, state.others), down.density)
        done = (stable & ~shallow) | ~jnp.isfinite(run.energies.hi[0])
        others = state.others + shallow.astype(jnp.int32)
        return _State(lowest, guess, state.rounds + 1, others=others, done=done)

    guess = start.guess
    none, no = jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    nothing = Lowest(empty_run(problem.cycled, guess), no, none)
    first = _State(nothing, guess, none, others=none, done=no)
    return lax.while_loop(unfinished, another, first).lowest


def _other_guess(run: ScfRun, n_occupied: Counts, number: Count) -> FloatSNN:
    """The density in a random field over the orbitals near the gap; another for each number.

    In open shells the fields of the spins differ.
    """
    fields = jnp.asarray(_fields(run.energy.shape[-1]), run.energy.dtype)
    field = fields[number]
    if run.energy.ndim == 2:
        field = jnp.stack([field, fields[OTHER_GUESSES - 1 - number]])
    of_spins = spin_after_spin(_in_field, run.energy.ndim == 2)
    return of_spins(run.energy, run.orbitals, field, n_occupied)


def _in_field(levels: FloatN, orbitals: FloatNN, field: FloatNN, n_occupied: Count) -> FloatNN:
    """The density of one spin, or of closed shells."""
    frontier = jnp.stack([n_occupied - 1, n_occupied])
    middle = jnp.mean(jnp.take(levels, frontier, mode="clip"))
    near = jnp.exp(-(((levels - middle) / NEAR_GAP_HARTREE) ** 2))
    field = DISTURBANCE_HARTREE * near[:, None] * near[None] * field
    vectors = jnp.linalg.eigh(jnp.diag(levels) + field)[1]
    return density_of(product(orbitals, vectors), n_occupied)


def _fields(n: int) -> Float[np.ndarray, "k N N"]:
    """Random and symmetric, always the same."""
    random = np.random.default_rng(1).normal(size=(OTHER_GUESSES, n, n))
    return 0.5 * (random + random.transpose(0, 2, 1))

"""A Fock matrix on two grids: most cycles compute XC on the coarse one, and correct it.

A few grid points know the exchange-correlation matrix badly, but how it *changes* with the density
within some percent.  So the difference between the grids, computed at one density, corrects the
coarse matrix at others nearby.  It is computed again when the SCF has come closer by a factor of
about fifty (defect correction; A. Brandt, Math. Comput. 31, 333 (1977),
doi:10.1090/S0025-5718-1977-0431719-X).  The last cycle of an SCF always has the full grid.

What touches occupied orbitals is enough of the matrix on the full grid (`kohn_sham.nearby`), where
that is cheaper, but for one time near the end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float

from pyscf_ipu.numerics.arrays import Count, Flag, FloatSNN, Scalar
from pyscf_ipu.numerics.precision import Precision
from pyscf_ipu.numerics.products import Products
from pyscf_ipu.numerics.two_words import Pair, add
from pyscf_ipu.scf.diis import Diis, renewed
from pyscf_ipu.scf.orbitals import Orthonormal, commutator_of, similar
from pyscf_ipu.scf.run import ENERGY_WINDOW, EnergySum, Fock, ScfRun

Part = Callable[[FloatSNN], tuple[Pair, FloatSNN]]
"""Density -> energy in Hartree, and its derivative by the density."""


class Nearby(NamedTuple):
    """A matrix at a density nearby, of which the part between empty orbitals may be taken."""

    matrix: FloatSNN
    used: Flag  # False: compute the whole matrix


FullPart = Callable[[FloatSNN, Nearby | None], tuple[Pair, FloatSNN]]
"""A part on the full grid; with a matrix nearby only what touches occupied orbitals, if it can."""

RestPart = Callable[[FloatSNN, Flag | None], tuple[FloatSNN, EnergySum]]
"""The other parts of a Fock matrix, with whether rough ones will do."""

FIRST_GOAL = 0.1
"""Commutator in Hartree at which the full grid is used for the first time: the coarse matrix alone
is off by half of it."""
NEXT_GOAL = 0.02
"""The full grid is used again when the commutator is this part of what it was there."""
MARGIN = 0.4
"""Part of the SCF's threshold that is small enough in any case."""
ROUGH = 2e-4
"""Exchange is rough until the full grid was used at a commutator below this over NEXT_GOAL: there
its noise is far below that."""
MOST_COARSE = 6  # coarse cycles in a row
COARSE_ERROR = 0.1
"""Where a coarse commutator is off by more than this, times the last one on the full grid, every
cycle from then on has the full grid."""


@dataclass(frozen=True)
class Staged:
    """A Fock matrix, of which one part can be had on a coarse grid."""

    rest: RestPart
    """The other parts."""
    full: FullPart
    coarse: Part
    """The same part at a fraction of the price."""
    joined: Callable[[Any, Pair], EnergySum]
    """Parts of the energy, with that of this part."""
    in_part: bool = False
    """Whether `full` makes use of a matrix nearby."""
    has_rough: bool = False
    """Whether rough other parts cost less."""

    def __call__(self, density: FloatSNN) -> tuple[FloatSNN, EnergySum]:
        """The Fock matrix on the full grid."""
        matrix, terms = self.rest(density, None)
        energy, part = self.full(density, None)
        return matrix + part, self.joined(terms, energy)


class Stage(NamedTuple):
    """What the cycles so far say of the difference between the grids."""

    energy: Pair
    matrix: FloatSNN
    """Full minus coarse, in the AO basis."""
    densities: Float[Array, "m *spin N N"]
    """Of the Fock matrices that DIIS holds, in the orthonormal basis."""
    coarse: Bool[Array, " m"]
    """Which of them have a coarse part."""
    goal: Scalar  # commutator at which the full grid is used, Hartree
    since: Count  # cycles since it was
    last: Scalar  # commutator there, Hartree
    always: Flag  # whether all cycles have it from now on
    whole: Flag  # whether the whole matrix was computed on it, close to the end


class Evaluated(NamedTuple):
    """A Fock matrix at one density, in the orthonormal basis."""

    matrix: FloatSNN
    error: FloatSNN  # its commutator with the density
    terms: EnergySum
    coarse_commutator: Scalar  # largest element of the commutator before the full grid was used
    full_grid: Flag  # whether it is the matrix of the full grid, and nothing is rough
    diis: Diis
    stage: Stage | None


def empty_run(fock: Fock, guess: FloatSNN) -> ScfRun:
    """A run that has not begun."""
    dtype = guess.dtype
    shapes = jax.eval_shape(lambda density: fock(density)[1], guess)
    return ScfRun(
        density=guess,
        evaluated=guess,
        terms=jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes),
        orbitals=jnp.zeros_like(guess),
        energy=jnp.zeros(guess.shape[:-1], dtype),
        converged=jnp.zeros((), bool),
        cycles=jnp.zeros((), jnp.int32),
        commutator=jnp.full((), jnp.inf, dtype),
        density_error=jnp.full((), jnp.inf, dtype),
        lacking=jnp.zeros_like(guess) if isinstance(fock, Staged) and fock.in_part else None,
        energies=Pair(jnp.full(ENERGY_WINDOW, jnp.inf, dtype), jnp.zeros(ENERGY_WINDOW, dtype)),
        fractional=jnp.zeros((), bool) if guess.ndim == 3 else None,
    )


def first_stage(fock: Fock, guess: FloatSNN, diis: Diis) -> Stage | None:
    """Nothing is known yet; None if the Fock matrix has one grid."""
    if not isinstance(fock, Staged):
        return None
    depth, dtype = diis.norm.shape[0], guess.dtype
    zero = jnp.zeros((), dtype)
    return Stage(
        energy=Pair(zero, zero),
        matrix=jnp.zeros_like(guess),
        densities=jnp.zeros_like(diis.fock),
        coarse=jnp.zeros(depth, bool),
        goal=jnp.asarray(FIRST_GOAL, dtype),
        since=jnp.zeros((), jnp.int32),
        last=jnp.asarray(jnp.inf, dtype),
        always=jnp.zeros((), bool),
        whole=jnp.zeros((), bool),
    )


class Evaluation(NamedTuple):
    """What a Fock matrix is to be computed of."""

    basis: Orthonormal
    products: Products
    D: FloatSNN  # in the AO basis
    Dx: FloatSNN  # in the orthonormal one
    cycle: Count  # number of earlier cycles
    diis: Diis  # their Fock matrices
    stage: Stage | None
    full_grid: Flag  # whether to use the full grid in any case
    tolerance: Precision  # when the SCF has converged


def evaluate(fock: Fock, at: Evaluation) -> Evaluated:
    """The Fock matrix at a density, on the grid that is good enough."""
    if isinstance(fock, Staged):
        return _on_two_grids(fock, at)
    F, terms = fock(at.D)
    Fx = at.basis.matrix(F, at.products)
    error = commutator_of(Fx, at.Dx)
    return Evaluated(
        matrix=Fx,
        error=error,
        terms=terms,
        coarse_commutator=jnp.max(jnp.abs(error)),
        full_grid=jnp.ones((), bool),
        diis=at.diis,
        stage=None,
    )


def _on_two_grids(fock: Staged, at: Evaluation) -> Evaluated:
    """The coarse matrix with its correction, or that of the full grid."""
    basis, products, D, Dx, cycle, diis, stage, full_grid, tolerance = at
    assert stage is not None
    in_float32 = fock.has_rough & (stage.goal > ROUGH) & ~(full_grid | stage.always)
    rest, terms = fock.rest(D, in_float32)
    with jax.named_scope("coarse"):
        energy, coarse = fock.coarse(D)
    Fx = basis.matrix(rest + (coarse + stage.matrix), products)
    error = commutator_of(Fx, Dx)
    coarse_commutator = jnp.max(jnp.abs(error))
    wanted = (coarse_commutator < stage.goal) | (stage.since >= MOST_COARSE)
    forced = full_grid | stage.always
    on_full = forced | (wanted & (cycle > 0))
    early = coarse_commutator > tolerance.commutator
    in_part = jnp.where(early, ~forced, stage.whole) & fock.in_part

    def on_the_full_grid() -> tuple:
        nearby = Nearby(coarse + stage.matrix, in_part) if fock.in_part else None
        exact, part = fock.full(D, nearby)
        lacking = part - coarse
        Fx = basis.matrix(rest + part, products)
        error = commutator_of(Fx, Dx)
        change = similar(lacking - stage.matrix, basis.inverse)
        commutator = jnp.max(jnp.abs(error))
        now = stage._replace(
            energy=add(exact, Pair(-energy.hi, -energy.lo)),
            matrix=lacking,
            goal=jnp.maximum(NEXT_GOAL * commutator, MARGIN * tolerance.commutator),
            since=jnp.zeros((), jnp.int32),
            last=commutator,
            always=stage.always | (commutator - coarse_commutator > COARSE_ERROR * stage.last),
            whole=jnp.where(in_part, stage.whole, ~early),
        )
        change = jnp.where(stage.coarse.reshape(-1, *[1] * change.ndim), change, 0.0)
        return Fx, error, exact, renewed(diis, change, stage.densities), now

    def corrected() -> tuple:
        now = stage._replace(since=stage.since + 1)
        return Fx, error, add(energy, stage.energy), diis, now

    Fx, error, energy, diis, after = lax.cond(on_full, on_the_full_grid, corrected)
    place = cycle % after.coarse.shape[0]
    after = after._replace(
        densities=after.densities.at[place].set(Dx),
        coarse=after.coarse.at[place].set(~on_full | in_part),
    )
    return Evaluated(
        matrix=Fx,
        error=error,
        terms=fock.joined(terms, energy),
        coarse_commutator=coarse_commutator,
        full_grid=on_full & (after.whole | ~in_part) & ~in_float32,
        diis=diis,
        stage=after,
    )

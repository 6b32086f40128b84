"""A Fock matrix in two stages: most cycles compute its dear part roughly, and correct it.

A few grid points know the exchange-correlation matrix badly, but how it *changes* with the density
within some percent.  So the difference to all points, once found at one density, corrects the rough
matrix at others nearby, and has to be found again only as often as the SCF has come closer by a
factor of fifty or so (defect correction; A. Brandt, Math. Comput. 31, 333 (1977),
doi:10.1090/S0025-5718-1977-0431719-X).  A cycle that is to end the SCF sees all points.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float

from pyscf_ipu.numerics.arrays import Count, Flag, FloatNN, Scalar
from pyscf_ipu.numerics.precision import Precision
from pyscf_ipu.numerics.products import Products
from pyscf_ipu.numerics.two_words import Pair, add
from pyscf_ipu.scf.diis import Diis, renewed
from pyscf_ipu.scf.orbitals import Orthonormal, commutator_of, similar
from pyscf_ipu.scf.run import EnergySum, Fock

Part = Callable[[FloatNN], tuple[Pair, FloatNN]]
"""Density -> energy in Hartree, and its derivative by the density."""

FIRST_GOAL = 0.1
"""Commutator in Hartree at which all points are asked for the first time: the rough matrix alone
is off by half of it."""
CLOSER = 0.02
"""They are asked again when the commutator is this part of what they said last."""
MARGIN = 0.4
"""Part of the SCF's threshold that is small enough in any case."""
MOST_ROUGH = 6  # rough cycles in a row
POOR = 0.1
"""Where a rough commutator is off by more than this, times what all points said last, the rough
part knows too little: they are asked in every cycle from then on."""


@dataclass(frozen=True)
class Staged:
    """A Fock matrix, of which one part is dear."""

    common: Fock
    """All else."""
    dear: Part
    rough: Part
    """What stands for `dear` in most cycles, at a fraction of its price."""
    joined: Callable[[Any, Pair], EnergySum]
    """Parts of the energy, with that of the dear part."""

    def __call__(self, density: FloatNN) -> tuple[FloatNN, EnergySum]:
        """The whole Fock matrix."""
        matrix, terms = self.common(density)
        energy, part = self.dear(density)
        return matrix + part, self.joined(terms, energy)


class Stage(NamedTuple):
    """What the cycles so far know of the dear part."""

    energy: Pair
    matrix: FloatNN
    """What the rough part lacks, in the AO basis."""
    densities: Float[Array, "m N N"]
    """Of the Fock matrices that DIIS holds, in the orthonormal basis."""
    rough: Bool[Array, " m"]
    """Which of them have a rough part."""
    goal: Scalar  # commutator at which all points are asked, Hartree
    since: Count  # cycles since they were
    last: Scalar  # commutator as they said last, Hartree
    poor: Flag


class Evaluated(NamedTuple):
    """A Fock matrix at one density, in the orthonormal basis."""

    matrix: FloatNN
    error: FloatNN  # its commutator with the density
    terms: EnergySum
    near: Scalar  # largest element of the commutator as the rough part has it
    whole: Flag  # whether all points were asked
    diis: Diis
    stage: Stage | None


def first_stage(fock: Fock, guess: FloatNN, diis: Diis) -> Stage | None:
    """Nothing is known yet; None if there is nothing to know."""
    if not isinstance(fock, Staged):
        return None
    depth, dtype = diis.norm.shape[0], guess.dtype
    zero = jnp.zeros((), dtype)
    return Stage(
        energy=Pair(zero, zero),
        matrix=jnp.zeros_like(guess),
        densities=jnp.zeros_like(diis.fock),
        rough=jnp.zeros(depth, bool),
        goal=jnp.asarray(FIRST_GOAL, dtype),
        since=jnp.zeros((), jnp.int32),
        last=jnp.asarray(jnp.inf, dtype),
        poor=jnp.zeros((), bool),
    )


def evaluate(
    fock: Fock,
    algebra: tuple[Orthonormal, Products],
    density: tuple[FloatNN, FloatNN],
    history: tuple[Count, Diis, Stage | None],
    careful: Flag,
    tolerance: Precision,
) -> Evaluated:
    """The Fock matrix at a density, with as many points as it takes.

    Args:
        fock: the operator, `Staged` or not.
        algebra: the orthonormaliser of the AOs, and how products are made.
        density: in the AO basis and in the orthonormal one.
        history: number of earlier cycles, their Fock matrices, and what is known of the dear part.
        careful: whether to ask all points in any case.
        tolerance: when the SCF has converged.
    """
    basis, products = algebra
    in_aos, orthonormal = density
    cycle, diis, known = history
    if known is None:
        found, terms = fock(in_aos)
        matrix = basis.matrix(found, products)
        error = commutator_of(matrix, orthonormal)
        return Evaluated(
            matrix,
            error,
            terms,
            near=jnp.max(jnp.abs(error)),
            whole=jnp.ones((), bool),
            diis=diis,
            stage=None,
        )
    assert isinstance(fock, Staged)
    stage: Stage = known
    common, terms = fock.common(in_aos)
    with jax.named_scope("coarse"):
        energy, rough = fock.rough(in_aos)
    matrix = basis.matrix(common + (rough + stage.matrix), products)
    error = commutator_of(matrix, orthonormal)
    near = jnp.max(jnp.abs(error))
    wanted = (near < stage.goal) | (stage.since >= MOST_ROUGH)
    whole = careful | stage.poor | (wanted & (cycle > 0))

    def all_points() -> tuple:
        exact, part = fock.dear(in_aos)
        lacking = part - rough
        matrix = basis.matrix(common + part, products)
        error = commutator_of(matrix, orthonormal)
        change = similar(lacking - stage.matrix, basis.inverse)
        found = jnp.max(jnp.abs(error))
        closer = jnp.maximum(CLOSER * found, MARGIN * tolerance.commutator)
        count = jnp.zeros((), jnp.int32)
        of_rough = jnp.where(stage.rough[:, None, None], change, 0.0)
        now = stage._replace(
            energy=add(exact, Pair(-energy.hi, -energy.lo)),
            matrix=lacking,
            goal=closer,
            since=count,
            last=found,
            poor=stage.poor | (found - near > POOR * stage.last),
        )
        return matrix, error, exact, renewed(diis, of_rough, stage.densities), now

    def few_points() -> tuple:
        now = stage._replace(since=stage.since + 1)
        return matrix, error, add(energy, stage.energy), diis, now

    matrix, error, energy, diis, after = lax.cond(whole, all_points, few_points)
    place = cycle % after.rough.shape[0]
    after = after._replace(
        densities=after.densities.at[place].set(orthonormal),
        rough=after.rough.at[place].set(~whole),
    )
    return Evaluated(
        matrix, error, fock.joined(terms, energy), near=near, whole=whole, diis=diis, stage=after
    )

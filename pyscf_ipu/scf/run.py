"""How an SCF ended."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import PyTree

from pyscf_ipu.numerics.arrays import Count, Flag, FloatN, FloatSN, FloatSNN, Scalar
from pyscf_ipu.numerics.two_words import Pair, difference

LOWER_HARTREE = 1e-5
"""By which a state has to be lower to be another one."""
ENERGY_WINDOW = 5  # cycles over which QM1B takes the standard deviation of the energy


@runtime_checkable
class EnergySum(Protocol):
    """Parts of an energy: a pytree with their sum in Hartree."""

    def total(self) -> Pair: ...


Fock = Callable[[FloatSNN], tuple[FloatSNN, EnergySum]]


class Cycling(NamedTuple):
    """What an SCF does besides converging; static in a compiled program."""

    fixed: bool = False
    """Do all cycles, also after it has converged, and start once only; whether the last one is
    converged is judged as usual."""
    history: bool = False
    """Keep energy, commutator and gap of every cycle; then the number of cycles is an int."""
    small_gap: float = 0.0
    """Start again from other guesses where the first gap of the converged run is below this many
    Hartree, and take the lowest state; 0 for never."""

    @property
    def tries_others(self) -> bool:
        """Whether other guesses may follow."""
        return self.small_gap > 0 and not self.fixed


ORDINARY = Cycling()


class History(NamedTuple):
    """What each cycle was like, the first one first; n cycles at most, inf beyond the last one."""

    energy: Pair  # [n] Hartree, at the cycle's density
    commutator: FloatN  # [n] largest element of [F, D], Hartree
    gap: FloatN  # [n] Hartree, of the orbitals that the cycle made

    def with_cycle(self, cycle: Count, energy: Pair, commutator: Scalar, gap: Scalar) -> "History":
        """The record with one more cycle, or with another one in its place."""

        def put(where: FloatN, value: Scalar) -> FloatN:
            return where.at[cycle].set(value, mode="drop")

        of_energy = Pair(*(put(old, new) for old, new in zip(self.energy, energy, strict=True)))
        return History(of_energy, put(self.commutator, commutator), put(self.gap, gap))


def no_history(n: int, dtype: DTypeLike) -> History:
    """Room for n cycles."""
    never = jnp.full(n, jnp.inf, dtype)
    return History(Pair(never, jnp.zeros(n, dtype)), never, never)


class ScfRun(NamedTuple):
    """How the loop ended."""

    density: FloatSNN  # in the AO basis; that of the orbitals, if it has converged
    evaluated: FloatSNN  # the one that the last Fock matrix was made of
    terms: PyTree  # the energy's parts at that density, as `fock` gives them
    orbitals: FloatSNN  # columns in the AO basis
    energy: FloatSN  # theirs
    converged: Flag
    cycles: Count
    commutator: Scalar  # largest element of [F, D] in the orthonormal basis, Hartree
    density_error: Scalar
    """Largest element of D - 2 C C^T in the orthonormal basis, D the density `evaluated`.

    At least 2 if an occupied orbital lies above an empty one in the Fock matrix of D."""
    energies: Pair
    """[5] Hartree: the latest cycles, newest first (inf before there were any)."""
    history: History | None = None
    """Every cycle, if it was asked for."""
    lacking: FloatSNN | None = None
    """Full minus coarse of the part of the Fock matrix that can be had on a coarse grid, in the AO
    basis, where a matrix nearby may be made use of (`scf.staged`)."""
    fractional: Flag | None = None
    """Of open shells: not converged, but self-consistent while electrons were smeared."""


def latest_energies(before: Pair, energy: Pair) -> Pair:
    """With this one before all others."""
    return Pair(*(jnp.roll(w, 1).at[0].set(e) for w, e in zip(before, energy, strict=True)))


def below(energy: Pair, other: Pair) -> Flag:
    """Whether an energy is that of a lower state."""
    return difference(energy, other) < -LOWER_HARTREE


def lower(new: ScfRun, old: ScfRun) -> Flag:
    """Whether the new run converged, and the old one did not or has a higher energy."""
    return new.converged & (~old.converged | below(new.terms.total(), old.terms.total()))

"""From a saddle of the energy down to a minimum, by second-order steps in a trust region.

The radius grows with steps that succeed and shrinks with those that do not (R. Fletcher, Practical
Methods of Optimization, 1987, chapter 5).
"""

from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool

from pyscf_ipu.numerics.arrays import (
    Count,
    Counts,
    Flag,
    FloatN,
    FloatNN,
    FloatSNN,
    Scalar,
    by_spin,
    spin_after_spin,
)
from pyscf_ipu.numerics.precision import Precision
from pyscf_ipu.numerics.products import product
from pyscf_ipu.numerics.two_words import Pair, difference
from pyscf_ipu.scf.lowest.rotation import Response, Rotation, RotationField, lowest_rotation
from pyscf_ipu.scf.orbitals import (
    density_of,
    is_padding,
    left_out,
    length,
    reorthonormalise,
    similar,
)
from pyscf_ipu.scf.run import EnergySum, Fock

STEPS = 30
"""Steps at most, refused ones included."""
RADIUS, SHORTEST, LONGEST = 0.3, 1e-3, 0.8
"""Radians over all rotations together: of the first step, and between which all others stay."""
OCCUPIED_BELOW = 100.0
"""Hartree by which occupied orbitals are lowered, so that they are the first eigenvectors."""


@runtime_checkable
class Problem(Protocol):
    """A molecule, as far as the descent needs it."""

    @property
    def overlap(self) -> Pair: ...

    @property
    def padded(self) -> Bool[Array, " N"]: ...

    @property
    def cycled(self) -> Fock: ...

    def fock(self, density: FloatSNN) -> tuple[FloatSNN, EnergySum]: ...

    def response(self, density: FloatSNN) -> Response: ...


class Descent(NamedTuple):
    """Where it ended."""

    density: FloatSNN
    energy: Pair
    minimum: Flag  # whether it began in one
    sound: Flag  # whether all numbers were finite
    eigenvalue: Scalar  # lowest of the Hessian where it ended, Hartree


class _State(NamedTuple):
    orbitals: FloatSNN  # the lowest so far
    matrix: FloatSNN  # Fock matrix at their density
    energy: Pair
    trial: FloatSNN  # orbitals of the next step
    radius: Scalar
    steps: Count
    minimum: Flag
    sound: Flag
    eigenvalue: Scalar


def descend(
    problem: Problem,
    orbitals: FloatSNN,
    n_occupied: Counts,
    tolerance: Precision,
    converged: Flag,
) -> Descent:
    """Follow the energy down from these orbitals until it is a minimum.

    Args:
        problem: Fock matrix, energy and response.
        orbitals: columns in the AO basis, occupied ones first; of open shells those of both spins.
        n_occupied: number of occupied orbitals, of open shells of either spin.
        tolerance: how far rounding goes.
        converged: whether the orbitals are those of a self-consistent field.
    """
    dtype = orbitals.dtype
    none, no = jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    start = _State(
        orbitals=orbitals,
        matrix=jnp.zeros_like(orbitals),
        # The first trial is taken, whatever its energy.
        energy=Pair(jnp.full((), jnp.inf, dtype), jnp.zeros((), dtype)),
        trial=orbitals,
        radius=jnp.full((), RADIUS, dtype),
        steps=none,
        minimum=no,
        sound=~no,
        eigenvalue=jnp.zeros((), dtype),
    )

    def unfinished(state: _State) -> Flag:
        return (state.steps < STEPS) & ~state.minimum & (state.radius > SHORTEST)

    def step(state: _State) -> _State:
        state = _moved(problem, state, n_occupied, tolerance=tolerance)
        return _ahead(problem, state, n_occupied, tolerance=tolerance, converged=converged)

    end = lax.while_loop(unfinished, step, start)
    return Descent(
        density=density_of_spins(end.orbitals, n_occupied),
        energy=end.energy,
        minimum=end.minimum & (end.steps == 0),
        sound=end.sound,
        eigenvalue=end.eigenvalue,
    )


def _ahead(
    problem: Problem, state: _State, n_occupied: Counts, tolerance: Precision, converged: Flag
) -> _State:
    """With the orbitals of the next step as trial, or at the end in a minimum."""
    open_shell = state.orbitals.ndim == 3
    diagonal = spin_after_spin(partial(_semicanonical, padded=problem.padded), open_shell)
    orbitals, levels, gradient, allowed = diagonal(state.orbitals, state.matrix, n_occupied)
    small = jnp.max(jnp.abs(gradient)) < 5.0 * tolerance.commutator
    stationary = small | (converged & (state.steps == 0))
    field = RotationField(orbitals, levels, gradient, allowed=allowed, stationary=stationary)
    rotation = lowest_rotation(problem.response(density_of_spins(orbitals, n_occupied)), field)
    minimum = stationary & rotation.is_of_minimum
    radius, x = _within(rotation, state.radius, stationary)
    turned = by_spin(partial(_turned, overlap=problem.overlap), open_shell)(orbitals, x)
    return state._replace(
        orbitals=orbitals,
        trial=turned,
        radius=radius,
        steps=state.steps + (~minimum).astype(jnp.int32),
        minimum=minimum,
        eigenvalue=rotation.eigenvalue,
        sound=state.sound & jnp.isfinite(rotation.eigenvalue) & jnp.isfinite(state.energy.hi),
    )


def _moved(problem: Problem, state: _State, n_occupied: Counts, tolerance: Precision) -> _State:
    """At the trial, if its energy is lower; else where it was, with a shorter step ahead."""
    matrix, terms = problem.fock(density_of_spins(state.trial, n_occupied))
    energy = terms.total()
    lower = difference(energy, state.energy) < 0.05 * tolerance.energy_change
    radius = jnp.where(lower, jnp.minimum(1.5 * state.radius, LONGEST), 0.3 * state.radius)
    taken = (state.trial, matrix, energy)
    kept = (state.orbitals, state.matrix, state.energy)
    at = jax.tree.map(lambda new, old: jnp.where(lower, new, old), taken, kept)
    radius = jnp.where(jnp.isinf(state.energy.hi), RADIUS, radius)
    return state._replace(orbitals=at[0], matrix=at[1], energy=at[2], radius=radius)


def _within(rotation: Rotation, radius: Scalar, stationary: Flag) -> tuple[Scalar, FloatSNN]:
    """The step and its length: at most the radius, and all of it at a stationary field."""
    there = length(rotation.vector)
    wanted = jnp.where(stationary, radius, jnp.minimum(radius, there))
    return wanted, rotation.vector * (wanted / jnp.maximum(there, jnp.finfo(there.dtype).tiny))


def _semicanonical(
    orbitals: FloatNN, matrix: FloatNN, n_occupied: Count, padded: Bool[Array, " N"]
) -> tuple[FloatNN, FloatN, FloatNN, Bool[Array, "N N"]]:
    """Rotate occupied and empty orbitals until the Fock matrix is diagonal within each space.

    Returns:
        The orbitals, their levels (Hartree), the gradient, and which elements are rotations.
    """
    occupied = jnp.arange(orbitals.shape[0], dtype=jnp.int32) < n_occupied
    fock = similar(matrix, orbitals)
    same = occupied[:, None] == occupied[None]
    lowered = jnp.diag(jnp.where(occupied, -OCCUPIED_BELOW, 0.0).astype(fock.dtype))
    orbitals = product(orbitals, jnp.linalg.eigh(jnp.where(same, fock, 0.0) + lowered)[1])
    fock = similar(matrix, orbitals)
    allowed = rotations(orbitals, occupied, padded)
    return orbitals, jnp.diagonal(fock), jnp.where(allowed, fock, 0.0), allowed


def rotations(
    orbitals: FloatNN, occupied: Bool[Array, " N"], padded: Bool[Array, " N"]
) -> Bool[Array, "N N"]:
    """Which elements turn an occupied orbital (column) into an empty one (row) that is there."""
    squares = orbitals * orbitals
    empty = ~occupied & ~is_padding(squares, padded) & ~left_out(squares)
    return empty[:, None] & occupied[None]


def _turned(orbitals: FloatNN, x: FloatNN, overlap: Pair) -> FloatNN:
    """The orbitals after a rotation."""
    turned = product(orbitals, jnp.eye(x.shape[0], dtype=x.dtype) + x - x.T)
    for _ in range(2):
        turned = reorthonormalise(turned, overlap)
    return jnp.where(left_out(orbitals * orbitals), 0.0, turned)  # where rounding would grow


def density_of_spins(orbitals: FloatSNN, n_occupied: Counts) -> FloatSNN:
    """The density of closed shells, or those of both spins, each as closed shells of its own."""
    return by_spin(density_of, orbitals.ndim == 3)(orbitals, n_occupied)

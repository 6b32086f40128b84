"""The self-consistent field: from a guess density to converged orbitals, in one while loop.

`scf` knows a molecule only through its orthonormaliser and a function `fock(density)`; how the
Fock matrix comes about (stored supermatrix, direct, density fitting) is not its business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from pyscf_ipu.diis import Diis, diis_start, diis_step
from pyscf_ipu.precision import Pair, Precision

DIIS_DEPTH = 8
ENERGY_WINDOW = 5  # cycles over which QM1B takes the standard deviation of the energy


class Orthonormal(NamedTuple):
    """S^(-1/2) and S^(1/2): [N, N]."""

    inverse: Array
    root: Array


class ScfRun(NamedTuple):
    """How the loop ended.

    density [N, N] and orbitals [N, N] (columns, ascending energy) in the AO basis.
    energies  Pair [5], Hartree: the latest cycles, newest first (inf before there were any).
    commutator  largest element of [F, D] in the orthonormal basis, Hartree.
    """

    density: Array
    orbitals: Array
    converged: Array
    cycles: Array
    commutator: Array
    energies: Pair


class _State(NamedTuple):
    density: Array  # in the orthonormal basis
    orbitals: Array  # of the unextrapolated Fock matrix, in the orthonormal basis
    diis: Diis
    run: tuple[Array, Array, Array, Pair]


def orthonormal(overlap: Array) -> Orthonormal:
    """Loewdin's symmetric orthonormalisation, which disturbs the AOs least."""
    values, vectors = jnp.linalg.eigh(overlap)
    floor = float(jnp.finfo(overlap.dtype).eps) * overlap.shape[0]
    root = jnp.sqrt(jnp.maximum(values, floor))
    return Orthonormal(_product(vectors / root, vectors.T), _product(vectors * root, vectors.T))


def density_of(orbitals: Array, n_occupied: Array) -> Array:
    """Closed-shell density matrix: 2 C C^T over the lowest `n_occupied` orbitals."""
    occupied = jnp.arange(orbitals.shape[1], dtype=jnp.int32) < n_occupied
    chosen = jnp.where(occupied, orbitals, 0.0)
    return 2.0 * _product(chosen, chosen.T)


def scf(
    fock: Callable[[Array], tuple[Array, Pair]],
    basis: Orthonormal,
    guess: Array,
    n_occupied: Array,
    max_cycles: int,
    tolerance: Precision,
) -> ScfRun:
    """Iterate until the energy and the commutator [F, D] stand still.

    fock   density [N, N] -> (Fock matrix [N, N], energy in Hartree as a Pair).
    guess  density matrix [N, N] in the AO basis; need not be idempotent.
    A non-finite energy ends the loop as not converged.
    """
    n, dtype = guess.shape[0], guess.dtype

    def unfinished(state: _State) -> Array:
        converged, cycle, _, energies = state.run
        sound = (cycle == 0) | jnp.isfinite(energies.hi[0])
        return ~converged & (cycle < max_cycles) & sound

    def cycle(state: _State) -> _State:
        _, count, _, energies = state.run
        matrix, energy = fock(_product(_product(basis.inverse, state.density), basis.inverse))
        matrix = _product(_product(basis.inverse, matrix), basis.inverse)
        product = _product(matrix, state.density)
        error = product - product.T
        commutator = jnp.max(jnp.abs(error))
        change = jnp.abs((energy.hi - energies.hi[0]) + (energy.lo - energies.lo[0]))
        converged = (commutator < tolerance.commutator) & (change < tolerance.energy_change)
        diis, extrapolated = diis_step(state.diis, count, matrix, error)
        # At convergence the orbitals of the plain Fock matrix are the answer.
        _, orbitals = jnp.linalg.eigh(jnp.where(converged, matrix, extrapolated))
        window = Pair(*(jnp.roll(w, 1).at[0].set(e) for w, e in zip(energies, energy, strict=True)))
        return _State(
            density_of(orbitals, n_occupied),
            orbitals,
            diis,
            (converged, count + 1, commutator, window),
        )

    start = _State(
        _product(_product(basis.root, guess), basis.root),
        jnp.zeros((n, n), dtype),
        diis_start(DIIS_DEPTH, n, dtype),
        (
            jnp.zeros((), bool),
            jnp.zeros((), jnp.int32),
            jnp.full((), jnp.inf, dtype),
            Pair(jnp.full(ENERGY_WINDOW, jnp.inf, dtype), jnp.zeros(ENERGY_WINDOW, dtype)),
        ),
    )
    end = lax.while_loop(unfinished, cycle, start)
    orbitals = _product(basis.inverse, end.orbitals)
    converged, cycles, commutator, energies = end.run
    density = density_of(orbitals, n_occupied)
    return ScfRun(density, orbitals, converged, cycles, commutator, energies)


def _product(a: Array, b: Array) -> Array:
    return jnp.matmul(a, b, precision="highest")

"""Orthonormal bases, orbitals and density matrices: the algebra of the SCF."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from pyscf_ipu.numerics.arrays import Count, FloatNN
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.scf.machine import Eigh, library_eigh


class Orthonormal(NamedTuple):
    """S^(-1/2), S^(1/2), and S itself."""

    inverse: FloatNN
    root: FloatNN
    overlap: Pair


def orthonormal(overlap: Pair, eigh: Eigh = library_eigh) -> Orthonormal:
    """Loewdin's symmetric orthonormalisation, which disturbs the AOs least."""
    with jax.named_scope("eigensolver"):
        start = jnp.eye(overlap.hi.shape[0], dtype=overlap.dtype)
        values, vectors = eigh(overlap.hi, start, jnp.zeros((), overlap.dtype))
    floor = float(jnp.finfo(overlap.dtype).eps) * overlap.hi.shape[0]
    root = jnp.sqrt(jnp.maximum(values, floor))
    inverse = product(vectors / root, vectors.T)
    return Orthonormal(inverse, product(vectors * root, vectors.T), overlap)


def reorthonormalise(orbitals: FloatNN, overlap: Pair) -> FloatNN:
    """Orbitals C with C^T S C = 1 again, by Newton-Schulz steps: C <- C (3 - C^T S C) / 2.

    The energy is variational in the orbitals only if the density is idempotent: without this
    step a float32 energy is wrong to first order in the rounding of the orbitals.
    """
    eye = jnp.eye(orbitals.shape[1], dtype=orbitals.dtype)
    for _ in range(3):
        metric = similar(overlap.hi, orbitals) + similar(overlap.lo, orbitals)
        orbitals = product(orbitals, 1.5 * eye - 0.5 * metric)
    return orbitals


def density_of(orbitals: FloatNN, n_occupied: Count) -> FloatNN:
    """Closed-shell density matrix: 2 C C^T over the lowest `n_occupied` orbitals."""
    occupied = jnp.arange(orbitals.shape[1], dtype=jnp.int32) < n_occupied
    chosen = jnp.where(occupied, orbitals, 0.0)
    return 2.0 * product(chosen, chosen.T)


def purified(density: FloatNN, overlap: FloatNN) -> FloatNN:
    """The idempotent density next to one that is nearly so: D S D = 2 D.

    R. McWeeny, Rev. Mod. Phys. 32, 335 (1960), doi:10.1103/RevModPhys.32.335.
    """
    half = 0.5 * density
    for _ in range(3):
        square = product(product(half, overlap), half)
        half = 3.0 * square - 2.0 * product(product(square, overlap), half)
    return 2.0 * half


def commutator_of(fock: FloatNN, density: FloatNN) -> FloatNN:
    """[F, D] in an orthonormal basis."""
    both = product(fock, density)
    return both - both.T


def similar(matrix: FloatNN, x: FloatNN) -> FloatNN:
    """X^T M X."""
    return product(product(x.T, matrix), x)


def product(a: FloatNN, b: FloatNN) -> FloatNN:
    """A B, in the full precision of their dtype."""
    return jnp.matmul(a, b, precision="highest")

"""What the levels of orbitals say of an SCF: which are occupied, how far apart, how sure."""

import jax.numpy as jnp

from pyscf_ipu.numerics.arrays import Count, Flag, FloatN, Scalar


def are_lowest(levels: FloatN, n_occupied: Count) -> Flag:
    """Whether all occupied orbitals lie below all empty ones."""
    occupied = jnp.arange(levels.shape[0], dtype=jnp.int32) < n_occupied
    highest = jnp.max(jnp.where(occupied, levels, -jnp.inf))
    return highest <= jnp.min(jnp.where(occupied, jnp.inf, levels))


def level_error(plain: FloatN, levels: FloatN, n_occupied: Count) -> Scalar:
    """Largest difference of the levels up to the first empty one, Hartree."""
    counts = jnp.arange(levels.shape[0], dtype=jnp.int32) <= n_occupied
    return jnp.max(jnp.where(counts, jnp.abs(plain - levels), 0.0))


def frontier_gap(levels: FloatN, n_occupied: Count) -> Scalar:
    """Between the highest occupied level and the next."""
    return jnp.take(levels, n_occupied, mode="clip") - levels[n_occupied - 1]

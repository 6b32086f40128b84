"""The step to the idempotent density, against the same in float64."""

import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.kohn_sham.idempotent import step_to_idempotent
from pyscf_ipu.numerics.two_words import Pair, split

N, OCCUPIED = 12, 5


@pytest.fixture(scope="module")
def rounded():
    """An overlap matrix, and a density that float32 has rounded, in float64."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(N, N))
    overlap = np.eye(N) + 0.02 * (x + x.T)
    values, vectors = np.linalg.eigh(overlap)
    root = vectors / np.sqrt(values) @ vectors.T
    orbitals = root @ np.linalg.qr(rng.normal(size=(N, N)))[0][:, :OCCUPIED]
    density = 2 * orbitals @ orbitals.T
    noise = 3e-7 * rng.normal(size=(N, N))
    return overlap, (density + noise + noise.T).astype(np.float32)


def departure(density, overlap):
    return np.abs(density @ overlap @ density / 2 - density).max()


def test_a_step_makes_the_density_idempotent(rounded):
    overlap, density = rounded
    words = Pair(*map(jnp.asarray, split(overlap, np.float32)))
    step = step_to_idempotent(jnp.asarray(density), words)
    before = density.astype(np.float64)
    after = before + np.asarray(step, np.float64)
    assert departure(before, overlap) > 3e-7
    assert departure(after, overlap) < 1e-2 * departure(before, overlap)
    # Only what is not idempotent goes: the rest of the noise stays.
    half = before / 2
    for _ in range(6):
        square = half @ overlap @ half
        half = 3 * square - 2 * square @ overlap @ half
    np.testing.assert_allclose(after, 2 * half, atol=1e-10)

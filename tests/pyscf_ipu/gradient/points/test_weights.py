"""The closed form of the weights' derivative, against JAX's of the weights themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.gradient.points.weights import Shares, shares_gradient
from pyscf_ipu.grid.becke import AtomPairs, Cells, becke_weights_vertex
from pyscf_ipu.numerics.two_words import Pair


@pytest.mark.parametrize("atom", [0, 2])
def test_the_derivative_of_a_sum_over_the_points_of_an_atom(atom):
    """With an empty slot, points far away and near other nuclei, and padded points."""
    rng = np.random.default_rng(atom)
    centre = np.array([[0, 0, 0], [0, 1.4, 1.1], [2.0, -0.3, 0.2], [0.5, 0.5, -1.7], [9, 9, 9]])
    present = jnp.array([True, True, True, True, False])
    local = rng.normal(size=(90, 3)) * rng.choice([0.1, 1.0, 8.0], size=(90, 1))
    volume, energy = rng.uniform(size=90), rng.normal(size=90)
    local[80:], volume[80:] = 0.0, 0.0
    radius = jnp.array([0.8, 1.2, 0.6, 0.8, 0.5])
    with jax.enable_x64(True):
        args = [jnp.asarray(x, np.float64) for x in (local, volume, energy, centre, radius)]
        local, volume, energy, centre, radius = args
        pairs = AtomPairs.build(Cells(Pair(centre, jnp.zeros_like(centre)), radius, present))

        def total(displacement, inverse):
            moved = pairs._replace(
                displacement=pairs.displacement.at[atom].set(displacement), inverse=inverse
            )
            weights = becke_weights_vertex(local, volume, jnp.int32(atom), *moved, present)
            return jnp.dot(weights, energy)

        at = pairs.displacement[atom], pairs.inverse
        expected = jax.jit(jax.grad(total, (0, 1)))(*at)

        @jax.jit
        def closed(local, by_volume):
            shares = Shares.of(local, jnp.int32(atom), pairs, present)
            return shares_gradient(shares, local, by_volume, jnp.int32(atom), pairs)

        found = closed(local, volume * energy)
        for ours, theirs in zip(found, expected, strict=True):
            scale = np.abs(theirs).max()
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * scale)

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.grid.ao_blocks import AoBlocks
from pyscf_ipu.grid.blocks import BLOCK_MULTIPLE
from pyscf_ipu.grid.xc_matrix import xc_density, xc_potential
from pyscf_ipu.machines.grid_kernels import POINTS, ROWS, density_kernel, potential_kernel


@pytest.mark.parametrize(
    ("n", "axes"), [(20, 4), (ROWS, 1), (ROWS + 6, 4)], ids=["few", "full", "two tiles"]
)
def test_the_kernels_equal_the_portable_steps(n, axes):
    rng = np.random.default_rng(0)
    ao = jnp.asarray(rng.normal(size=(2, axes, n, 4 * POINTS)), jnp.float32)
    density = jnp.asarray(rng.normal(size=(n, n)), jnp.float32)
    density = density + density.T
    found = jax.jit(density_kernel)(ao, density)
    np.testing.assert_allclose(found, xc_density(AoBlocks(ao), density), rtol=1e-5, atol=1e-3)
    factors = jnp.asarray(rng.normal(size=(2, axes, 4 * POINTS)), jnp.float32)
    found = jax.jit(potential_kernel)(ao, factors)
    np.testing.assert_allclose(found, xc_potential(AoBlocks(ao), factors), rtol=1e-5, atol=1e-3)


def test_blocks_of_the_grid_are_whole_products():
    assert BLOCK_MULTIPLE % POINTS == 0

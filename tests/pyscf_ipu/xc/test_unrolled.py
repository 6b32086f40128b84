"""Functions of one point, unrolled along all axes but that of the points."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.xc.registry import functional
from pyscf_ipu.xc.semilocal.unrolled import unrolled


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


def test_it_is_what_vmap_makes_of_it():
    def of_point(x, y):
        both = jnp.stack([x[0] * y, jnp.where(x[1] < 0.0, 1.0, x[1])])
        table = jnp.asarray([[0.5], [2.0]]) * both[::-1][None]
        return table.sum(0), (table.T[1], jnp.ones(()), both[2:].sum())

    random = np.random.default_rng(1)
    x, y = jnp.asarray(random.normal(size=(2, 7))), jnp.asarray(random.normal(size=7))
    right = jax.vmap(of_point, in_axes=-1, out_axes=-1)(x, y)
    jax.tree.map(np.testing.assert_allclose, jax.jit(unrolled(of_point))(x, y), right)


@pytest.mark.parametrize("name", ["pbe", pytest.param("hse06", marks=pytest.mark.long)])
def test_derivatives_of_a_functional_along_a_change(name):
    random = np.random.default_rng(2)
    rho, sigma = jnp.asarray(random.uniform(0.1, 1.0, (2, 5))), jnp.full((3, 5), 0.1)
    plain = functional(name).energy_and_potential_of_spins
    changes = jnp.ones_like(rho), 0.1 * jnp.ones_like(sigma)
    found, right = (jax.jvp(f, (rho, sigma), changes) for f in (unrolled(plain), plain))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9), found, right)


@pytest.mark.parametrize("function", [lambda x: x @ x, jnp.cumsum, jnp.sort])
def test_what_it_cannot_unroll_is_an_error(function):
    with pytest.raises(NotImplementedError, match="neither elementwise"):
        unrolled(function)(jnp.ones((3, 4)))

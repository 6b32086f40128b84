"""The JAX under us: a release that computes wrong numbers must not go unnoticed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@pytest.mark.parametrize(("dtype", "n"), [(np.float32, 32_769), (np.float64, 16_385)])
def test_vmapped_product_and_sum_under_jit(dtype, n):
    """jax-ml/jax#39103: wrong last rows with jax 0.10.2 on CPUs."""

    def norm(r):
        return jnp.sum((jnp.eye(3, dtype=dtype) @ r) ** 2)

    with jax.enable_x64(dtype == np.float64):
        x = jnp.arange(n, dtype=dtype)
        rows = jnp.stack([x, jnp.zeros_like(x), jnp.zeros_like(x)], axis=1)
        found = jax.jit(jax.vmap(norm))(rows)
        assert found.dtype == dtype
        np.testing.assert_array_equal(np.asarray(found[-1]), np.asarray(norm(rows[-1])))
        np.testing.assert_allclose(found, np.arange(n, dtype=np.float64) ** 2, rtol=1e-6)


def test_promotion_is_strict_in_this_session():
    single, integer = jnp.ones(2, jnp.float32), jnp.ones(2, jnp.int32)
    with pytest.raises(Exception, match="strict"):
        single + integer

"""Products of matrices, one by one and side by side, and the order of computations."""

import jax
import jax.numpy as jnp
import numpy as np

from pyscf_ipu.numerics.products import after, one_by_one, side_by_side


def test_products_are_the_same_in_either_way():
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(9, 9)).astype(np.float32) for _ in range(6)]
    pairs = list(zip(matrices[::2], matrices[1::2], strict=True))
    exact = [a.astype(np.float64) @ b for a, b in pairs]
    for products in (one_by_one, side_by_side):
        found = jax.jit(products)(*pairs)
        np.testing.assert_allclose(np.stack(found), exact, atol=1e-5)


def test_what_comes_after_is_what_it_was_unless_nothing_finite_came_before():
    x = (np.arange(3.0), np.ones((2, 2)))
    for before in (np.zeros((4, 4)), (np.int32(3), np.full(2, -1.0))):
        jax.tree.map(np.testing.assert_array_equal, jax.jit(after)(before, x), x)
    assert np.isnan(after((np.zeros(2), np.full(2, np.inf)), x)[0]).all()


def test_what_comes_after_has_the_memory_of_what_came_before():
    def twice(x, y):
        def sorted_sum(x):
            return jnp.sum(jnp.sort(jnp.outer(x, x).ravel()))

        first = sorted_sum(x)
        return first + sorted_sum(after(first, y))

    x = np.ones(512, np.float32)
    needed = jax.jit(twice).lower(x, x).compile().memory_analysis().temp_size_in_bytes
    assert needed < 1.5 * x.nbytes * len(x) * 2

"""Products of matrices, one by one and side by side."""

import jax
import numpy as np

from pyscf_ipu.numerics.products import one_by_one, side_by_side


def test_products_are_the_same_in_either_way():
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(9, 9)).astype(np.float32) for _ in range(6)]
    pairs = list(zip(matrices[::2], matrices[1::2], strict=True))
    exact = [a.astype(np.float64) @ b for a, b in pairs]
    for products in (one_by_one, side_by_side):
        found = jax.jit(products)(*pairs)
        np.testing.assert_allclose(np.stack(found), exact, atol=1e-5)

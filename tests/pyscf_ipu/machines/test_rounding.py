import jax
import numpy as np
import pytest
from oracle import OPTIMISED

from pyscf_ipu.machines.rounding import divided, inverse, inverse_root

X = np.geomspace(1e-6, 1e6, 10_001).astype(np.float32)
EPS = np.finfo(np.float32).eps


@pytest.mark.parametrize(
    ("function", "exact"),
    [
        (inverse, lambda x: 1 / x),
        (inverse_root, lambda x: 1 / np.sqrt(x)),
        (lambda x: divided(0 * x + np.float32(3), x), lambda x: 3 / x),
    ],
    ids=["inverse", "inverse root", "quotient"],
)
def test_right_to_a_rounding_and_without_bias(function, exact):
    want = exact(X.astype(np.float64))
    error = np.asarray(jax.jit(function, compiler_options=OPTIMISED)(X), np.float64) / want - 1
    assert np.abs(error).max() < 1.5 * EPS
    assert abs(error.mean()) < 0.05 * EPS

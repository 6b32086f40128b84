"""Settings of every test session.

Strict dtype promotion is the cheapest guard against a silent float64: an operation on a float32
and a float64 array raises instead of widening.
"""

import os

# One thread for the BLAS of NumPy and PySCF: the test processes share the cores already.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import jax  # noqa: E402

jax.config.update("jax_numpy_dtype_promotion", "strict")


def pytest_configure(config):
    """Let PySCF's own warnings pass; those of the project and of JAX stay errors."""
    for passed in (
        # Its SCF objects leave their temporary checkpoint file to the garbage collector.
        "ignore:unclosed file.*:ResourceWarning",
        # Its guess from atomic densities calls a function that it has deprecated itself.
        r"ignore:\s*remove_linear_dep_:DeprecationWarning",
    ):
        config.addinivalue_line("filterwarnings", passed)

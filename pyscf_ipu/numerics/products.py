"""Products of matrices in the full precision of their dtype: one, or several side by side."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from pyscf_ipu.numerics.arrays import FloatNN


def product(a: Float[Array, "m n"], b: Float[Array, "n k"]) -> Float[Array, "m k"]:
    """A B."""
    return jnp.matmul(a, b, precision="highest")


Factors = tuple[FloatNN, FloatNN]
"""The two matrices of a product."""

Products = Callable[..., tuple[FloatNN, ...]]
"""(A, B), (C, D), ... -> A B, C D, ...: N x N products that do not need each other."""


def one_by_one(*pairs: Factors) -> tuple[FloatNN, ...]:
    """One product after another: right where each keeps the whole machine busy."""
    return tuple(product(a, b) for a, b in pairs)


def side_by_side(*pairs: Factors) -> tuple[FloatNN, ...]:
    """All at once, as a product of stacks: right where one is too small for the machine."""
    left, right = (jnp.stack(some) for some in zip(*pairs, strict=True))
    return tuple(jnp.matmul(left, right, precision="highest"))

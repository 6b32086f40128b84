"""Products of matrices in full precision, one or several side by side; and an order of steps."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, PyTree

from pyscf_ipu.numerics.arrays import FloatNN


def product(a: Float[Array, "*s m n"], b: Float[Array, "*t n k"]) -> Float[Array, "... m k"]:
    """A B, or that of every two of a stack."""
    return jnp.matmul(a, b, precision="highest")


Stack = Float[Array, "... N N"]
"""A matrix, or those of two spins."""
Factors = tuple[Stack, Stack]
"""The two matrices of a product."""

Products = Callable[..., tuple[Stack, ...]]
"""(A, B), (C, D), ... -> A B, C D, ...: N x N products that do not need each other."""


def one_by_one(*pairs: Factors) -> tuple[Stack, ...]:
    """One product after another: right where each keeps the whole machine busy."""
    return tuple(product(a, b) for a, b in pairs)


def side_by_side(*pairs: Factors) -> tuple[FloatNN, ...]:
    """All at once, as a product of stacks: right where one is too small for the machine."""
    left, right = (jnp.stack(some) for some in zip(*pairs, strict=True))
    return tuple(jnp.matmul(left, right, precision="highest"))


def after(before: PyTree, x: PyTree) -> PyTree:
    """Arrays as they are, but not before others are there; NaN if those are not finite.

    XLA computes in any order what does not depend on each other.  What is made of `x` can have the
    memory of the operands of `before`, which would else be held at the same time.
    """
    first = [a.ravel()[0].astype(jnp.float32) for a in jax.tree.leaves(before)]
    finite = jnp.isfinite(sum(first))
    return jax.tree.map(lambda a: jnp.where(finite, a, jnp.nan), x)

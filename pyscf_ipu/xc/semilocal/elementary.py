"""Elementary functions that XLA computes slowly or with too few digits on a CPU."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


@jax.custom_jvp
def cbrt(x: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """Cube root of positive numbers, for densities between the cutoff and the largest float.

    ``jnp.cbrt`` calls a scalar routine on a CPU and takes five times as long; ``x ** (1 / 3)`` is
    biased by more than half an ulp in float32.  One Newton step repairs ``exp(log(x) / 3)``.
    """
    guess = jnp.exp(jnp.log(x) * (1 / 3))
    return guess - (guess - x / (guess * guess)) * (1 / 3)


@cbrt.defjvp
def _cbrt_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    root = cbrt(x)
    return root, dx * (1 / 3) / (root * root)


@jax.custom_jvp
def arctan(x: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """Inverse tangent for |x| <= 2, vectorised (``jnp.arctan`` is a scalar call on a CPU).

    Two half-angle steps, atan(x) = 2 atan(x / (1 + sqrt(1 + x^2))), bring the argument below 0.29,
    where 14 terms of the Taylor series are exact to the last digits of float64.
    """
    for _ in range(2):
        x = x / (1 + jnp.sqrt(1 + x * x))
    square = x * x
    series = jnp.zeros_like(x)
    for n in reversed(range(14)):
        series = (-1) ** n / (2 * n + 1) + square * series
    return 4 * x * series


@arctan.defjvp
def _arctan_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return arctan(x), dx / (1 + x * x)


def x_arcsinh_x(x2: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """x arcsinh(x) as a function of x^2, smooth at zero where sqrt(x^2) has no derivative."""
    small = x2 < 1e-5
    x = jnp.sqrt(jnp.where(small, 1.0, x2))
    # log1p keeps the digits that log(x + sqrt(1 + x^2)) loses below x = 1.
    far = x * jnp.log1p(x + x * x / (1 + jnp.sqrt(1 + x * x)))
    low = jnp.where(small, x2, 0.0)
    near = low * (1 - low * (1 / 6 - low * (3 / 40 - low * (5 / 112))))
    return jnp.where(small, near, far)


def eighth_power(x: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """x^8 in three products."""
    square = x * x
    fourth = square * square
    return fourth * fourth

"""Integrals of exp(-z^2) / (1 + z^2/x) over positive z, which a screened exchange hole asks for.

Written S_i(x) for the integral with z^(i-1).  Two of them are known functions, of which the others
follow by S_(i+2) = x (Gamma(i/2)/2 - S_i).  Upwards this loses digits where x is large; there it
runs downwards, from two integrals by quadrature.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

EULER = float(np.euler_gamma)
SMALL = 1.5
"""Up to this x the recursion runs upwards."""
NODES = 32
"""Of the quadrature, whose error falls as exp(-4 sqrt(NODES x)): 1e-12 at SMALL."""
TERMS = 24
"""Of the power series of the exponential integral: 1.5^24 / 24! = 3e-20."""


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def half_gaussian_moments(
    x: Float[Array, "*grid"], count: int
) -> tuple[Float[Array, "*grid"], ...]:
    """S_1 to S_count at x > 0; `count` is even."""
    small = x < SMALL
    low, high = jnp.where(small, x, 1.0), jnp.where(small, 2 * SMALL, x)
    up = [0.5 * math.pi * jnp.sqrt(low) * _complement(low), 0.5 * low * _exponential(low)]
    for i in range(1, count - 1):
        up.append(low * (_moment(i) - up[i - 1]))
    down = [_by_quadrature(high, count - 1), _by_quadrature(high, count)]
    for i in reversed(range(1, count - 1)):
        down.insert(0, _moment(i) - down[1] / high)
    return tuple(jnp.where(small, a, b) for a, b in zip(up, down, strict=True))


@half_gaussian_moments.defjvp
def _moments_jvp(count, primals, tangents):
    """x dS_i/dx = i/2 S_i - S_(i+2)."""
    (x,), (dx,) = primals, tangents
    all_of_them = half_gaussian_moments(x, count + 2)
    step = dx / x
    moments = all_of_them[:count]
    slopes = (0.5 * i * s - all_of_them[i + 1] for i, s in enumerate(moments, start=1))
    return moments, tuple(slope * step for slope in slopes)


def scaled_complement(x: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """e^x erfc(sqrt(x)) at x > 0."""
    return 2 / math.pi * half_gaussian_moments(x, 2)[0] / jnp.sqrt(x)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def exponential_less_logarithm(x: Float[Array, "*grid"], k: float) -> Float[Array, "*grid"]:
    """e^x E1(x) - ln(1 + k/x) at x > 0, of which both grow as -ln(x) towards zero."""
    small = x < SMALL
    low, high = jnp.where(small, x, 1.0), jnp.where(small, 2 * SMALL, x)
    near = jnp.exp(low) * (_entire(low) - EULER) - jnp.expm1(low) * jnp.log(low) - jnp.log(low + k)
    far = 2 / high * half_gaussian_moments(high, 2)[1] - jnp.log1p(k / high)
    return jnp.where(small, near, far)


@exponential_less_logarithm.defjvp
def _exponential_less_logarithm_jvp(k, primals, tangents):
    (x,), (dx,) = primals, tangents
    slope = 2 / x * half_gaussian_moments(x, 2)[1] - 1 / (x + k)
    return exponential_less_logarithm(x, k), slope * dx


def _moment(i: int) -> float:
    """The integral of z^(i-1) exp(-z^2)."""
    return math.gamma(i / 2) / 2


def _complement(x: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """e^x erfc(sqrt(x)) for small x."""
    return jnp.exp(x) * (1 - lax.erf(jnp.sqrt(x)))


def _exponential(x: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """e^x E1(x) for small x: M. Abramowitz, I. A. Stegun, Handbook, eq. 5.1.11."""
    return jnp.exp(x) * (_entire(x) - EULER - jnp.log(x))


def _entire(x: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """Ein(x) = E1(x) + gamma + ln(x), which is entire."""
    total = jnp.zeros_like(x)
    for n in reversed(range(1, TERMS)):
        total = x * ((-1) ** (n + 1) / (n * math.factorial(n)) + total)
    return total


def _by_quadrature(x: Float[Array, "*grid"], i: int) -> Float[Array, "*grid"]:
    """S_i for large x: with t = z^2 by Gauss and Laguerre, with z by Gauss and Hermite.

    The rule for z with an even power is that of the whole axis, whose other half is the same.
    """
    if i % 2 == 0:
        t, weights = np.polynomial.laguerre.laggauss(NODES)
        weights = 0.5 * weights * t ** (i // 2 - 1)
    else:
        z, weights = (half[NODES:] for half in np.polynomial.hermite.hermgauss(2 * NODES))
        t = z * z
        weights = weights * z ** (i - 1)
    inverse = (1 / x)[..., None]
    terms = jnp.asarray(weights, x.dtype) / (1 + jnp.asarray(t, x.dtype) * inverse)
    return terms.sum(-1)

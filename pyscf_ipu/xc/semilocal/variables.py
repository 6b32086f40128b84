"""Dimensionless variables of a closed-shell density, safe at vanishing density.

All functionals of this package are written in the cube root of the density and in the squared
reduced gradient.  Both stay representable in float32 where products such as ``rho**(8/3)`` would
underflow, and the guards against empty space live in this one place: the formulas themselves
contain no branch.  Atomic units throughout.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

RS_OVER_INVERSE_CBRT = (3 / (4 * math.pi)) ** (1 / 3)
"""r_s rho^(1/3): the Wigner-Seitz radius is this constant over the cube root of the density."""

LARGEST_X2 = 1e14
"""Cap on sigma / rho^(8/3).

A density that decays as exp(-2 a r) has x^2 = 4 a^2 / rho^(2/3), below 1e12 at every density above
the float64 cutoff, so only meaningless input (rho = 1e-12 with sigma = 1) meets the cap.
"""


LEAST_T, LARGEST_T = 1e-7, 1e14
"""Bounds of tau / rho^(5/3).

A bond's midpoint comes close to zero where one orbital holds all electrons, and a density that
decays as above has a^2 / (2 rho^(2/3)), as far below the upper bound as x^2 is.
"""


class Variables(NamedTuple):
    """What an energy per electron may depend on, one value per grid point."""

    cbrt: Float[Array, "*grid"]  # rho^(1/3) in 1/Bohr, strictly positive
    x2: Float[Array, "*grid"]  # sigma / rho^(8/3), dimensionless, in [0, LARGEST_X2]
    t: Float[Array, "*grid"] | None = None  # tau / rho^(5/3), dimensionless, at least x2 / 8

    @property
    def kinetic(self) -> Float[Array, "*grid"]:
        """tau / rho^(5/3), dimensionless.

        Raises:
            TypeError: the functional was called without tau.
        """
        if self.t is None:
            raise TypeError("this functional depends on the kinetic energy density: give tau")
        return self.t

    @property
    def rs(self) -> Float[Array, "*grid"]:
        """Wigner-Seitz radius (3 / (4 pi rho))^(1/3) in Bohr."""
        return RS_OVER_INVERSE_CBRT / self.cbrt


def density_cutoff(dtype: jnp.dtype) -> float:
    """Density in electrons/Bohr^3 at and below which a point counts as empty.

    The integral of |e_xc| over the tail below 1e-11 is under 1e-9 Ha for a molecule, and
    ``rho**(-8/3)`` of 1e-11 is still far from the largest float32.

    Raises:
        TypeError: if ``dtype`` is neither float32 nor float64.
    """
    cutoffs = {jnp.dtype("float32"): 1e-11, jnp.dtype("float64"): 1e-15}
    if jnp.dtype(dtype) not in cutoffs:
        raise TypeError(f"densities must be float32 or float64, got {dtype}: convert them first")
    return cutoffs[jnp.dtype(dtype)]


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


def variables(
    rho: Float[Array, "*grid"],
    sigma: Float[Array, "*grid"],
    tau: Float[Array, "*grid"] | None = None,
) -> tuple[Float[Array, "*grid"], Variables]:
    """Density and dimensionless variables with empty points replaced by a harmless density.

    Args:
        rho: total density in electrons/Bohr^3, any shape; may be slightly negative from rounding.
        sigma: |grad rho|^2 in atomic units, same shape.
        tau: sum over electrons of |grad psi|^2 / 2 in atomic units, same shape, where it is needed.

    Returns:
        The density with zero (and zero derivative) at empty points, and the variables.  A NaN
        input is passed on, never taken for empty space.

    Raises:
        TypeError: if the arrays are not both float32 or both float64.
    """
    for name, other in (("sigma", sigma), ("tau", tau)):
        if other is not None and rho.dtype != other.dtype:
            raise TypeError(f"rho is {rho.dtype} but {name} is {other.dtype}: give both one dtype")
    empty = rho <= density_cutoff(rho.dtype)
    # Double where: the inner one keeps infinities out of the derivative of the unused branch.
    root = cbrt(jnp.where(empty, 1.0, rho))
    inverse = 1 / root
    scale = _eighth_power(inverse)
    capped = sigma * scale > LARGEST_X2
    dropped = empty | (sigma < 0) | capped
    x2 = jnp.where(capped & ~empty, LARGEST_X2, jnp.where(dropped, 0.0, sigma) * scale)
    density = jnp.where(empty, 0.0, rho)
    if tau is None:
        return density, Variables(root, x2)
    t = _reduced_tau(tau, inverse, empty)
    return density, Variables(root, _not_beyond(x2, 8 * t), t)


def _reduced_tau(
    tau: Float[Array, "*grid"], inverse: Float[Array, "*grid"], empty: Bool[Array, "*grid"]
) -> Float[Array, "*grid"]:
    """tau / rho^(5/3) within its bounds; there, and at empty points, without derivative."""
    square = inverse * inverse
    scale = square * square * inverse
    high = tau * scale > LARGEST_T
    low = tau * scale < LEAST_T
    inside = jnp.where(low | high | empty, 0.0, tau) * scale
    return jnp.where(high & ~empty, LARGEST_T, jnp.where(low | empty, LEAST_T, inside))


@jax.custom_jvp
def _not_beyond(x: Float[Array, "*grid"], bound: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    """The smaller one, with the derivative of `x` where it is not far beyond.

    sigma / (8 rho) equals tau where one orbital holds all electrons: there rounding decides which
    is smaller, and a derivative that depended on it would jump from point to point.
    """
    return jnp.minimum(x, bound)


@_not_beyond.defjvp
def _not_beyond_jvp(primals, tangents):
    (x, bound), (dx, _) = primals, tangents
    return _not_beyond(x, bound), jnp.where(x > 2 * bound, 0.0, dx)


def _eighth_power(x: Float[Array, "*grid"]) -> Float[Array, "*grid"]:
    square = x * x
    fourth = square * square
    return fourth * fourth

"""Quotients and roots that are right to half a bit or so.

A GPU's own, as XLA and Triton use them in float32, are estimates of two bits less.  What is worse,
they are biased: the same small error in every integral adds up to millielectronvolts.
One step of Newton's method mends both.
"""

from jax import lax

from pyscf_ipu.numerics.arrays import Floats


def inverse(x: Floats) -> Floats:
    """1 / x."""
    y = 1.0 / x
    return y + y * (1.0 - x * y)


def divided(a: Floats, b: Floats) -> Floats:
    """a / b."""
    y = inverse(b)
    q = a * y
    return q + y * (a - q * b)


def inverse_root(x: Floats) -> Floats:
    """1 / sqrt(x)."""
    y = lax.rsqrt(x)
    return y + 0.5 * y * (1.0 - (x * y) * y)

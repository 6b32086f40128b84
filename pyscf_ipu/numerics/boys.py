"""The Boys function F_n(t) = int_0^1 u^(2n) exp(-t u^2) du for n = 0..L, at every t >= 0.

The highest order comes from one Chebyshev series, without a branch or a table look-up, so that
it vectorises on any device: with u = (t - a)/(t + a) in [-1, 1], the function
F_L(t) (t + b)^(L + 1/2) is smooth, and of order one if b makes its two ends comparable.  Lower
orders follow by the downward recursion, whose terms are all positive and so lose nothing
(Helgaker, Jorgensen, Olsen, Molecular Electronic-Structure Theory, eq. 9.8.14).
"""

import functools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from numpy.polynomial import chebyshev
from scipy import special

from pyscf_ipu.numerics.arrays import Lanes
from pyscf_ipu.numerics.two_words import scaled, split

Divide = Callable[[Lanes, Lanes], Lanes]
InverseRoot = Callable[[Lanes], Lanes]
Clenshaw = Callable[[tuple[float, ...], Lanes], tuple[Lanes, Lanes]]

T_MAX = 1e6  # largest argument for which the orders must not underflow on the way


def boys_reference(order: int, t: np.ndarray) -> np.ndarray:
    """F_order(t) in float64 to a few ulp, on the host."""
    t = np.asarray(t, np.float64)
    small = np.minimum(t, 35.0)
    term = np.full_like(t, 1.0 / (2 * order + 1))
    series = term.copy()
    for k in range(1, 200):
        term = term * (2.0 * small / (2 * order + 2 * k + 1))
        series += term
    half = order + 0.5
    large = np.maximum(t, 1.0)
    asymptotic = special.gammainc(half, large) * math.gamma(half) / (2.0 * large**half)
    return np.where(t < 35.0, np.exp(-small) * series, asymptotic)


@functools.cache
def boys_fit(order: int, is_float32: bool) -> tuple[float, float, tuple[float, ...]]:
    """Map parameter a, shift b and Chebyshev coefficients of the fit for F_order."""
    half = order + 0.5
    shift = (math.gamma(half) / 2.0 * (2 * order + 1)) ** (1.0 / half)
    shift = float(np.float32(shift))  # exact in both dtypes: the fit absorbs the difference
    scale = (5.0 if is_float32 else 8.0) * (1.0 + order / 4.0)
    nodes = np.cos(np.pi * (np.arange(256) + 0.5) / 256)
    t = scale * (1 + nodes) / (1 - nodes)
    values = boys_reference(order, t) * (t + shift) ** half
    degree = 20 + 2 * order if is_float32 else 56 + order
    series = chebyshev.chebfit(nodes, values, degree)
    return scale, shift, tuple(float(c) for c in series)


def packed_fits(orders: Iterable[int], dtype: DTypeLike) -> np.ndarray:
    """The fits as native codelets read them: a, b, number of coefficients, coefficients; [n]."""
    fits = [boys_fit(n, np.dtype(dtype) == np.float32) for n in orders]
    rows = [(scale, shift, len(series), *series) for scale, shift, series in fits]
    return np.array([x for row in rows for x in row], np.float64)


def inverse_root(x: Lanes) -> Lanes:
    """1 / sqrt(x)."""
    # XLA makes 1/sqrt(x) an estimate, which on some CPUs is 0.08 eps too small on average.
    return jnp.sqrt(1.0 / x)


def clenshaw(coefficients: tuple[float, ...], twice: Lanes) -> tuple[Lanes, Lanes]:
    """The last two sums b1, b2 of Clenshaw's recurrence over coefficients, at 2 u."""
    b1 = jnp.zeros_like(twice)
    b2 = b1
    for c in coefficients:
        b1, b2 = twice * b1 + (c - b2), b1
    return b1, b2


class Arithmetic(NamedTuple):
    """What a machine does in a way of its own."""

    divide: Divide = operator.truediv
    """a / b, where the machine's own is a rough one."""
    inverse_root: InverseRoot = inverse_root
    """1 / sqrt(x), likewise."""
    clenshaw: Clenshaw = clenshaw
    """Unrolled, or in a loop where code has to be short."""
    routine: Callable[..., Callable[..., Any]] = functools.partial
    """(function, **statics) -> the function of the other arguments, whose code may be shared."""


PLAIN = Arithmetic()


def boys(order: int, t: Lanes, arithmetic: Arithmetic = PLAIN) -> list[Lanes]:
    """F_0(t) ... F_order(t), each shaped like t (dimensionless, t >= 0).

    Args:
        order: the highest.
        t: the arguments.
        arithmetic: of the machine.
    """
    scale, shift, coefficients = boys_fit(order, t.dtype == jnp.float32)
    u = arithmetic.divide(t - scale, t + scale)
    b1, b2 = arithmetic.clenshaw(coefficients[:0:-1], u + u)
    root = arithmetic.inverse_root(t + shift)
    # The leading coefficient in two words: its rounding would be a bias of every value.
    lead = split(np.asarray(coefficients[0]), t.dtype)
    top = ((lead.hi - b2) + (u * b1 + lead.lo)) * root
    for _ in range(order):
        top = top * (root * root)
    decay = jnp.exp(-t)
    values = [top]
    for n in range(order, 0, -1):
        values.append(scaled(2.0 * t * values[-1] + decay, 1.0 / (2 * n - 1)))
    values.reverse()
    if T_MAX ** (order + 0.5) > 1.0 / float(jnp.finfo(t.dtype).tiny):
        values = _guard_underflow(values, t)
    return values


def _guard_underflow(values: list[Lanes], t: Lanes) -> list[Lanes]:
    """Where F_order would underflow, go up from F_0 = sqrt(pi/t)/2 (exp(-t) is 0 there)."""
    far = t > 200.0
    safe = jnp.where(far, t, 200.0)
    up = [0.5 * math.sqrt(math.pi) / jnp.sqrt(safe)]
    for n in range(1, len(values)):
        up.append(up[-1] * ((n - 0.5) / safe))
    return [jnp.where(far, a, v) for a, v in zip(up, values, strict=True)]

"""Numbers in two words: unevaluated sums that double the digits of float32."""

from __future__ import annotations

from typing import NamedTuple, cast

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from pyscf_ipu.numerics.arrays import Floats, taken


class Pair(NamedTuple):
    """The unevaluated sum hi + lo; both words have one shape and one dtype."""

    hi: Floats
    lo: Floats

    @property
    def dtype(self) -> np.dtype:
        return self.hi.dtype

    def value(self) -> Floats:
        """The sum, rounded to the dtype of the words."""
        return self.hi + self.lo

    def at(self, *places: object) -> Pair:
        """Both words indexed alike, by places that count from the start."""
        return Pair(taken(self.hi, *places), taken(self.lo, *places))

    def astype(self, dtype: DTypeLike) -> Pair:
        """Widen to `dtype`: float32 words become one exact float64 word and a zero."""
        if self.hi.dtype == np.dtype(dtype):
            return self
        wide = self.hi.astype(dtype) + self.lo.astype(dtype)
        return Pair(wide, jnp.zeros_like(wide))


def split(value: np.ndarray, dtype: DTypeLike) -> Pair:
    """Host side: a float64 NumPy array as a Pair of `dtype` words, arrays of NumPy, too."""
    exact = np.asarray(value, np.float64)
    hi = exact.astype(dtype)
    return Pair(cast(Array, hi), cast(Array, (exact - hi.astype(np.float64)).astype(dtype)))


def difference(a: Pair, b: Pair) -> Floats:
    """a - b in one word; exact to the last bit when the high words are close."""
    return (a.hi - b.hi) + (a.lo - b.lo)


def scaled(x: Floats, constant: float) -> Floats:
    """x * constant with the constant in two words.

    A constant rounded to float32 is wrong by up to 6e-8 for every integral alike: a bias, which
    does not average out over a molecule's energy as rounding noise does.
    """
    c = split(np.asarray(constant), x.dtype)
    return x * c.hi + x * c.lo


def quotient(constant: float, x: Floats) -> Pair:
    """constant / x in two words, however the machine rounds a division; in float64 in one."""
    c = split(np.asarray(constant), x.dtype)
    if x.dtype == np.float64:
        return Pair(c.hi / x, jnp.zeros_like(x))
    inverse = 1.0 / x
    whole = two_product(inverse, x)
    rest = inverse * ((1.0 - whole.hi) - whole.lo)
    scaled_inverse = two_product(inverse, jnp.broadcast_to(c.hi, x.shape))
    return Pair(scaled_inverse.hi, scaled_inverse.lo + inverse * c.lo + rest * c.hi)


def inverse_root(x: Pair) -> Pair:
    """1 / sqrt(x) in two words, by a step of Newton's method."""
    root = 1.0 / jnp.sqrt(x.hi)
    square = two_product(root, root)
    whole = two_product(square.hi, x.hi)
    rest = ((1.0 - whole.hi) - whole.lo) - (square.lo * x.hi + square.hi * x.lo)
    return Pair(root, 0.5 * root * rest)


def two_sum(a: Floats, b: Floats) -> Pair:
    """s + e = a + b exactly (Knuth)."""
    s = a + b
    t = s - a
    return Pair(s, (a - (s - t)) + (b - t))


def two_product(a: Floats, b: Floats) -> Pair:
    """p + e = a * b exactly (Dekker); needs no fused multiply-add."""
    bits = 12 if a.dtype == jnp.float32 else 27
    factor = float(2**bits + 1)

    def halves(x: Floats) -> tuple[Floats, Floats]:
        c = x * factor
        high = c - (c - x)
        return high, x - high

    p = a * b
    a1, a2 = halves(a)
    b1, b2 = halves(b)
    return Pair(p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2)


def add(a: Pair, b: Pair) -> Pair:
    """a + b to about twice the precision of one word."""
    s = two_sum(a.hi, b.hi)
    return two_sum(s.hi, s.lo + (a.lo + b.lo))


def compensated_sum(terms: Pair) -> Pair:
    """Sum over every element by a tree of two-sums: [...] -> scalar Pair."""
    hi, lo = terms.hi.ravel(), terms.lo.ravel()
    while hi.size > 1:
        half = (hi.size + 1) // 2
        pad = 2 * half - hi.size
        hi, lo = jnp.pad(hi, (0, pad)), jnp.pad(lo, (0, pad))
        hi, lo = add(Pair(hi[:half], lo[:half]), Pair(hi[half:], lo[half:]))
    return Pair(hi[0], lo[0])


def compensated_dot(a: Floats, b: Floats) -> Pair:
    """Sum of a * b over every element, as if accumulated in twice the precision."""
    return compensated_sum(two_product(a, b))


def leading(x: Floats, axis: int, bits: int) -> Floats:
    """x cut to at most `bits` binary digits below the largest element along `axis`."""
    digits = int(jnp.finfo(x.dtype).nmant) + 1
    # Adding and taking away a much larger number rounds to its last digit, or to half of that.
    largest = jnp.broadcast_to(jnp.max(jnp.abs(x), axis=axis, keepdims=True), x.shape)
    shift = largest * 2.0 ** (digits + 1 - bits)
    return (x + shift) - shift


class WideFactor(NamedTuple):
    """A factor of a wide product."""

    whole: Floats
    lead: Floats
    """Its leading digits, so few that products of leading digits are exact, in whatever order they
    are added up."""
    rest: Floats

    @property
    def T(self) -> WideFactor:
        """The transposed matrix, as a factor on the other side."""
        return WideFactor(*(x.T for x in self))


def wide_factor(x: Floats, axis: int) -> WideFactor:
    """A factor whose products are sums along `axis`."""
    digits = int(jnp.finfo(x.dtype).nmant) + 1
    lead = leading(x, axis, (digits - max(x.shape[axis] - 1, 1).bit_length()) // 2)
    return WideFactor(x, lead, x - lead)


def wide_terms(a: WideFactor, b: WideFactor) -> tuple[tuple[Floats, Floats], ...]:
    """The three products that `wide_sum` makes A B of."""
    return (a.lead, b.rest), (a.rest, b.whole), (a.lead, b.lead)


def wide_sum(first: Floats, second: Floats, exact: Floats) -> Pair:
    """A B from the products of `wide_terms`, some eight digits (binary) better than in one word.

    The product of the leading digits of both is exact; the rest, small, is rounded (K. Ozaki et
    al., Numer. Algorithms 59, 95 (2012), doi:10.1007/s11075-011-9478-1).
    """
    return two_sum(exact, first + second)


def to_float64(pair: Pair) -> np.ndarray:
    """Host side: the value of a Pair in float64."""
    return np.asarray(np.asarray(pair.hi, np.float64) + np.asarray(pair.lo, np.float64))

"""Precision policies, and the two-float arithmetic that lets float32 keep small differences.

A ``Pair`` is an unevaluated sum hi + lo of two numbers of one dtype.  Every real number that
crosses from the host to the device (coordinates, exponents, contraction coefficients, grid
points) travels as a Pair: in float32 the two words carry 48 bits, in float64 the low word is 0.
The engine can therefore recover float64 inputs from a float32 program's arguments, and a
difference such as R_A - R_B loses no digits.

Source of the error-free transformations: T. J. Dekker, Numer. Math. 18, 224 (1971),
doi:10.1007/BF01397083; T. Ogita, S. M. Rump, S. Oishi, SIAM J. Sci. Comput. 26, 1955 (2005),
doi:10.1137/030601818.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike


class Pair(NamedTuple):
    """The unevaluated sum hi + lo; both words have one shape and one dtype."""

    hi: Array
    lo: Array

    @property
    def dtype(self) -> np.dtype:
        return self.hi.dtype

    def value(self) -> Array:
        """The sum, rounded to the dtype of the words."""
        return self.hi + self.lo

    def at(self, index: object) -> Pair:
        """Both words indexed alike."""
        return Pair(self.hi[index], self.lo[index])

    def astype(self, dtype: DTypeLike) -> Pair:
        """Widen to `dtype`: float32 words become one exact float64 word and a zero."""
        if self.hi.dtype == np.dtype(dtype):
            return self
        wide = self.hi.astype(dtype) + self.lo.astype(dtype)
        return Pair(wide, jnp.zeros_like(wide))


def on_device(value: np.ndarray | np.generic) -> Any:
    """A NumPy value that a compiled program will read; a device array as far as types go."""
    return value


def split(value: np.ndarray, dtype: DTypeLike) -> Pair:
    """Host side: a float64 NumPy array as a Pair of `dtype` words."""
    exact = np.asarray(value, np.float64)
    hi = exact.astype(dtype)
    return Pair(*map(on_device, (hi, (exact - hi.astype(np.float64)).astype(dtype))))


def difference(a: Pair, b: Pair) -> Array:
    """a - b in one word; exact to the last bit when the high words are close."""
    return (a.hi - b.hi) + (a.lo - b.lo)


def scaled(x: Array, constant: float) -> Array:
    """x * constant with the constant in two words.

    A constant rounded to float32 is wrong by up to 6e-8 for every integral alike: a bias, which
    does not average out over a molecule's energy as rounding noise does.
    """
    c = split(np.asarray(constant), x.dtype)
    return x * c.hi + x * c.lo


def two_sum(a: Array, b: Array) -> Pair:
    """s + e = a + b exactly (Knuth)."""
    s = a + b
    t = s - a
    return Pair(s, (a - (s - t)) + (b - t))


def two_product(a: Array, b: Array) -> Pair:
    """p + e = a * b exactly (Dekker); needs no fused multiply-add."""
    bits = 12 if a.dtype == jnp.float32 else 27
    factor = float(2**bits + 1)

    def halves(x: Array) -> tuple[Array, Array]:
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


def compensated_dot(a: Array, b: Array) -> Pair:
    """Sum of a * b over every element, as if accumulated in twice the precision."""
    return compensated_sum(two_product(a, b))


def to_float64(pair: Pair) -> np.ndarray:
    """Host side: the value of a Pair in float64."""
    return np.asarray(np.asarray(pair.hi, np.float64) + np.asarray(pair.lo, np.float64))


@dataclass(frozen=True)
class Precision:
    """What is computed in which dtype, and when an SCF in that dtype counts as converged.

    `scf_dtype`     integrals, Fock matrices and orbitals of the iterations.
    `energy_dtype`  integrals and energy of the one evaluation at the converged density.
    `commutator`    largest allowed element of the orbital commutator [F, D] in Hartree.
    `rounding_floor` the same, once the commutator has stopped shrinking.
    `energy_change` largest allowed change of the energy between two cycles in Hartree.
    """

    name: str
    scf_dtype: type
    energy_dtype: type
    commutator: float
    rounding_floor: float
    energy_change: float

    @property
    def refines(self) -> bool:
        """Whether the converged density is evaluated again in a wider dtype."""
        return self.energy_dtype != self.scf_dtype

    def scope(self) -> contextlib.AbstractContextManager:
        """The context in which a program of this precision is traced, compiled and run."""
        wants64 = np.float64 in (self.scf_dtype, self.energy_dtype)
        return jax.enable_x64(True) if wants64 else contextlib.nullcontext()


PRECISIONS: dict[str, Precision] = {
    p.name: p
    for p in (
        Precision("float32", np.float32, np.float32, 2e-5, 2e-4, 2e-5),
        Precision("mixed", np.float32, np.float64, 2e-5, 2e-4, 2e-5),
        Precision("float64", np.float64, np.float64, 1e-6, 1e-6, 1e-9),
    )
}

"""The Hermite Coulomb integrals in code that is short, because all of a tile's shares 208 KiB.

A series is a loop over coefficients in memory, and what differs in nothing but lengths is one
subroutine: one for a degree of the Hermite recursion, whatever the order of the integral.
"""

import jax.numpy as jnp
from jax import Array, lax

from pyscf_ipu.numerics.arrays import Lanes
from pyscf_ipu.numerics.boys import Arithmetic
from pyscf_ipu.tiles import subroutine


def clenshaw_loop(coefficients: tuple[float, ...], twice: Lanes) -> tuple[Lanes, Lanes]:
    """Sum like `numerics.boys.clenshaw`, with one turn of a loop for each coefficient."""

    def turn(sums: tuple[Array, Array], c: Array) -> tuple[tuple[Array, Array], None]:
        b1, b2 = sums
        return (twice * b1 + (c - b2), b1), None

    zero = jnp.zeros_like(twice)
    (b1, b2), _ = lax.scan(turn, (zero, zero), jnp.asarray(coefficients, twice.dtype))
    return b1, b2


SHORT = Arithmetic(clenshaw=clenshaw_loop, routine=subroutine)

"""Shapes of arrays, by name.

B batch, A atoms, M atoms of one slot class, N atomic orbitals (AOs), P pairs of AOs, T tiles or
blocks, G grid points of a block or an atom, D an AO and its derivatives, V the density and what
else a functional needs, R rows of a tile plan,
S strips of nb chunks of c primitive pairs, f AO products and h Hermites of a shell pair.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.interpreters import ad
from jaxtyping import Array, Bool, Float, Int

Result = TypeVar("Result")

HostArray = Array | np.ndarray
"""An operand of a primitive, which may be known when tracing."""
Operands = Sequence[HostArray]
Tangents = Sequence[HostArray | ad.Zero]
Axes = Sequence[int | None]
"""The batched axis of each operand, None for none."""

Scalar = Float[Array, ""]
Count = Int[Array, ""]
Flag = Bool[Array, ""]
Floats = Float[Array, "..."]
Lanes = Float[Array, "*lanes"]
"""Of any shape, the same throughout a signature."""
HLanes = Float[Array, "h *lanes"]
FloatA = Float[Array, " A"]
FloatA3 = Float[Array, "A 3"]
FloatN = Float[Array, " N"]
FloatNN = Float[Array, "N N"]
FloatSN = Float[Array, "*spin N"]
FloatSNN = Float[Array, "*spin N N"]
"""Of closed shells, or of alpha and beta electrons, each as closed shells of its orbitals."""
Counts = Int[Array, "*spin"]
FloatP = Float[Array, " P"]
FloatSP = Float[Array, "*spin P"]
FloatRR = Float[Array, "R R"]
FloatG3 = Float[Array, "G 3"]
FloatMG = Float[Array, "M G"]
FloatMG3 = Float[Array, "M G 3"]
FloatDNG = Float[Array, "D N G"]
FloatG = Float[Array, " G"]
FloatDG = Float[Array, "D G"]
FloatVG = Float[Array, "V G"]
FloatKG = Float[Array, "K G"]
FloatTDNG = Float[Array, "T D N G"]
FloatTDG = Float[Array, "T D G"]
FloatTVG = Float[Array, "T V G"]
FloatTG = Float[Array, "T G"]
FloatSnc = Float[Array, "S nb c"]
FloatSnc3 = Float[Array, "S nb c 3"]
FloatSnf = Float[Array, "S nb f"]
FloatSncfh = Float[Array, "S nb c f h"]


def taken(x: HostArray, *places: object) -> Array:
    """x[places], with places that count from the start.

    What would turn negative ones costs three steps more, in a program of a thousand such.
    """
    at = jnp.asarray(x).at[places[0] if len(places) == 1 else places]
    return at.get(mode="promise_in_bounds", wrap_negative_indices=False)


def by_spin(
    function: Callable[..., Result],
    open_shell: bool,
    reduce: Callable[[Result], Result] | None = None,
) -> Callable[..., Result]:
    """A function of closed shells, or the one that treats both spins of an open shell so.

    `reduce` makes one result of both; closed shells pay nothing for it.
    """
    if not open_shell:
        return function
    both = jax.vmap(function)
    return both if reduce is None else lambda *args: reduce(both(*args))


def spin_after_spin(function: Callable[..., Result], open_shell: bool) -> Callable[..., Result]:
    """`by_spin` for what calls LAPACK, whose batches must not be: on a CPU each waits for threads
    of the pool that it runs in, and two of them may wait for one another for ever."""
    if not open_shell:
        return function
    return lambda *args: lax.map(lambda one: function(*one), args)


def mean_of_spins(both: Floats) -> Floats:
    """The density of all electrons from those of both spins, each that of closed shells."""
    return 0.5 * (both[0] + both[1])

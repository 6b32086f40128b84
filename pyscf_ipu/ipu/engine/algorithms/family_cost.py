"""The cost of a family: operations and bytes of its vertex program, estimated before tracing.

For four shells a, b, c, d the three ways to pair them are PAIRINGS; each needs two of the six
PAIRS.  A *piece* of a family takes one of several slices of the primitives of each shell.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from pyscf_ipu.elements.basis import ShellKind
from pyscf_ipu.numerics.hermite import n_hermite

PAIRINGS = (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2)))  # (ab|cd), (ac|bd), (ad|bc)
PAIRS = tuple(pair for pairing in PAIRINGS for pair in pairing)

# Operations of one worker, elementwise ones and multiply-adds; fitted to the numbers in the
# traced vertex programs, which they meet within a quarter.
QUARTET_OPERATIONS = 90.0  # geometry and the Boys function of order 0
ORDER_OPERATIONS = 14.0  # the Boys function, per order more
HERMITE_OPERATIONS = 3.0  # per row of every level of the Hermite recursion
PAIR_OPERATIONS = 120.0  # geometry and prefactor of a primitive pair
PRODUCT_OPERATIONS = 8.0  # per Hermite coefficient of two cartesian components

Slices = tuple[int, int, int, int]
Kinds = tuple[ShellKind, ShellKind, ShellKind, ShellKind]


class SideShape(NamedTuple):
    """Hermite order, AO products and primitive pairs of a shell pair as one side of a quartet."""

    order: int
    products: int
    primitives: int

    @property
    def hermites(self) -> int:
        return n_hermite(self.order)

    @classmethod
    def of(cls, a: ShellKind, b: ShellKind, primitives: int) -> SideShape:
        """The side of two shells with this many primitive pairs."""
        return cls(a.l_max + b.l_max, a.n_functions * b.n_functions, primitives)


def depths(kinds: Kinds, slices: Slices) -> Slices:
    """Primitives of each shell in one piece."""
    a, b, c, d = (k.n_prim // s for k, s in zip(kinds, slices, strict=True))
    return a, b, c, d


def contraction_cost(first: SideShape, second: SideShape) -> int:
    """Multiply-adds of a quartet whose side `first` is contracted first.

    That side is contracted for every primitive quartet, the other for every primitive pair.
    """
    once = first.products * second.hermites
    quartets = first.primitives * second.primitives
    return quartets * once * first.hermites + second.primitives * once * second.products


def pair_cost(a: ShellKind, b: ShellKind) -> float:
    """Operations of one primitive pair: Hermite coefficients, then d functions from cartesian."""
    h = n_hermite(a.l_max + b.l_max)
    cost = PAIR_OPERATIONS + PRODUCT_OPERATIONS * len(a.components) * len(b.components) * h
    if a.n_functions < len(a.components):
        cost += 2 * a.n_functions * len(a.components) * len(b.components) * h
    if b.n_functions < len(b.components):
        cost += 2 * b.n_functions * len(b.components) * a.n_functions * h
    return cost


def oriented(one: SideShape, other: SideShape) -> tuple[SideShape, SideShape]:
    """The two sides of a quartet in the cheaper order of contraction."""
    both = ((one, other), (other, one))
    return min(both, key=lambda sides: (contraction_cost(*sides), sides[0]))


@functools.lru_cache(maxsize=4096)
def piece_cost(kinds: Kinds, slices: Slices) -> float:
    """Operations of one piece of one family: six pairs, three quartets."""
    depth = depths(kinds, slices)
    sides = {(x, y): SideShape.of(kinds[x], kinds[y], depth[x] * depth[y]) for x, y in PAIRS}
    cost = sum(s.primitives * pair_cost(kinds[x], kinds[y]) for (x, y), s in sides.items())
    order = sum(k.l_max for k in kinds)
    recursion = sum(n_hermite(n) for n in range(order + 1))
    each = QUARTET_OPERATIONS + ORDER_OPERATIONS * order + HERMITE_OPERATIONS * recursion
    cost += len(PAIRINGS) * math.prod(depth) * each
    return cost + sum(contraction_cost(*oriented(sides[a], sides[b])) for a, b in PAIRINGS)


def piece_bytes(kinds: Kinds, slices: Slices) -> int:
    """Estimated intermediates in float32: the Hermite integrals, and as a matrix over Hermites."""
    order = sum(k.l_max for k in kinds)
    h = {(x, y): n_hermite(kinds[x].l_max + kinds[y].l_max) for x, y in PAIRS}
    rows = 12 + n_hermite(order) + max(h[bra] * h[ket] for bra, ket in PAIRINGS)
    return 3 * 4 * rows * math.prod(depths(kinds, slices))


def block_bytes(kinds: Kinds) -> int:
    """The three blocks of one family in float32."""
    return 3 * 4 * math.prod(k.n_functions for k in kinds)

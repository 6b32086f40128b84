"""Which AO products the strips of a tile plan hold: from density matrices to strips."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Int

from pyscf_ipu.integrals.supermatrix import packed_indices
from pyscf_ipu.numerics.arrays import Count, HostArray
from pyscf_ipu.numerics.hermite import hermite_powers
from pyscf_ipu.shapes.tile_plan import Strips, TilePlan


class PairRows(NamedTuple):
    """The AO products of one class: S strips of nb chunks, f products; all arrays [S, nb, f]."""

    i: HostArray  # first AO of a product
    j: HostArray  # second AO
    weight: HostArray
    """How often a symmetric matrix has it: 2, 1 on the diagonal, 0 for a place that is empty or
    repeats a product."""

    def at(self, strip: Count) -> PairRows:
        """One strip: [nb, f]."""
        return PairRows(*(jnp.asarray(x)[strip] for x in self))


def pair_rows(plan: TilePlan, strips: Strips, dtype: DTypeLike) -> PairRows:
    """The products of one class, chunk by chunk: chunks of a shell pair repeat its products."""
    pair = np.arange(strips.n_strips)[:, None] * strips.pairs_per_strip + strips.segment
    product = np.arange(strips.n_products)
    rows = strips.first_row + pair[..., None] * strips.n_products + product
    i, j, weight = np.moveaxis(row_table(plan)[rows], -1, 0)
    return PairRows(i, j, weight.astype(dtype))


def row_table(plan: TilePlan) -> Int[np.ndarray, "R 3"]:
    """For every row of the plan the two AOs of its product, and the weight."""
    i, j = packed_indices(plan.layout.shape.n_ao)
    table = np.zeros((plan.n_rows, 3), np.int32)
    table[plan.row_of[i, j]] = np.stack([i, j, 2 - (i == j)], 1)
    return table


def hermite_pattern(plan: TilePlan, strips: Strips) -> Int[np.ndarray, "f h"]:
    """Which E of a class can be other than zero in any geometry: 0 or 1.

    In one geometry more are zero, in a plane for instance, but their derivatives are not.
    """
    groups = plan.layout.groups
    powers = np.array(hermite_powers(strips.pair_class.order))
    out = np.zeros((strips.n_products, len(powers)), np.int32)
    for member in strips.pair_class.members:
        kinds = groups[member.a].kind, groups[member.b].kind
        a, b = (np.array(kind.components) for kind in kinds)
        inside = (powers <= (a[:, None] + b[None])[:, :, None]).all(-1)
        ta, tb = (kind.transform() != 0 for kind in kinds)
        pattern = np.einsum("fa,gb,abh->fgh", ta, tb, inside).reshape(-1, len(powers))
        out[: len(pattern)] |= pattern
    return out

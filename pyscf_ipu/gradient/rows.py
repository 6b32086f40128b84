"""Which AO products stand in the strips of a tile plan: from density matrices to strips."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from pyscf_ipu.jk import packed_indices
from pyscf_ipu.tiles import Strips, TilePlan


class PairRows(NamedTuple):
    """The AO products of one class: S strips of nb chunks, f products; all arrays [S, nb, f].

    i, j    the two AOs of a product.
    weight  how often it stands in a symmetric matrix: 2, 1 on the diagonal, 0 for a place that
            is empty or repeats a product.
    """

    i: np.ndarray | Array
    j: np.ndarray | Array
    weight: np.ndarray | Array

    def at(self, strip: Array) -> PairRows:
        """One strip: [nb, f]."""
        return PairRows(*(jnp.asarray(x)[strip] for x in self))


def pair_rows(plan: TilePlan, strips: Strips) -> PairRows:
    """The products of one class, chunk by chunk: chunks of a shell pair repeat its products."""
    i, j = packed_indices(plan.layout.shape.n_ao)
    table = np.zeros((3, plan.n_rows), np.int32)
    table[:, plan.row_of[i, j]] = i, j, 2 - (i == j)
    pair = np.arange(strips.n_strips)[:, None] * strips.pairs_per_strip + strips.segment
    product = np.arange(strips.n_products)
    return PairRows(*table[:, strips.first_row + pair[..., None] * strips.n_products + product])

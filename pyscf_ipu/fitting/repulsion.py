"""Coulomb and exchange matrices from a fit, as matrix products.

The Coulomb field of the reference, the free atoms, is known in two words; of a density only the
difference to it goes through the rounded B.  So the error of J, which would be the largest of a
float32 energy, shrinks with that difference.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from pyscf_ipu.fitting.columns import BLOCK, Columns, columns_of_change, columns_of_density
from pyscf_ipu.fitting.operators import Exchange, FloatNNF, Operators
from pyscf_ipu.integrals.supermatrix import pack_density, packed_indices, unpack
from pyscf_ipu.numerics.arrays import Count, FloatNN, FloatP
from pyscf_ipu.numerics.two_words import Pair, add
from pyscf_ipu.tiles import tile_dot


class Fitted(NamedTuple):
    """The reference density [N, N] and the operators."""

    reference: FloatNN
    operators: Operators

    def repulsion(self, d: FloatP) -> tuple[FloatP, Pair]:
        """The two-electron matrix and its energy, from a packed density; see `Repulsion`."""
        known = self.operators
        change = d - pack_density(self.reference)
        matrix, energy = _coulomb(known.coulomb, change, self.n)
        of_reference = add(known.energy, tile_dot(change, known.field))
        total = known.field.hi + (known.field.lo + matrix)
        energy = add(of_reference, energy)
        if not known.exchange:
            return total, energy
        columns = columns_of_density(self.unpacked(d))
        exchange = _exchange_sum(known.exchange, columns)
        return total + exchange, add(energy, tile_dot(0.5 * d, exchange))

    def repulsion_of_change(self, d: FloatP) -> tuple[FloatP, Pair]:
        """The same of a change of the density alone."""
        matrix, energy = _coulomb(self.operators.coulomb, d, self.n)
        if not self.operators.exchange:
            return matrix, energy
        columns = columns_of_change(self.unpacked(d))
        exchange = _exchange_sum(self.operators.exchange, columns)
        return matrix + exchange, add(energy, tile_dot(0.5 * d, exchange))

    @property
    def n(self) -> int:
        return self.reference.shape[0]

    def unpacked(self, d: FloatP) -> FloatNN:
        """The density matrix of `pack_density`."""
        return _unpacked(d, self.n)


def _unpacked(d: FloatP, n: int) -> FloatNN:
    full = unpack(d, n)
    return 0.5 * (full + jnp.diag(jnp.diagonal(full)))


def _coulomb(b: FloatNNF, d: FloatP, n: int) -> tuple[FloatP, Pair]:
    """J and its energy, of a packed density."""
    # Row by row, then over rows: one sum over all pairs would lose digits.
    rows = jnp.einsum("mn,mnf->mf", _unpacked(d, n), b, precision="highest")
    charge = rows.sum(0)
    matrix = jnp.matmul(b.reshape(n * n, -1), charge, precision="highest")
    i, j = packed_indices(n)
    return matrix.reshape(n, n)[i, j], tile_dot(0.5 * charge, charge)


def _exchange_sum(parts: tuple[Exchange, ...], columns: Columns) -> FloatP:
    """-1/2 K of all parts, over AO pairs."""
    n = columns.vectors.shape[0]
    total = jnp.zeros((n, n), columns.vectors.dtype)
    for part in parts:
        total = total - 0.5 * part.fraction * exchange(part.b, columns)
    i, j = packed_indices(n)
    return total[i, j]


def exchange(b: FloatNNF, columns: Columns) -> FloatNN:
    """K = sum_P B_P D B_P from the columns of D, BLOCK at a time."""
    n = b.shape[0]

    def block(i: Count, total: FloatNN) -> FloatNN:
        start = i * BLOCK
        vectors = lax.dynamic_slice_in_dim(columns.vectors, start, BLOCK, 1)
        signs = lax.dynamic_slice_in_dim(columns.signs, start, BLOCK)
        left = jnp.broadcast_to(vectors.T[None], (n, BLOCK, n))
        half = jnp.matmul(left, b, precision="highest")  # [N, BLOCK, F]
        signed = (half * signs[:, None]).reshape(n, -1)
        return total + jnp.matmul(signed, half.reshape(n, -1).T, precision="highest")

    blocks = (columns.count + BLOCK - 1) // BLOCK
    return lax.fori_loop(0, blocks, block, jnp.zeros((n, n), b.dtype))

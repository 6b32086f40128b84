"""The linear algebra of the SCF's matrices, which a kind of machine may do in its own way."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from pyscf_ipu.numerics.arrays import FloatN, FloatNN, Scalar
from pyscf_ipu.numerics.products import Products, one_by_one

Eigh = Callable[[FloatNN, FloatNN, Scalar], tuple[FloatN, FloatNN]]
"""(symmetric matrix, eigenvectors of a similar one, how large an off-diagonal element may stay;
rounding at the least) -> eigenvalues, ascending, and eigenvectors."""


def library_eigh(matrix: FloatNN, start: FloatNN, accuracy: Scalar) -> tuple[FloatN, FloatNN]:
    """LAPACK's, or the accelerator's; they have no use for a start, and are always accurate."""
    del start, accuracy
    values, vectors = jnp.linalg.eigh(matrix)
    return values, vectors


class Algebra(NamedTuple):
    """The algebra of the SCF's matrices."""

    eigh: Eigh = library_eigh
    products: Products = one_by_one


LIBRARY = Algebra()

"""An exchange-correlation matrix of which most cycles compute what touches occupied orbitals only.

The commutator [F, D] and the end of an SCF depend on V C, the matrix times the occupied orbitals:
few columns, where a large basis set has many.  The rest, between empty orbitals, only decides how
fast the SCF converges and, at the end, their levels; it may come from a density nearby.  With
C^T S C = 1 and R = V C - V' C,

    V' + R (S C)^T + (S C) R^T - (S C) (C^T R) (S C)^T

is symmetric, makes V C of C, and is V' between empty orbitals: as exact exchange is made from its
occupied part (S. F. Manzer, P. R. Horn, N. Mardirossian, M. Head-Gordon, J. Chem. Phys. 143, 024113
(2015), doi:10.1063/1.4923369).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import DTypeLike

from pyscf_ipu.codelets import codelet
from pyscf_ipu.grid.ao_blocks import AoBlocks
from pyscf_ipu.grid.xc_matrix import GridProducts, that_count
from pyscf_ipu.numerics.arrays import Count, FloatDNG, FloatNN, FloatTVG, FloatVG
from pyscf_ipu.numerics.columns import Columns
from pyscf_ipu.numerics.products import product
from pyscf_ipu.scf.staged import Nearby


class Touched(NamedTuple):
    """Products that compute V L in place of V where that is wanted, and V of it."""

    products: GridProducts
    columns: Columns
    """L, with D = L L^T = 2 C C^T."""
    nearby: Nearby

    def completed(self, total: FloatNN, overlap: FloatNN) -> FloatNN:
        """V from the sum of what the products gave, with the overlap S."""
        n, dtype = total.shape[0], total.dtype
        L = self.columns.counted()[:, :n].astype(dtype)
        R, SL = total - product(self.nearby.matrix, L), product(overlap, L)
        half = product(0.5 * R - 0.125 * product(SL, product(L.T, R)), SL.T)
        return jnp.where(self.nearby.used, self.nearby.matrix + (half + half.T), total)


def touching(products: GridProducts, density: FloatNN, dtype: DTypeLike, nearby: Nearby) -> Touched:
    """The products for a density, on a grid of a dtype, with a matrix nearby."""
    columns: Columns = products.prepared(density, dtype, False)

    def prepared(matrix: FloatNN, dtype: DTypeLike, change: bool) -> Columns:
        del matrix, dtype, change
        return columns

    def matrix(ao: AoBlocks, factors: FloatTVG, dtype: DTypeLike) -> FloatNN:
        return lax.cond(
            nearby.used,
            lambda: projection(ao, factors, columns).astype(dtype),
            lambda: products.matrix(ao, factors, dtype),
        )

    return Touched(GridProducts(prepared, products.moments, matrix), columns, nearby)


def projection(ao: AoBlocks, factors: FloatTVG, columns: Columns) -> FloatNN:
    """V L in the first columns of a matrix of zeros, in float64."""
    n = ao.values.shape[2]

    def portable(values: Array, *operands: Array) -> tuple[FloatNN]:
        aos, live, factors, *of = operands
        few = Columns(*of).counted()[:, :n]

        def block(values: FloatDNG, aos: Array, live: Count, factors: FloatVG) -> FloatNN:
            part = projection_vertex(that_count(values, live), few[aos], factors)
            return jnp.zeros((n, n), part.dtype).at[aos].set(part)

        return (jax.vmap(block)(values, aos, live, factors).sum(0).astype(jnp.float64),)

    operands = (ao.values, *ao.listed(), factors, *columns)
    shape = (jax.ShapeDtypeStruct((n, n), jnp.float64),)
    return codelet("xc_projection", portable, *operands, shape=shape)[0]


def projection_vertex(ao: FloatDNG, columns: FloatNN, factors: FloatVG) -> FloatNN:
    """One block's part of V L, from the factors of `GridProducts.matrix`."""
    planes = ao.shape[0]
    psi = jnp.einsum("no,dng->dog", columns, ao, precision="highest")
    first = factors[0] * psi[0] + jnp.einsum(
        "dg,dog->og", factors[:planes], psi, precision="highest"
    )
    others = factors[1:planes, None] * psi[0]
    if factors.shape[0] > planes:
        others = others + 2.0 * factors[planes] * psi[1:]
    return jnp.einsum(
        "dng,dog->no", ao, jnp.concatenate([first[None], others]), precision="highest"
    )

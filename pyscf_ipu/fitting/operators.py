"""What a fit consists of: B over an orthonormal auxiliary basis, and the field of a reference.

(ab|cd) is approximated by sum_P B_ab,P B_cd,P with B = (ab|P) L^-T and L L^T = (P|Q): the fit of
each charge distribution whose error has the least Coulomb energy (B. I. Dunlap, J. W. D. Connolly,
J. R. Sabin, J. Chem. Phys. 71, 3396 (1979), doi:10.1063/1.438728).

The metric's condition number is around 1e9.  So integrals, factor and solution are in float64, in
every precision, and only B is rounded.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import DTypeLike
from jaxtyping import Float

from pyscf_ipu.fitting.three_index import Auxiliary, FloatRF, metric, three_index
from pyscf_ipu.integrals.strips import StripData
from pyscf_ipu.integrals.supermatrix import pack_density, packed_indices
from pyscf_ipu.numerics.arrays import FloatNN
from pyscf_ipu.numerics.interaction import COULOMB, Interaction
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes.tile_plan import TilePlan

LEAST_EIGENVALUE = 1e-7
"""Where the metric has no Cholesky factor, its eigenvectors up to this are left out: PySCF's
`df.incore.LINEAR_DEP_THR`.  This happens for the long range of 1/r alone."""

FloatNNF = Float[Array, "N N F"]


class Exchange(NamedTuple):
    """One part of exact exchange."""

    b: FloatNNF
    fraction: float


class Operators(NamedTuple):
    """The fitted electron repulsion of one molecule."""

    coulomb: FloatNNF
    exchange: tuple[Exchange, ...]
    field: Pair
    """[P] Hartree: the Coulomb matrix of the reference density, over AO pairs."""
    energy: Pair
    """Its Coulomb energy."""


def operators(
    plan: TilePlan,
    strips: tuple[StripData, ...],
    auxiliary: Auxiliary,
    exchange: Interaction,
    reference: FloatNN,
) -> Operators:
    """All that depends on the geometry.

    Args:
        plan: of the AO products.
        strips: their data, in float64.
        auxiliary: functions, in float64.
        exchange: the interaction of exact exchange, fractions included.
        reference: a density; its dtype is that of the result.
    """
    dtype = reference.dtype
    coulomb = orthonormalised(plan, strips, auxiliary, COULOMB)
    b = _square(plan, coulomb, dtype)
    parts = []
    for fraction, of in exchange_parts(exchange):
        if of == COULOMB:
            parts.append(Exchange(b, fraction))
        else:
            other = orthonormalised(plan, strips, auxiliary, of)
            parts.append(Exchange(_square(plan, other, dtype), fraction))
    i, j = packed_indices(plan.layout.shape.n_ao)
    weights = density_rows(plan, reference.astype(coulomb.dtype))
    charge = jnp.matmul(weights, coulomb, precision="highest")
    field = jnp.matmul(coulomb, charge, precision="highest")[plan.row_of[i, j]]
    energy = 0.5 * jnp.sum(charge * charge)
    return Operators(b, tuple(parts), _two_words(field, dtype), _two_words(energy, dtype))


def density_rows(plan: TilePlan, density: FloatNN) -> Float[Array, " R"]:
    """A density over the rows of a plan, as `pack_density` has it over AO pairs."""
    i, j = packed_indices(plan.layout.shape.n_ao)
    empty = jnp.zeros(plan.n_rows, density.dtype)
    return empty.at[plan.row_of[i, j]].set(pack_density(density))


def exchange_parts(exchange: Interaction) -> list[tuple[float, Interaction]]:
    """The fractions of exact exchange and what each is the exchange of, as PySCF fits them.

    The short range is fitted by itself where there is no other; else 1/r and its long range are.
    """
    full, long_range, omega = exchange
    if long_range and full + long_range == 0.0:
        return [(full, Interaction(1.0, -1.0, omega))]
    parts = [(full, COULOMB), (long_range, Interaction(0.0, 1.0, omega))]
    return [(fraction, of) for fraction, of in parts if fraction]


def orthonormalised(
    plan: TilePlan, strips: tuple[StripData, ...], auxiliary: Auxiliary, of: Interaction
) -> FloatRF:
    """B over the rows of the plan."""
    integrals = three_index(plan, strips, auxiliary, of)
    return Root(metric(auxiliary, of)).applied(integrals)


class Root:
    """W with W W^T = (P|Q)^-1, as something to multiply with: the inverse is never made."""

    def __init__(self, matrix: Float[Array, "F F"]) -> None:
        self._matrix = matrix
        self._factor = jnp.linalg.cholesky(matrix)
        self._has_factor = jnp.all(jnp.isfinite(self._factor))

    def applied(self, rows: FloatRF, transposed: bool = False) -> FloatRF:
        """Rows times W, or W^T."""

        def by_factor(rows: FloatRF) -> FloatRF:
            return lax.linalg.triangular_solve(
                self._factor, rows, left_side=False, lower=True, transpose_a=not transposed
            )

        def by_eigenvectors(rows: FloatRF) -> FloatRF:
            values, vectors = jnp.linalg.eigh(self._matrix)
            kept = values > LEAST_EIGENVALUE
            scale = jnp.where(kept, 1.0 / jnp.sqrt(jnp.where(kept, values, 1.0)), 0.0)
            root = vectors * scale
            right = root.T if transposed else root
            return jnp.matmul(rows, right, precision="highest")

        return lax.cond(self._has_factor, by_factor, by_eigenvectors, rows)


def _square(plan: TilePlan, rows: FloatRF, dtype: DTypeLike) -> FloatNNF:
    """B of all pairs of AOs."""
    return rows.astype(dtype)[plan.row_of]


def _two_words(x: Array, dtype: DTypeLike) -> Pair:
    high = x.astype(dtype)
    return Pair(high, (x - high.astype(x.dtype)).astype(dtype))

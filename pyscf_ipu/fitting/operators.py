"""What a fit consists of: B over an orthonormal auxiliary basis, and the field of a reference.

(ab|cd) is approximated by sum_P B_ab,P B_cd,P with B = (ab|P) L^-T and L L^T = (P|Q): the fit of
each charge distribution whose error has the least Coulomb energy (B. I. Dunlap, J. W. D. Connolly,
J. R. Sabin, J. Chem. Phys. 71, 3396 (1979), doi:10.1063/1.438728).

The metric's condition number is around 1e9.  So integrals, factor and solution are in float64, in
every precision, and only B is rounded.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import DTypeLike
from jaxtyping import Float, Int

from pyscf_ipu.codelets import codelet
from pyscf_ipu.fitting.neighbours import IntN, pair_rows
from pyscf_ipu.fitting.three_index import Auxiliary, FloatRF, metric, three_index
from pyscf_ipu.integrals.strips import StripData
from pyscf_ipu.integrals.supermatrix import pack_density, packed_indices
from pyscf_ipu.numerics.arrays import Count, FloatNN, HostArray
from pyscf_ipu.numerics.interaction import COULOMB, Interaction
from pyscf_ipu.numerics.products import after
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes.tile_plan import TilePlan

LEAST_EIGENVALUE = 1e-7
"""Where the metric has no Cholesky factor, its eigenvectors up to this are left out: PySCF's
`df.incore.LINEAR_DEP_THR`.  This happens for the long range of 1/r alone."""

PANEL, FUNCTIONS = 2048, 64
"""AO pairs and eigenvectors of the metric that are multiplied at a time."""

FloatFP = Float[Array, "F P"]
"""Auxiliary functions, AO pairs."""


class FittedProducts(NamedTuple):
    """B of one interaction, over AO pairs in the order of `Operators`."""

    b: FloatFP
    """Rows from the `rank`-th on are zero."""
    present: Int[Array, " P"]
    """1 for AO pairs that have any, 0 for those far apart."""
    rank: Count


class Exchange(NamedTuple):
    """One part of exact exchange."""

    products: FittedProducts | None
    """None: those of the Coulomb matrix."""
    fraction: float


class Operators(NamedTuple):
    """The fitted electron repulsion of one molecule."""

    coulomb: FittedProducts
    exchange: tuple[Exchange, ...]
    order: IntN | None
    """The AOs as B has them; None: as the slots have them."""
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
    order: IntN | None = None,
) -> Operators:
    """All that depends on the geometry.

    Args:
        plan: of the AO products.
        strips: their data, in float64.
        auxiliary: functions, in float64.
        exchange: the interaction of exact exchange, fractions included.
        reference: a density; its dtype is that of the result.
        order: of the AOs in B; None: that of the slots.
    """
    dtype = reference.dtype
    pairs = pair_rows(plan, order)

    def solved(of: Interaction, auxiliary: Auxiliary) -> tuple[FloatRF, "Root", FittedProducts]:
        integrals = three_index(plan, strips, auxiliary, of=of)
        root = Root(metric(auxiliary, of))
        return integrals, root, root.over_pairs(integrals, pairs, dtype)

    integrals, root, b = solved(COULOMB, auxiliary)
    # The field of the reference by the integrals themselves, in float64.
    weights = density_rows(plan, reference.astype(integrals.dtype))
    charge = root.applied(jnp.matmul(weights, integrals, precision="highest")[None])
    fit = root.applied(charge, transposed=True)[0]
    field = jnp.matmul(integrals, fit, precision="highest")[pair_rows(plan, None)]
    energy = 0.5 * jnp.sum(charge * charge)
    auxiliary = auxiliary._replace(sides=after((b, field), auxiliary.sides))
    parts = [
        Exchange(None if of == COULOMB else solved(of, auxiliary)[2], fraction)
        for fraction, of in exchange_parts(exchange)
    ]
    return Operators(
        b, tuple(parts), order, field=_two_words(field, dtype), energy=_two_words(energy, dtype)
    )


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


class Root:
    """W with W W^T = (P|Q)^-1, as something to multiply with: L^-T is never made."""

    def __init__(self, matrix: Float[Array, "F F"]) -> None:
        factor = jnp.linalg.cholesky(matrix)
        self._has_factor = jnp.all(jnp.isfinite(factor))

        def by_factor() -> tuple[Array, Count]:
            return factor, jnp.full((), len(matrix), jnp.int32)

        def by_eigenvectors() -> tuple[Array, Count]:
            """The largest eigenvalue first, so that what is left out comes last; a NaN is kept."""
            values, vectors = (x[..., ::-1] for x in jnp.linalg.eigh(matrix))
            kept = ~(values <= LEAST_EIGENVALUE)
            w = vectors * jnp.where(kept, 1.0 / jnp.sqrt(jnp.where(kept, values, 1.0)), 0.0)
            return w, jnp.sum(kept, dtype=jnp.int32)

        self._root, self._rank = lax.cond(self._has_factor, by_factor, by_eigenvectors)

    def applied(self, rows: FloatRF, transposed: bool = False) -> FloatRF:
        """Rows times W, or W^T."""

        def by_factor(rows: FloatRF) -> FloatRF:
            return lax.linalg.triangular_solve(
                self._root, rows, left_side=False, lower=True, transpose_a=not transposed
            )

        def by_eigenvectors(rows: FloatRF) -> FloatRF:
            right = self._root.T if transposed else self._root
            return jnp.matmul(rows, right, precision="highest")

        return lax.cond(self._has_factor, by_factor, by_eigenvectors, rows)

    def over_pairs(
        self, rows: FloatRF, pairs: Int[HostArray, " P"], dtype: DTypeLike
    ) -> FittedProducts:
        """These rows times W, transposed and rounded: B.

        Args:
            rows: integrals.
            pairs: the row of every AO pair.
            dtype: of the result.
        """

        def by_factor(rows: FloatRF) -> FittedProducts:
            return solution(self._root, rows, pairs, dtype=dtype)

        def by_eigenvectors(rows: FloatRF) -> FittedProducts:
            wide, high = min(PANEL, len(pairs)), min(FUNCTIONS, len(self._root))

            def panel(k: Count, b: FloatFP) -> FloatFP:
                """The last one overlaps the one before, as the last functions do."""
                first = jnp.minimum(k * wide, len(pairs) - wide)
                some = rows[lax.dynamic_slice(jnp.asarray(pairs), (first,), (wide,))].T

                def functions(m: Count, b: FloatFP) -> FloatFP:
                    row = jnp.minimum(m * high, len(self._root) - high).astype(first.dtype)
                    w = lax.dynamic_slice_in_dim(self._root, row, high, 1)
                    new = jnp.matmul(w.T, some, precision="highest").astype(dtype)
                    return lax.dynamic_update_slice(b, new, (row, first))

                blocks = (self._rank + high - 1) // high
                return lax.fori_loop(0, blocks, functions, b)

            empty = jnp.zeros((rows.shape[1], len(pairs)), dtype)
            b = lax.fori_loop(0, -(-len(pairs) // wide), panel, empty)
            return FittedProducts(b, _present(b), self._rank)

        return lax.cond(self._has_factor, by_factor, by_eigenvectors, rows)


def solution(
    factor: Float[Array, "F F"], rows: FloatRF, pairs: Int[HostArray, " P"], dtype: DTypeLike
) -> FittedProducts:
    """L^-1 times the transposed rows of all AO pairs, in float64, then rounded; see `Root`."""

    def portable(rows: FloatRF, factor: Float[Array, "F F"], pairs: Array) -> tuple[Array, Array]:
        right = rows[pairs].T
        b = lax.linalg.triangular_solve(factor, right, left_side=True, lower=True).astype(dtype)
        return b, _present(b)

    n, f = len(pairs), rows.shape[1]
    shape = jax.ShapeDtypeStruct((f, n), dtype), jax.ShapeDtypeStruct((n,), jnp.int32)
    made = codelet("fitting_solution", portable, rows, factor, pairs, shape=shape)
    return FittedProducts(*made, jnp.full((), f, jnp.int32))


def _present(b: FloatFP) -> Int[Array, " P"]:
    return jnp.any(b != 0, axis=0).astype(jnp.int32)


def _two_words(x: Array, dtype: DTypeLike) -> Pair:
    high = x.astype(dtype)
    return Pair(high, (x - high.astype(x.dtype)).astype(dtype))

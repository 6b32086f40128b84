"""The supermatrix: Coulomb and exchange of one molecule as a single matrix.

G[ij,kl] = (ij|kl) - x/4 [(ik|jl) + (il|jk)] with the fraction x of exact exchange, over AO pairs
i >= j, k >= l.  Where exchange has another interaction than 1/r, so have its two integrals.  The
two-electron Fock matrix is then one matrix-vector product per SCF cycle, F = G d, with d the packed
density whose off-diagonal elements count twice
(C. C. J. Roothaan, Rev. Mod. Phys. 23, 69 (1951), doi:10.1103/RevModPhys.23.69).

G is symmetric and memory is what the product costs, so it is kept as its half L, L + L^T = G: the
lower triangle, the diagonal halved, packed by rows.  A CPU's codelet adds every integral to the
three elements of L in which it stands, so that the integrals themselves are never stored; the
portable form gathers L from the matrix M of all of them.  The AO pairs of L have an order of their
own, in which a shell quartet's elements are neighbours (`pair_order`).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int

from pyscf_ipu.codelets import codelet
from pyscf_ipu.integrals.electron_repulsion import eri_side, with_segments
from pyscf_ipu.integrals.eri_matrix import eri_matrices, portable_eri_matrix, work_list
from pyscf_ipu.integrals.strips import StripData
from pyscf_ipu.numerics.arrays import Count, FloatNN, FloatP, FloatRR
from pyscf_ipu.numerics.interaction import COULOMB, Interaction
from pyscf_ipu.numerics.two_words import Pair, compensated_dot
from pyscf_ipu.shapes.tile_plan import TilePlan

Half = Float[Array, " half"]
"""L, [P (P + 1) / 2]: its first row of one element, its second row of two, and so on."""

Halves = Float[Array, "2 half"]
"""L of Coulomb repulsion, and L of exchange."""

MOST_AOS = 361
"""AOs of the largest L whose elements int32 can count, as index arithmetic in float32 does."""

BLOCK_ROWS = 8
"""Rows of L whose products are added up at once: so few that this is accurate in float32.  With 64
rows nine heavy atoms were 0.26 meV too low, with 8 they are 0.02."""


def packed_indices(n: int) -> tuple[Int[np.ndarray, " P"], Int[np.ndarray, " P"]]:
    """(i, j) of every AO pair i >= j, row by row."""
    i, j = np.tril_indices(n)
    # int32 whatever the x64 mode: index arrays of two widths must not meet in one trace.
    return i.astype(np.int32), j.astype(np.int32)


def pack_density(density: FloatNN) -> FloatP:
    """Over AO pairs, off-diagonal elements doubled."""
    i, j = packed_indices(density.shape[0])
    return density[i, j] * jnp.asarray(np.where(i == j, 1.0, 2.0), density.dtype)


def unpack(packed: FloatP, n: int) -> FloatNN:
    """The symmetric matrix."""
    i, j = np.indices((n, n), np.int32)
    high, low = np.maximum(i, j), np.minimum(i, j)
    return packed[high * (high + 1) // 2 + low]


def pair_order(plan: TilePlan) -> Int[np.ndarray, " P"]:
    """The AO pairs, as numbers of `packed_indices`, in the order of G's rows.

    Products of the same two shells stand side by side.  Pairs with many products come first: as
    columns of the triangle they make long pieces of a row.
    """
    rows = plan.row_of[packed_indices(plan.layout.shape.n_ao)]
    of_class = np.searchsorted([s.first_row for s in plan.strips], rows, side="right") - 1
    products = np.array([s.n_products for s in plan.strips])[of_class]
    return np.lexsort((rows, -products)).astype(np.int32)


def pair_places(plan: TilePlan) -> Int[np.ndarray, "N N"]:
    """The row of G of every two AOs."""
    n = plan.layout.shape.n_ao
    places = np.empty((n, n), np.int32)
    order = pair_order(plan)
    i, j = (x[order] for x in packed_indices(n))
    places[i, j] = places[j, i] = np.arange(len(i))
    return places


def supermatrix(
    plan: TilePlan, strips: tuple[StripData, ...], exchange: Interaction, apart: bool = False
) -> Half | Halves:
    """L of a molecule, over AO pairs in the order of `pair_order`.

    Args:
        plan: of the shell pairs.
        strips: their data.
        exchange: what electrons interact by in exact exchange; zero without it.
        apart: give L of Coulomb repulsion and L of exchange, from the same integrals.
    """
    sides = [eri_side(d) for d in strips]
    classes = with_segments(sides, [s.segment for s in plan.strips])

    def portable(*operands: Array) -> Half | Halves:
        matrices = eri_matrices(portable_eri_matrix, plan, operands[:-2], exchange=exchange)
        if not apart:
            return half_of(plan, matrices)
        (of_coulomb, of_exchange, fraction), none = matrices, jnp.zeros_like(matrices[0])
        of_both = (of_coulomb, none, 0.0), (none, of_exchange, fraction)
        return jnp.stack([half_of(plan, one) for one in of_both])

    if exchange.long_range:
        passes = [(*COULOMB, 1.0, 0.0), (*exchange, 0.0, 1.0)]
    else:
        passes = [(*COULOMB, 1.0, exchange.full)]
    n_pairs = plan.layout.shape.n_pairs
    work = work_list(plan, sides[0].p.dtype) | {"passes": np.array(passes).ravel()}
    shape = (*(2,) * apart, n_pairs * (n_pairs + 1) // 2)
    tables = plan.aos, pair_places(plan)
    return codelet("supermatrix", portable, *classes, *tables, shape=shape, **work)


def half_of(plan: TilePlan, matrices: tuple[FloatRR, FloatRR, float]) -> Half:
    """L from both matrices M of all integrals, which may be one; see `supermatrix_vertex`."""
    coulomb, exchange, fraction = matrices
    full = supermatrix_vertex(plan, coulomb, exchange, fraction=fraction)
    return packed_rows(full - jnp.diag(0.5 * jnp.diagonal(full)), pair_order(plan))


def packed_rows(matrix: Float[Array, "P P"], order: Int[np.ndarray, " P"]) -> Half:
    """The lower triangle, row after row, of a matrix with its rows and columns in this order."""
    n = matrix.shape[0]
    size = n * (n + 1) // 2
    numbers = jnp.asarray(order)

    def put(row: Count, out: Array) -> Array:
        # What lies behind the diagonal is overwritten by the next row.
        elements = matrix[numbers[row]][numbers]
        return lax.dynamic_update_slice(out, elements, (elements_before(row),))

    return lax.fori_loop(0, n, put, jnp.zeros(size + n, matrix.dtype))[:size]


def elements_before(row: Int[Array, "..."]) -> Int[Array, "..."]:
    """Elements of L before a row; no number on the way is larger."""
    return (row + 1) // 2 * (row | 1)


def rows_of(half: Half, n: int) -> Float[Array, "P P"]:
    """L as a matrix, zero above the diagonal."""
    padded = jnp.pad(half, (0, n))
    rows = jnp.arange(n, dtype=jnp.int32)
    slices = jax.vmap(lambda row: lax.dynamic_slice(padded, (elements_before(row),), (n,)))(rows)
    return jnp.where(rows <= rows[:, None], slices, 0.0)


def supermatrix_vertex(
    plan: TilePlan, coulomb: FloatRR, exchange: FloatRR, fraction: float
) -> Float[Array, "P P"]:
    """G from both M, one slab of rows after the other.

    Args:
        plan: of the rows of both matrices.
        coulomb: M of all ERIs.
        exchange: M of the exchange integrals; may be the same.
        fraction: x.
    """
    n = plan.layout.shape.n_ao
    row_of = plan.row_of
    i, j = packed_indices(n)
    coulomb_rows = row_of[i, j]
    if fraction == 0.0:
        return coulomb[coulomb_rows][:, coulomb_rows]
    k, l = i, j
    width = plan.n_rows
    # For fixed i the exchange integrals (ik|jl) lie in N rows of M: one slab, then flat look-ups.
    first = jnp.asarray(k[None, :] * width + row_of[:, l], np.int32)  # [j, kl] -> (ik|jl)
    second = jnp.asarray(l[None, :] * width + row_of[:, k], np.int32)  # [j, kl] -> (il|jk)
    rows = jnp.asarray(row_of)
    columns = jnp.asarray(coulomb_rows)
    scale = -0.25 * fraction

    def slab(i: Count, out: Array) -> Array:
        flat = exchange[rows[i]].ravel()  # [N, R]: (i k| . )
        block = coulomb[rows[i]][:, columns] + scale * (flat[first] + flat[second])  # [j, kl]
        # Rows j > i belong to later slabs, which overwrite them.
        return lax.dynamic_update_slice(out, block, (i * (i + 1) // 2, 0))

    out = jnp.zeros((len(i) + n, len(i)), coulomb.dtype)
    return lax.fori_loop(0, n, slab, out)[: len(i)]


def repulsion(
    half: Half, d: FloatP, order: Int[np.ndarray, " P"] | None = None
) -> tuple[FloatP, Pair]:
    """G d and the energy 1/2 d G d, from `supermatrix` and the packed density.

    The energy is d L^T d, its blocks added in twice the working precision.

    Args:
        half: L.
        d: the density of `pack_density`.
        order: `pair_order` of L's plan; None: d is in L's order already.
    """
    ordered = d if order is None else d[order]
    y, energy = codelet("repulsion", repulsion_vertex, half, ordered, shape=(d.shape, (2,)))
    if order is not None:
        y = y[np.argsort(order).astype(np.int32)]
    return y, Pair(energy[0], energy[1])


def repulsion_vertex(half: Half, d: FloatP) -> tuple[FloatP, Float[Array, "2"]]:
    """The portable form of the codelet "repulsion": G d, and the energy's two words."""
    n = d.shape[0]
    rows = jnp.pad(rows_of(half, n), ((0, -n % BLOCK_ROWS), (0, 0))).reshape(-1, BLOCK_ROWS, n)
    weights = jnp.pad(d, (0, -n % BLOCK_ROWS)).reshape(rows.shape[:2])
    partial = jnp.einsum("brp,br->bp", rows, weights, precision="highest")
    down = jnp.einsum("brp,p->br", rows, d, precision="highest").ravel()[:n]
    energy = compensated_dot(partial, jnp.broadcast_to(d, partial.shape))
    return partial.sum(0) + down, jnp.stack(energy)

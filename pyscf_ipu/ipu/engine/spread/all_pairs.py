"""A symmetric eigensolver whose steps turn all pairs of columns at once, as matrix products.

Jacobi sweeps (`algorithms.jacobi`) turn N/2 pairs at a time on N/2 tiles, so that a sweep has N - 1
rounds one after another, and each is a handful of scalar operations and two syncs.
Here a step takes the angles of all pairs from S = X^T A X, as if each pair were alone, puts them
into one antisymmetric matrix K, and applies exp(K): five products over all tiles, instead of a
sweep.  Near the solution a step squares the error.  Far from it, and among close eigenvalues, the
angles of a column with several others add up to too much: rows of K are shortened.

That columns stay orthonormal is left to the next step, as by T. Ogita, K. Aishima, Japan J. Indust.
Appl. Math. 35, 1007 (2018), doi:10.1007/s13160-018-0310-3: from R = 1 - X^T X it corrects the
elements of S, to first order S + (R L + L R) / 2 with the diagonal L of S, and the columns, X + X R
/ 2.  Their own step has only small angles; with the angles of Jacobi it needs no distinction of
clusters and may start anywhere.  Should it not come to an end, sweeps do the work.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pyscf_ipu.ipu.engine.algorithms.jacobi import jacobi_eigh
from pyscf_ipu.ipu.engine.spread.dealing import dealt
from pyscf_ipu.numerics.arrays import Count, FloatN, FloatNN, Scalar
from pyscf_ipu.numerics.products import product
from pyscf_ipu.tiles import (
    TileShardedArray,
    tile_gather,
    tile_map,
    tile_put_replicated,
    tile_put_sharded,
)
from pyscf_ipu.tiles.array import WORKERS

MAX_STEPS = 60
ROUNDING = 4.0
"""Smallest element that is worth a rotation, in units of eps times the longest row; rounding leaves
elements of about one."""
ORTHONORMAL = 3e-4
"""Largest element of R that the last correction, which squares it, may find."""
ROW = 0.4
"""Bound of the length of a row of K, in radian."""
ROOT = 3.6
"""The same times the root of N, for large N: the norm of K grows with it."""
SMALL = 0.25
"""A pair whose element is below this share of the limit is left alone: where two eigenvalues are
close, it would still turn by a wide angle."""
LANES = 2
"""Elements of a vertex that cost as much as one."""


class _Elements(NamedTuple):
    """The elements of an N x N matrix, row by row, a few to a vertex; the last fills up."""

    tiles: tuple[int, ...]
    """[V] of each vertex."""
    place: np.ndarray
    """[V, e] flat place of the element in the matrix."""
    below: np.ndarray
    """[V, e] the same of the element or its mirror image, whichever is below the diagonal."""
    rows: np.ndarray
    """[V, 2, e] row and column of that one."""
    side: np.ndarray
    """[V, e] 1 above the diagonal, -1 below it, 0 on it."""


class _Measured(NamedTuple):
    columns: FloatNN  # X
    diagonal: FloatN  # of S
    metric: FloatNN  # X^T X
    tangents: TileShardedArray  # of the pairs' angles: [V, e]
    squares: TileShardedArray  # of the tangents
    left: TileShardedArray
    """[V] largest element of S, or of R, over what may stay of it."""


class _State(NamedTuple):
    measured: _Measured
    left: Scalar  # the largest; at first infinite, so that there is a step
    steps: Count


def all_pairs_eigh(
    matrix: FloatNN, start: FloatNN, accuracy: Scalar, tiles: Sequence[int]
) -> tuple[FloatN, FloatNN, Count]:
    """Eigenvalues, ascending, eigenvectors as columns, and steps done.

    Args:
        matrix: symmetric.
        start: orthonormal to rounding; the vectors of a similar matrix, or of the identity.
        accuracy: how large an off-diagonal element of V^T A V may stay, if it were the only one of
            its column; rounding at the least.
        tiles: those that share the elements of K; products take all tiles that there are.
    """
    n, dtype = len(matrix), matrix.dtype
    elements = _elements(n, tuple(tiles))
    # The longest row is no longer than the largest eigenvalue.
    size = jnp.sqrt(jnp.max(jnp.sum(matrix * matrix, axis=1)))
    limit = jnp.maximum(accuracy / n**0.5, ROUNDING * float(jnp.finfo(dtype).eps) * size)
    limit = jnp.maximum(limit, float(jnp.finfo(dtype).tiny))

    def unfinished(state: _State) -> Array:
        return (state.left > 1.0) & (state.steps < MAX_STEPS)

    def step(state: _State) -> _State:
        measured = _measured(elements, matrix, _turned(elements, state.measured), limit=limit)
        return _State(measured, jnp.max(measured.left.array), state.steps + 1)

    measured = _measured(elements, matrix, start, limit=limit)
    first = _State(measured, jnp.full((), jnp.inf, dtype), jnp.zeros((), jnp.int32))
    end = lax.while_loop(unfinished, step, first)
    measured, ends = end.measured, end.left <= 1.0  # false for NaN
    correction = 1.5 * jnp.eye(n, dtype=dtype) - 0.5 * measured.metric
    vectors = product(measured.columns, correction)

    def swept() -> tuple[FloatN, FloatNN]:
        return jacobi_eigh(matrix, start, tolerance=limit)[:2]

    levels = measured.diagonal * (2.0 - _diagonal(measured.metric))
    values, vectors = lax.cond(ends, lambda: (levels, vectors), swept)
    return *_ascending(elements, values, vectors), end.steps


def _elements(n: int, tiles: tuple[int, ...]) -> _Elements:
    each = LANES * -(-n * n // (LANES * WORKERS * len(tiles)))
    count = -(-n * n // each)
    place = np.minimum(np.arange(count * each), n * n - 1).reshape(count, each)
    i, j = np.divmod(place, n)
    high, low = np.maximum(i, j), np.minimum(i, j)
    return _Elements(
        dealt(tiles, count),
        place,
        high * n + low,
        rows=np.stack([high, low], axis=1),
        side=np.sign(j - i),
    )


def _measured(elements: _Elements, matrix: FloatNN, columns: FloatNN, limit: Scalar) -> _Measured:
    """S and X^T X of the columns, and the angles that follow from them."""
    n, dtype = len(matrix), matrix.dtype
    both = jnp.concatenate([product(matrix, columns), columns], axis=1)
    both = product(columns.T, both)
    similar, metric = both[:, :n], both[:, n:]
    diagonal = _diagonal(similar)
    tiles, place, below, rows, side = elements
    tangents, squares, left = tile_map(
        _tangents,
        tile_gather(similar.ravel(), below, tiles),
        tile_gather(metric.ravel(), place, tiles),
        tile_gather(diagonal, rows, tiles),
        tile_put_sharded(jnp.asarray(side, dtype), tiles),
        tile_put_replicated(limit, tiles),
        name="pair_tangents",
        together=True,
    )
    return _Measured(columns, diagonal, metric, tangents=tangents, squares=squares, left=left)


def _tangents(
    element: Array, metric: Array, levels: Array, side: Array, limit: Array
) -> tuple[Array, Array, Array]:
    """Vertex: by how much some pairs of columns should turn.

    From elements [e] of S below the diagonal and of X^T X, the levels [2, e] on the diagonal of S
    for their rows and columns, `_Elements.side` [e], and the element that may stay.

    Returns:
        [e] tangents, antisymmetric; [e] their squares; the largest element of S over the limit, or
        of R over ORTHONORMAL.
    """
    high, low = levels[0], levels[1]
    apart = side * side
    skew = 1.0 - apart - metric
    off = apart * (element + 0.5 * skew * (high + low))
    gap = high - low
    tiny = float(jnp.finfo(element.dtype).tiny)
    # The tangent that Jacobi takes, 2 s / (g + root(g^2 + 4 s^2)), of the sign of the gap.
    twice = 2.0 * off
    square = jnp.maximum(gap * gap + twice * twice, tiny)
    tangent = side * twice / (jnp.abs(gap) + square * lax.rsqrt(square))
    size = jnp.abs(off)
    worth = jnp.where(size > SMALL * limit, tangent, 0.0)
    left = jnp.max(jnp.maximum(size / limit, jnp.abs(skew) * (1.0 / ORTHONORMAL)))
    return jnp.where(gap < 0, -worth, worth), worth * worth, left


def _turned(elements: _Elements, measured: _Measured) -> FloatNN:
    """X (exp(K) + R / 2)."""
    n, dtype = len(measured.columns), measured.columns.dtype
    tiles, place, _, rows, side = elements
    lengths = jnp.sum(_matrix(measured.squares, n), axis=1)
    bound = min(ROW, ROOT / n**0.5) ** 2
    angles = tile_map(
        partial(_shortened, bound),
        measured.tangents,
        tile_gather(lengths, rows, tiles),
        name="pair_angles",
        together=True,
    )
    k = _matrix(angles, n)
    square = product(k, k)
    higher = product(jnp.concatenate([k, square]), square)
    parts = (square, higher[:n], higher[n:], measured.metric)
    rotation = tile_map(
        _exponential,
        angles,
        *(tile_gather(x.ravel(), place, tiles) for x in parts),
        tile_put_sharded(jnp.asarray(side, dtype), tiles),
        name="pair_rotations",
        together=True,
    )
    return product(measured.columns, _matrix(rotation, n))


def _shortened(bound: float, tangents: Array, lengths: Array) -> Array:
    """Vertex: [e] tangents, scaled down if the longer of their two rows is too long.

    `bound` and the lengths [2, e] are squared.
    """
    longer = jnp.maximum(jnp.maximum(lengths[0], lengths[1]), bound)
    return tangents * (bound**0.5 * lax.rsqrt(longer))


def _exponential(
    k: Array, square: Array, cube: Array, fourth: Array, metric: Array, side: Array
) -> Array:
    """Vertex: some elements of exp(K) + R / 2, to the fourth order of K."""
    diagonal = 1.0 - side * side
    even = 0.5 * square + (1.0 / 24.0) * fourth
    return 1.5 * diagonal - 0.5 * metric + even + k + (1.0 / 6.0) * cube


def _matrix(values: TileShardedArray, n: int) -> FloatNN:
    """[N, N] from its elements on tiles; a view."""
    return values.array.ravel()[: n * n].reshape(n, n)


def _diagonal(matrix: FloatNN) -> FloatN:
    """A view."""
    return matrix.ravel()[:: len(matrix) + 1]


def _ascending(elements: _Elements, values: FloatN, vectors: FloatNN) -> tuple[FloatN, FloatNN]:
    """Sorted: each column is moved, by a product, to the number of those before it.

    A sorting network would take a sync for each of its stages.
    """
    n, dtype = len(values), values.dtype
    tiles, place, _, _, side = elements
    before = tile_map(
        _before,
        tile_gather(values, place // n, tiles),
        tile_gather(values, place % n, tiles),
        tile_put_sharded(jnp.asarray(side < 0, dtype), tiles),
        name="pair_order",
        together=True,
    )
    rank = jnp.sum(_matrix(before, n), axis=1)
    to = tile_map(
        _is_there,
        tile_gather(rank, place // n, tiles),
        tile_put_sharded(jnp.asarray(place % n, dtype), tiles),
        name="pair_places",
        together=True,
    )
    moved = product(jnp.concatenate([vectors, values[None]]), _matrix(to, n))
    return moved[n], moved[:n]


def _before(own: Array, other: Array, earlier: Array) -> Array:
    """Vertex: [e] 1 where the other value comes first; of equal ones, where that is earlier."""
    return jnp.where(other == own, earlier, jnp.where(other < own, 1.0, 0.0))


def _is_there(rank: Array, place: Array) -> Array:
    """Vertex: [e] 1 where the rank is that place."""
    return jnp.where(rank == place, 1.0, 0.0)

"""A symmetric eigensolver on tiles: one-sided Jacobi rotations in the vocabulary of `tile_map`.

The columns of G = (b + m w) X - A X become orthogonal by plane rotations of pairs of columns
(M. R. Hestenes, J. SIAM 6, 51 (1958), doi:10.1137/0106005), where X is orthogonal, [a, b] bounds
the eigenvalues (Gershgorin), w = b - a and m is `MARGIN`.  The shift makes G = P X with P positive
definite, so G's left singular vectors, its orthogonal columns of unit length, are the eigenvectors
of A.  P = b + m w - A, not A - a + m w: columns of high eigenvalues are then the short ones, whose
rounding errors are small too, and a Fock matrix has its core levels far below the rest.

The advantage over the two-sided method on a machine that computes, synchronises and exchanges in
turn: a rotation follows from its own two columns, so that none is sent, rows need no permutation,
and there is no second matrix of accumulated rotations.  One round is two compute sets and one
exchange on N/2 tiles; the two-sided solver of TessellateIPU
(tessellate_ipu/linalg/tile_linalg_jacobi.py) has three calls of tile_map and two exchanges on N.

A column of N numbers is cut over the workers of its tile; the first compute set adds up products,
the second reads the sums of all workers and rotates, and only finished columns leave a tile.  All
M (M - 1) / 2 pairs of M columns, M even, meet in M - 1 rounds of the round-robin tournament
(R. P. Brent, F. T. Luk, SIAM J. Sci. Stat. Comput. 6, 69 (1985), doi:10.1137/0906007); the move
from round to round is one fixed permutation.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pyscf_ipu.tiles import TileShardedArray, tile_gather, tile_map, tile_put_sharded
from pyscf_ipu.tiles.array import WORKERS

MAX_SWEEPS = 15
MARGIN = 0.25
"""Length of the shortest possible column over the width of the spectrum."""
NOISE = 2.0
"""Cosine between columns, in units of eps, below which it is rounding."""
TOLERANCE = 4.0
"""Default, in units of eps times the width of the spectrum."""

State = tuple[TileShardedArray, Array, Array]
"""Columns, sweeps done, and the size of the off-diagonal elements left over."""
Round = tuple[TileShardedArray, TileShardedArray]
"""Columns, and for each worker the largest off-diagonal element and tangent: [6 P, 2]."""


def jacobi_eigh(
    matrix: Array,
    start: Array | None = None,
    sweeps: int | None = None,
    tolerance: float | Array | None = None,
    tiles: Sequence[int] | None = None,
) -> tuple[Array, Array, Array]:
    """Eigenvalues, ascending [N], eigenvectors as columns [N, N], and sweeps done (int32).

    Off-diagonal elements of the size x in V^T A V leave the vectors V with cosines of the order of
    (x / (m w))^2.

    Args:
        matrix: [N, N], symmetric, float32.
        start: [N, N], orthogonal: the vectors of a similar matrix, from which few sweeps remain.
            The result is as orthogonal as from a cold start, so that errors do not add up over a
            chain of calls.
        sweeps: Number of sweeps.
        tolerance: Instead of `sweeps`: sweep until no off-diagonal element of V^T A V is expected
            to be larger, in the units of the matrix, or `MAX_SWEEPS` times. Default: rounding,
            which is also the smallest tolerance.
        tiles: N/2 tile ids, one for each pair of columns. Default: every second tile from 1 on
            (tile 0 holds loop control, and two neighbours share one exchange bus).

    Raises:
        ValueError: The matrix is not square, `start` has another shape or dtype, there are too few
            tiles, or both `sweeps` and `tolerance` are given.
    """
    _check(matrix, start, sweeps, tolerance=tolerance)
    n = matrix.shape[0]
    pairs = (n + 1) // 2
    own = tuple(range(1, 2 * pairs, 2)) if tiles is None else tuple(tiles)[:pairs]
    if len(own) < pairs:
        raise ValueError(f"{n} columns need {pairs} tiles, one for each pair, not {len(own)}")
    shifted, width = _shifted(matrix, start)
    columns = _spread(shifted, own)
    if sweeps is not None:
        done = jnp.asarray(sweeps, jnp.int32)
        columns, _ = lax.scan(lambda c, _: (_sweep(c)[0], None), columns, length=sweeps)
    else:
        rounding = TOLERANCE * float(jnp.finfo(matrix.dtype).eps)
        limit = rounding if tolerance is None else jnp.maximum(tolerance / width, rounding)
        columns, done = _until(columns, jnp.asarray(limit, matrix.dtype))
    vectors = _collect(columns, n)
    vectors = vectors / jnp.sqrt(jnp.sum(vectors * vectors, axis=0))
    if sweeps is not None or tolerance is not None:
        vectors = _orthonormal(vectors)
    values = jnp.sum(vectors * jnp.matmul(matrix, vectors, precision="highest"), axis=0)
    order = jnp.argsort(values)
    return values[order], vectors[:, order], done


def _check(
    matrix: Array, start: Array | None, sweeps: int | None, tolerance: float | Array | None
) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(f"an eigenproblem needs a square matrix, not one of shape {matrix.shape}")
    if start is not None and (start.shape, start.dtype) != (matrix.shape, matrix.dtype):
        raise ValueError(
            f"start is {start.dtype}{list(start.shape)} and the matrix "
            f"{matrix.dtype}{list(matrix.shape)}: give vectors of the matrix's shape and dtype"
        )
    if sweeps is not None and tolerance is not None:
        raise ValueError("give either a number of sweeps or a tolerance, not both")


def _shifted(matrix: Array, start: Array | None) -> tuple[Array, Array]:
    """G / w [N, N], whose singular values lie between MARGIN and 1 + MARGIN, and w.

    Divided by w so that products of columns neither overflow nor underflow.
    """
    diagonal = jnp.diagonal(matrix)
    radius = jnp.sum(jnp.abs(matrix), axis=1) - jnp.abs(diagonal)
    top = jnp.max(diagonal + radius)
    width = top - jnp.min(diagonal - radius)
    width = jnp.where(width > 0, width, 1.0)  # a multiple of the identity
    if start is None:
        start = jnp.eye(matrix.shape[0], dtype=matrix.dtype)
        product = matrix
    else:
        product = jnp.matmul(matrix, start, precision="highest")
    return (top * start - product) / width + MARGIN * start, width


def _spread(matrix: Array, tiles: tuple[int, ...]) -> TileShardedArray:
    """Columns of [N, N] onto tiles: [6 P, 2, C], a worker's part of its tile's two columns.

    C is even, for loads of 8 bytes.  Zeros fill up; an odd N gets a column of zeros, which is
    orthogonal to every other from the beginning and never rotates.
    """
    n, pairs = matrix.shape[0], len(tiles)
    part = 2 * -(-n // (2 * WORKERS))
    columns = jnp.pad(matrix.T, ((0, 2 * pairs - n), (0, WORKERS * part - n)))
    columns = columns.reshape(pairs, 2, WORKERS, part).transpose(0, 2, 1, 3)
    workers = tuple(t for t in tiles for _ in range(WORKERS))
    return tile_put_sharded(columns.reshape(WORKERS * pairs, 2, part), workers)


def _collect(columns: TileShardedArray, n: int) -> Array:
    """The inverse of `_spread`."""
    workers, _, part = columns.shape
    pairs = workers // WORKERS
    rows = columns.array.reshape(pairs, WORKERS, 2, part).transpose(0, 2, 1, 3)
    return rows.reshape(2 * pairs, WORKERS * part)[:n, :n].T


def _orthonormal(vectors: Array) -> Array:
    """One Newton-Schulz step: columns with cosines x to cosines of order x^2."""
    cosines = jnp.matmul(vectors.T, vectors, precision="highest")
    eye = jnp.eye(len(vectors), dtype=vectors.dtype)
    return jnp.matmul(vectors, 1.5 * eye - 0.5 * cosines, precision="highest")


def _until(columns: TileShardedArray, limit: Array) -> tuple[TileShardedArray, Array]:
    """Sweep until the off-diagonal elements left over are below `limit` (in units of w).

    A sweep that met off-diagonal elements up to x and turned by tangents up to t leaves elements
    of the size of x t: it annihilates each, and later rotations bring back that part.  One need
    not sweep once more only to see that nothing is left.
    """

    def unfinished(state: State) -> Array:
        return (state[2] > limit) & (state[1] < MAX_SWEEPS)

    def step(state: State) -> State:
        after, seen = _sweep(state[0])
        largest = jnp.max(seen.array, axis=0)
        return after, state[1] + 1, largest[0] * largest[1]

    far = jnp.full((), jnp.inf, columns.dtype)
    columns, done, _ = lax.while_loop(unfinished, step, (columns, jnp.zeros((), jnp.int32), far))
    return columns, done


def _sweep(columns: TileShardedArray) -> Round:
    """Every pair of columns meets once, and all are back in their places at the end."""
    workers, _, part = columns.shape
    moved = _moved(workers // WORKERS)
    first = np.arange(workers) // WORKERS * WORKERS

    def one_round(state: Round, _: None) -> tuple[Round, None]:
        columns, seen = state
        rotations = tile_map(products, columns, name="jacobi_rotations", together=True)
        # Between the workers of one tile, so that nothing is sent; in one order for all of them,
        # because their angles must agree to the last bit.
        sums = [tile_gather(rotations, first + k, columns.tiles) for k in range(WORKERS)]
        columns, seen = tile_map(rotate, columns, seen, *sums, name="jacobi_update", together=True)
        rows = columns.array.reshape(2 * workers, part)[moved]
        return (tile_put_sharded(rows.reshape(columns.shape), columns.tiles), seen), None

    nothing = tile_put_sharded(jnp.zeros((workers, 2), columns.dtype), columns.tiles)
    rounds = 2 * (workers // WORKERS) - 1
    return lax.scan(one_round, (columns, nothing), length=rounds)[0]


def _moved(pairs: int) -> np.ndarray:
    """The source of each worker's part of a column in the next round: [12 P].

    Column 0 stays; the others sit on a ring, down the first columns of the pairs and up the
    second ones, and go one seat further.
    """
    slot = np.arange(2 * pairs)
    ring = np.concatenate([[1], slot[2::2], slot[:1:-2]])
    source = slot.copy()
    source[ring] = np.roll(ring, 1)
    pair, side = source.reshape(pairs, 1, 2) // 2, source.reshape(pairs, 1, 2) % 2
    return ((pair * WORKERS + np.arange(WORKERS)[None, :, None]) * 2 + side).ravel()


def products(columns: Array) -> Array:
    """Vertex: the inner products of two columns over this worker's rows: [2, C] -> [2, 2]."""
    return jnp.matmul(columns, columns.T, precision="highest")


def rotate(columns: Array, seen: Array, *sums: Array) -> tuple[Array, Array]:
    """Vertex: turn two columns until they are orthogonal, by at most 45 degrees.

    Columns change by small amounts, p - s (q + p s / (1 + c)) for c p - s q, which halves the
    rounding (H. Rutishauser, Numer. Math. 9, 1 (1966), doi:10.1007/BF02165223).  Pairs that are
    orthogonal to rounding are left alone: their angle would be noise, and equal eigenvalues would
    mix for ever.  To first order the off-diagonal element is (p, q) / (|p| + |q|);
    sqrt(p^2 + q^2) for |p| + |q| makes it too large by a factor of sqrt(2) at most.

    Args:
        columns: [2, C].
        seen: [2], the largest |off-diagonal element of V^T A V| / w and |tangent| so far.
        *sums: [2, 2] inner products of each worker.
    """
    total = sum(sums[1:], sums[0])
    first, second, mixed = total[0, 0], total[1, 1], total[0, 1]
    noise = NOISE * float(jnp.finfo(columns.dtype).eps)
    tiny = float(jnp.finfo(columns.dtype).tiny)
    apart = second - first
    # Compared in pairs, and two roots at a time: an operation takes as long for two numbers as
    # for one, and these few take longer than the columns.
    needed, turned_round = jnp.stack([mixed * mixed, -apart]) > jnp.stack(
        [noise * noise * (first * second), jnp.zeros_like(apart)]
    )
    angle = jnp.where(needed, mixed, 0.0)
    squares = jnp.stack([apart * apart + 4.0 * (angle * angle), first + second])
    scale, length = lax.rsqrt(jnp.maximum(squares, tiny))
    distance = jnp.where(turned_round, -apart, apart)
    squared = 0.5 + 0.5 * (distance * scale)
    inverse = lax.rsqrt(squared)
    cosine = squared * inverse
    sine = angle * scale * inverse
    signed = jnp.where(turned_round, -sine, sine)
    share = signed / (1.0 + cosine)
    p, q = columns[0], columns[1]
    turned = jnp.stack([p - signed * (q + share * p), q + signed * (p - share * q)])
    met = jnp.abs(jnp.stack([mixed * length, sine * inverse]))
    return turned, jnp.maximum(seen, met)

"""Cutting the families of a class into vertices, and dealing the vertices to workers.

A family is too coarse for some of its vertices to be even: one of four SP shells costs as much as
fifteen of four s shells.  So costly families are cut by primitives: a *piece* takes a slice of the
primitives of some of the shells, and the integrals are the sum of all pieces.  Cheap families are
put together, m in a vertex.  Vertices go to workers by longest processing time first (R. L.
Graham, SIAM J. Appl. Math. 17, 416 (1969), doi:10.1137/0117039).
"""

import heapq
import math
from dataclasses import dataclass

import numpy as np

from pyscf_ipu.ipu.engine.algorithms.family_cost import (
    Kinds,
    Slices,
    block_bytes,
    depths,
    piece_bytes,
    piece_cost,
)

SCRATCH_BYTES = 65536  # intermediates of one vertex: six workers then take 384 of a tile's 624 KiB
GATHERED_BYTES = 98304  # all pieces of a family, on the tile that adds them
GRAINS = (1.0, 0.5, 0.25, 0.12)  # largest vertex over the mean load of a worker
EVEN = 0.97  # mean over largest load of a worker at which the search for better cuts ends
REFINED = 12  # classes that are cut one by one
MIN_OPERATIONS = 8000.0  # of a piece: a vertex starts hundreds of operations, which has its price


@dataclass(frozen=True)
class Cut:
    """Slices of the primitives of the four shells, and families per vertex (1 if sliced)."""

    slices: Slices
    families: int

    @property
    def pieces(self) -> int:
        return math.prod(self.slices)


def cut(kinds: Kinds, n_families: int, limit: float, scratch: int = SCRATCH_BYTES) -> Cut:
    """The coarsest cut whose vertices fit a tile, if possible of at most `limit` operations."""
    fitting = scratch // piece_bytes(kinds, (1, 1, 1, 1))
    how = Cut((1, 1, 1, 1), max(1, min(fitting, n_families)))
    while not _fits(kinds, how, scratch) or how.families * piece_cost(kinds, how.slices) > limit:
        smaller = finer(kinds, how, scratch)
        if smaller is None:
            break
        how = smaller
    return how


def finer(kinds: Kinds, how: Cut, scratch: int = SCRATCH_BYTES) -> Cut | None:
    """Half the families in a vertex, or for a single family the deepest shell in more slices.

    None where the pieces would not be worth it.
    """
    if how.families > 1:
        return Cut(how.slices, how.families // 2)
    slices = _sliced_once_more(kinds, how.slices)
    if slices is None or not _fits(kinds, how, scratch):
        return slices and Cut(slices, 1)
    too_many = math.prod(slices) * block_bytes(kinds) > GATHERED_BYTES
    return None if too_many or piece_cost(kinds, slices) < MIN_OPERATIONS else Cut(slices, 1)


def _fits(kinds: Kinds, how: Cut, scratch: int) -> bool:
    return how.families * piece_bytes(kinds, how.slices) <= scratch


def _sliced_once_more(kinds: Kinds, slices: Slices) -> Slices | None:
    """The deepest shell in more slices of equal size; None if each has one primitive."""
    depth = depths(kinds, slices)
    deepest = int(np.argmax(depth))
    if depth[deepest] == 1:
        return None
    n_prim = kinds[deepest].n_prim
    more = next(s for s in range(slices[deepest] + 1, n_prim + 1) if n_prim % s == 0)
    a, b, c, d = (more if x == deepest else s for x, s in enumerate(slices))
    return a, b, c, d


@dataclass(frozen=True)
class CutSchedule:
    """Cuts of all classes, and the workers that compute them."""

    cuts: tuple[Cut, ...]
    costs: tuple[float, ...]
    """Operations of a vertex of each class."""
    tiles: tuple[np.ndarray, ...]
    """Per class the tile of each vertex, from 1."""
    workers: tuple[np.ndarray, ...]
    slowest: float
    """Load of the busiest worker, in operations."""
    mean: float

    @property
    def is_even(self) -> bool:
        return self.mean > EVEN * self.slowest


def best_cuts(
    kinds: list[Kinds], counts: list[int], n_tiles: int, workers: int, scratch: int = SCRATCH_BYTES
) -> CutSchedule:
    """Cuts of classes of `counts` families that make the slowest worker fast.

    First by one limit for all classes; then, one by one, the classes with most of the work, because
    loads are even if large and small vertices fill each other's gaps.  Stops where no cut could
    save much, since finer cuts never have less work in all.
    """
    work = [n * piece_cost(k, (1, 1, 1, 1)) for n, k in zip(counts, kinds, strict=True)]

    def by_limit(grain: float) -> CutSchedule:
        limit = grain * sum(work) / (n_tiles * workers)
        cuts = tuple(cut(k, n, limit, scratch=scratch) for k, n in zip(kinds, counts, strict=True))
        return deal(kinds, counts, cuts, n_tiles=n_tiles, workers=workers)

    best = by_limit(GRAINS[0])
    for grain in GRAINS[1:]:
        if not best.is_even:
            best = min(best, by_limit(grain), key=lambda s: s.slowest)
    for c in sorted(range(len(work)), key=lambda c: -work[c])[:REFINED]:
        smaller = finer(kinds[c], best.cuts[c], scratch)
        if smaller is not None and not best.is_even:
            cuts = (*best.cuts[:c], smaller, *best.cuts[c + 1 :])
            other = deal(kinds, counts, cuts, n_tiles=n_tiles, workers=workers)
            best = min(best, other, key=lambda s: s.slowest)
    return best


def deal(
    kinds: list[Kinds], counts: list[int], cuts: tuple[Cut, ...], n_tiles: int, workers: int
) -> CutSchedule:
    """Each vertex to the worker that is free first, the longest first.

    Of equally free workers, those on different tiles come before those on one tile.
    """
    costs = tuple(h.families * piece_cost(k, h.slices) for k, h in zip(kinds, cuts, strict=True))
    vertices = [-(-n // h.families) * h.pieces for n, h in zip(counts, cuts, strict=True)]
    heap = [(0.0, worker, tile) for worker in range(workers) for tile in range(1, n_tiles + 1)]
    tiles = tuple(np.zeros(n, np.int32) for n in vertices)
    seats = tuple(np.zeros(n, np.int32) for n in vertices)
    for c in sorted(range(len(costs)), key=lambda c: -costs[c]):
        for v in range(vertices[c]):
            load, worker, tile = heap[0]
            tiles[c][v], seats[c][v] = tile, worker
            heapq.heapreplace(heap, (load + costs[c], worker, tile))
    loads = [load for load, _, _ in heap]
    return CutSchedule(
        cuts, costs, tiles, workers=seats, slowest=max(loads), mean=sum(loads) / len(loads)
    )

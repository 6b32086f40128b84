"""The plan of the electron repulsion on an IPU: quartet families on tiles.

For four shells a >= b >= c >= d the quartets (ab|cd), (ac|bd) and (ad|bc) are all that the blocks
G[ab,cd], G[ac,bd] and G[ad,bc] of the supermatrix (`pyscf_ipu.integrals.supermatrix`) need.
One tile computes the three, mixes them and keeps them.  The exchange then only carries the density
in and G d out, in a pattern known at compile time; a supermatrix cut into rows would need a look-up
per element.

A plan is made once per shape, in NumPy.  Its indices deal with coincidences (a = b, (ab) = (cd),
...), not the vertex programs: a place of a block without an AO pair of its own reads a zero
density, and its result is dropped.
"""

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np

from pyscf_ipu.ipu.engine.algorithms.family_cost import PAIRINGS, PAIRS, Kinds, Slices
from pyscf_ipu.ipu.engine.algorithms.family_cuts import SCRATCH_BYTES, CutSchedule, best_cuts
from pyscf_ipu.shapes.layout import Layout, layout_of
from pyscf_ipu.shapes.shape import Shape
from pyscf_ipu.tiles.array import WORKERS

TILES = 1471
"""All tiles of a Mk2 IPU but one: tile 0 is left to scalars and the program's control."""


@dataclass(frozen=True)
class FamilyClass:
    """Families whose four shells are of the same kinds: V vertices of m families, S pieces each."""

    groups: tuple[int, int, int, int]
    """Groups of the four shells: indices into `layout.groups`, descending."""
    slices: Slices
    """Slices of the primitives of the four shells; S is their product."""
    shells: np.ndarray
    """[V, m, 4] shells of each family, as indices into their groups."""
    element: np.ndarray
    """[V, m, places] packed AO pair of every AO product of the pairs ab, cd, ac, bd, ad, bc, one
    pair behind the other; n_pairs (of the shape) at a place without an AO pair."""
    weight: np.ndarray
    """[V, m, 3] of each block in G: 1/2 if its two pairs are the same, because its transpose is
    applied as well, else 1."""
    tiles: tuple[int, ...]
    """[V] tile that keeps the blocks of a vertex."""
    piece_tiles: tuple[int, ...]
    """[V * S] where the pieces are computed; piece s of vertex v is number v * S + s."""
    piece_workers: tuple[int, ...]
    cost: float
    """Operations of one piece of a vertex (`family_cost.piece_cost`)."""

    @property
    def pieces(self) -> int:
        return math.prod(self.slices)

    def piece_rows(self, position: int) -> np.ndarray:
        """Row of each piece's shell in a table of shell slices, slice by slice: [V * S, m]."""
        digit = np.unravel_index(np.arange(self.pieces), self.slices)[position]
        shell = self.shells[:, None, :, position] * self.slices[position]
        rows = shell + digit[None, :, None]
        return rows.reshape(-1, self.shells.shape[1]).astype(np.int32)


@dataclass(frozen=True)
class FamilyPlan:
    """Every quartet family of a shape on a worker of one of the tiles 1 .. n_tiles."""

    layout: Layout
    classes: tuple[FamilyClass, ...]
    n_tiles: int
    workers: int
    turns: tuple[int, ...] = ()
    """Where in `classes` each turn ends, if they take turns; a class may be in several."""
    stored: int = 0
    """Turns at the end whose blocks are in streaming memory."""

    def by_turns(self) -> tuple[tuple[slice, bool], ...]:
        """The classes of every turn, and whether its blocks are in streaming memory."""
        ends = self.turns or (len(self.classes),)
        on_chip = len(ends) - self.stored
        parts = map(slice, (0, *ends[:-1]), ends)
        return tuple((part, turn >= on_chip) for turn, part in enumerate(parts))

    def kinds(self, family_class: FamilyClass) -> Kinds:
        """Kinds of the four shells of a class."""
        return _kinds(self.layout, family_class.groups)

    def products(self, family_class: FamilyClass) -> tuple[int, ...]:
        """AO products of the six pairs of shells of a class, in the order of PAIRS."""
        functions = [kind.n_functions for kind in self.kinds(family_class)]
        return tuple(functions[x] * functions[y] for x, y in PAIRS)

    def load(self) -> np.ndarray:
        """Estimated work of every worker thread: [n_tiles, workers], in operations."""
        out = np.zeros((self.n_tiles, self.workers))
        for c in self.classes:
            np.add.at(out, (np.array(c.piece_tiles) - 1, np.array(c.piece_workers)), c.cost)
        return out

    def balance(self) -> float:
        """Mean over largest load of a worker; 1 is perfect."""
        load = self.load()
        return float(load.mean() / load.max())


@functools.lru_cache(maxsize=64)
def family_plan(
    shape: Shape, n_tiles: int = TILES, workers: int = WORKERS, scratch: int = SCRATCH_BYTES
) -> FamilyPlan:
    """Partition the electron repulsion of a shape over `n_tiles` tiles of `workers` threads.

    A vertex has at most `scratch` bytes of intermediates, where it can be cut so far.

    Raises:
        ValueError: There is no tile or no worker.
    """
    if n_tiles < 1 or workers < 1:
        raise ValueError(f"{n_tiles} tiles of {workers} workers: a plan needs one of each or more")
    layout = layout_of(shape)
    families = _enumerate(shape)
    kinds = [_kinds(layout, groups) for groups, _ in families]
    how = best_cuts(kinds, [len(s) for _, s in families], n_tiles, workers=workers, scratch=scratch)
    classes = [
        _class(layout, groups, shells, how=how, number=c)
        for c, (groups, shells) in enumerate(families)
    ]
    return FamilyPlan(layout, tuple(classes), n_tiles, workers=workers)


def _kinds(layout: Layout, groups: tuple[int, int, int, int]) -> Kinds:
    a, b, c, d = (layout.groups[g].kind for g in groups)
    return a, b, c, d


def _class(
    layout: Layout,
    groups: tuple[int, int, int, int],
    shells: np.ndarray,
    how: CutSchedule,
    number: int,
) -> FamilyClass:
    """The class of that number in the schedule."""
    cut = how.cuts[number]
    tiles, workers = how.tiles[number].tolist(), how.workers[number].tolist()
    element, weight = _places(layout, groups, shells)
    spare = -len(shells) % cut.families
    # Places behind the last family repeat it, and their results are dropped.
    shells = np.concatenate([shells, np.repeat(shells[-1:], spare, 0)])
    weight = np.concatenate([weight, np.ones((spare, 3))])
    element = np.pad(element, ((0, spare), (0, 0)), constant_values=layout.shape.n_pairs)

    def rows(x: np.ndarray) -> np.ndarray:
        return x.reshape(-1, cut.families, x.shape[1])

    return FamilyClass(
        groups=groups,
        slices=cut.slices,
        shells=rows(shells),
        element=rows(element),
        weight=rows(weight),
        tiles=tuple(tiles[:: cut.pieces]),
        piece_tiles=tuple(tiles),
        piece_workers=tuple(workers),
        cost=how.costs[number],
    )


@functools.lru_cache(maxsize=8)
def _enumerate(shape: Shape) -> list[tuple[tuple[int, int, int, int], np.ndarray]]:
    """All families by the groups of their shells: shells [F, 4], descending by (group, shell)."""
    families = []
    sizes = [g.n_shells for g in layout_of(shape).groups]
    for a, b, c, d in itertools.combinations_with_replacement(reversed(range(len(sizes))), 4):
        parts = []
        for group, run in itertools.groupby((a, b, c, d)):
            descending = reversed(range(sizes[group]))
            chosen = itertools.combinations_with_replacement(descending, len(list(run)))
            parts.append(np.array(list(chosen), np.int32))
        index = np.indices([len(p) for p in parts]).reshape(len(parts), -1)
        shells = np.concatenate([p[i] for p, i in zip(parts, index, strict=True)], axis=1)
        families.append(((a, b, c, d), shells))
    return families


def _places(
    layout: Layout, groups: tuple[int, int, int, int], shells: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`element` [F, places] and `weight` [F, 3] of families."""
    first = np.cumsum([0, *(g.n_shells for g in layout.groups)])
    number = first[list(groups)] + shells  # of a shell among all: [F, 4], descending
    pair_id = {(x, y): number[:, x] * first[-1] + number[:, y] for x, y in PAIRS}
    keys = [
        np.sort(np.stack([pair_id[bra], pair_id[ket]], axis=1), axis=1) for bra, ket in PAIRINGS
    ]
    weight = np.stack([np.where(k[:, 0] == k[:, 1], 0.5, 1.0) for k in keys], axis=1)
    element = []
    for t, pairing in enumerate(PAIRINGS):
        # With a repeated shell two of the three blocks, or all, are one: the first counts.
        again = np.zeros(len(shells), bool)
        for earlier in keys[:t]:
            again |= (earlier == keys[t]).all(axis=1)
        for x, y in pairing:
            packed = _packed(layout, groups[x], groups[y], first=shells[:, x], second=shells[:, y])
            element.append(np.where(again[:, None], layout.shape.n_pairs, packed))
    return np.concatenate(element, axis=1).astype(np.int32), weight


def _packed(layout: Layout, a: int, b: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Packed AO pair of every product of two shells: [F, fa * fb].

    Of a shell with itself only products i >= j have a pair of their own.
    """
    i = layout.groups[a].ao[first][:, None] + np.arange(layout.groups[a].kind.n_functions)
    j = layout.groups[b].ao[second][:, None] + np.arange(layout.groups[b].kind.n_functions)
    i, j = np.broadcast_arrays(i[:, :, None], j[:, None, :])
    high, low = np.maximum(i, j), np.minimum(i, j)
    packed = high * (high + 1) // 2 + low
    if a == b:
        upper = (first == second)[:, None, None] & (i < j)
        packed = np.where(upper, layout.shape.n_pairs, packed)
    return packed.reshape(len(first), -1)

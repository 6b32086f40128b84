"""The tile plan: which pair strips meet in which block, what a block costs, and on which tile.

A plan is made once per shape, from shapes alone, in NumPy.  The shell pairs of a class are cut
into *strips* of equal size; a *block* is a bra strip against a ket strip, the work of one vertex.
Blocks go to tiles by longest processing time first (R. L. Graham, SIAM J. Appl. Math. 17, 416
(1969), doi:10.1137/0117039).
"""

import functools
import heapq
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Int

from pyscf_ipu.numerics.hermite import n_hermite
from pyscf_ipu.shapes.layout import KindPair, Layout, PairClass, layout_of
from pyscf_ipu.shapes.shape import Shape

STRIP_PRIMITIVES = 288  # primitive pairs of a strip: 9 x 288 lanes of float32 work stay in L2
CHUNK_OVERHEAD = 0.5  # cost of starting a chunk, in primitive pairs


@dataclass(frozen=True)
class Strips:
    """One pair class cut into S strips of nb chunks (mb shell pairs).

    A *chunk* is up to `chunk` primitive pairs of one shell pair; contraction depths that differ
    inside a class thus share one array shape.
    """

    pair_class: PairClass
    chunk: int
    source: Int[np.ndarray, "S nb"]
    """Row of the class's chunk list; its length stands for an all-zero chunk."""
    segment: Int[np.ndarray, "S nb"]
    """Which of the strip's pairs a chunk belongs to."""
    atom: Int[np.ndarray, "S nb"]
    """Atom slot of a chunk whose two shells share their atom, else -1."""
    pair_strip: Int[np.ndarray, " pairs"]  # strip of every shell pair
    pair_place: Int[np.ndarray, " pairs"]  # its place there
    pairs_per_strip: int
    n_products: int  # AO products per pair (the class's maximum)
    first_row: int
    """Row of the class's first product in the supermatrix's index space."""

    @property
    def n_strips(self) -> int:
        return self.source.shape[0]

    @property
    def chunks_per_strip(self) -> int:
        return self.source.shape[1]

    @property
    def n_rows(self) -> int:
        return self.n_strips * self.pairs_per_strip * self.n_products

    @property
    def one_chunk_per_pair(self) -> bool:
        return self.chunks_per_strip == self.pairs_per_strip and bool(
            np.all(self.segment == np.arange(self.chunks_per_strip))
        )

    def onto(self) -> np.ndarray:
        """Which chunk belongs to which pair, per strip: [S, mb, nb] booleans."""
        return self.segment[:, None, :] == np.arange(self.pairs_per_strip)[None, :, None]

    def members(self) -> np.ndarray:
        """The places [m, S, mb] of the m-th chunk of each pair; nb for a missing one."""
        chunk = np.argsort(self.segment, axis=1, kind="stable")
        pair = np.take_along_axis(self.segment, chunk, axis=1)
        place = np.broadcast_to(np.arange(self.chunks_per_strip), pair.shape)
        is_first = np.diff(pair, axis=1, prepend=-2) != 0
        rank = place - np.maximum.accumulate(np.where(is_first, place, 0), axis=1)
        there = (pair >= 0) & (pair < self.pairs_per_strip)
        size = (rank[there].max() + 1, self.n_strips, self.pairs_per_strip)
        places = np.full(size, self.chunks_per_strip, np.int32)
        places[rank[there], np.nonzero(there)[0], pair[there]] = chunk[there]
        return places


@dataclass(frozen=True)
class Block:
    """All T blocks of one class pair: classes, strips, cost of a block, tile of each."""

    bra: int
    ket: int
    bra_strip: Int[np.ndarray, " T"]
    ket_strip: Int[np.ndarray, " T"]
    cost: float
    tiles: tuple[int, ...]


@jax.tree_util.register_static
@dataclass(frozen=True, eq=False)
class TilePlan:
    """Strips per class, blocks per class pair, and where each AO pair's row lies."""

    layout: Layout
    strips: tuple[Strips, ...]
    blocks: tuple[Block, ...]
    row_of: Int[np.ndarray, "N N"]
    """Row of the product of two AOs in the index space of the integrals."""
    aos: Int[np.ndarray, "R 2"]
    """The two AOs of every row, of the first shell of a pair and of the second; -1 in rows without.

    Of two AOs in one shell there are two rows, of which `row_of` has the lower one."""
    n_tiles: int

    @property
    def n_rows(self) -> int:
        return sum(s.n_rows for s in self.strips)

    def load(self) -> np.ndarray:
        """Estimated work per tile: [n_tiles], in primitive quartet operations."""
        out = np.zeros(self.n_tiles)
        for block in self.blocks:
            np.add.at(out, np.array(block.tiles), block.cost)
        return out

    def balance(self) -> float:
        """Mean over largest load of a tile; 1 is perfect."""
        load = self.load()
        return float(load.mean() / load.max())


@functools.lru_cache(maxsize=256)
def tile_plan(shape: Shape, n_tiles: int = 1, strip_primitives: int = STRIP_PRIMITIVES) -> TilePlan:
    """Partition the ERIs of a shape over `n_tiles`."""
    layout = layout_of(shape)
    strips: list[Strips] = []
    for pair_class in layout.classes:
        first_row = strips[-1].first_row + strips[-1].n_rows if strips else 0
        strips.append(_cut(layout, pair_class, strip_primitives, first_row=first_row))
    row_of, aos = _rows(layout, strips)
    blocks = _place(strips, n_tiles)
    return TilePlan(layout, tuple(strips), blocks, row_of=row_of, aos=aos, n_tiles=n_tiles)


def primitives_of(layout: Layout, member: KindPair) -> int:
    return layout.groups[member.a].kind.n_prim * layout.groups[member.b].kind.n_prim


def products_of(layout: Layout, member: KindPair) -> int:
    return layout.groups[member.a].kind.n_functions * layout.groups[member.b].kind.n_functions


def _cut(layout: Layout, pair_class: PairClass, strip_primitives: int, first_row: int) -> Strips:
    depth = np.concatenate(
        [np.full(len(m.first), primitives_of(layout, m)) for m in pair_class.members]
    )
    chunk = min(
        range(1, int(depth.max()) + 1),
        key=lambda c: float(np.sum(np.ceil(depth / c)) * (c + CHUNK_OVERHEAD)),
    )
    chunks = np.ceil(depth / chunk).astype(int)
    first_chunk = np.concatenate([[0], np.cumsum(chunks)])
    n_strips = max(1, int(np.ceil(chunks.sum() * chunk / strip_primitives)))
    # Deal the pairs out, deepest first, back and forth: strips end up equal in both counts.
    turn = np.arange(len(depth))
    back_and_forth = np.where(
        (turn // n_strips) % 2 == 0, turn % n_strips, n_strips - 1 - turn % n_strips
    )
    hands: list[list[int]] = [[] for _ in range(n_strips)]
    for pair, strip in zip(np.argsort(-chunks, kind="stable"), back_and_forth, strict=True):
        hands[strip].append(int(pair))
    width = max(int(chunks[h].sum()) for h in hands)
    source = np.full((n_strips, width), first_chunk[-1], np.int32)
    segment = np.zeros((n_strips, width), np.int32)
    pair_strip, pair_place = np.zeros((2, len(depth)), np.int32)
    for s, hand in enumerate(hands):
        rows = [
            (c, place)
            for place, q in enumerate(hand)
            for c in range(first_chunk[q], first_chunk[q + 1])
        ]
        source[s, : len(rows)] = [c for c, _ in rows]
        segment[s, : len(rows)] = [place for _, place in rows]
        segment[s, len(rows) :] = (
            np.arange(len(rows), width) if width == max(map(len, hands)) else 0
        )
        pair_strip[hand], pair_place[hand] = s, np.arange(len(hand))
    shared = np.append(np.repeat(_shared_atom(layout, pair_class), chunks), -1).astype(np.int32)
    products = max(products_of(layout, m) for m in pair_class.members)
    return Strips(
        pair_class,
        chunk,
        source,
        segment=segment,
        atom=shared[source],
        pair_strip=pair_strip,
        pair_place=pair_place,
        pairs_per_strip=max(map(len, hands)),
        n_products=products,
        first_row=first_row,
    )


def _shared_atom(layout: Layout, pair_class: PairClass) -> Int[np.ndarray, " pairs"]:
    """Atom slot of every shell pair that lies on one atom, else -1."""
    atoms = []
    for m in pair_class.members:
        a, b = layout.groups[m.a].atom[m.first], layout.groups[m.b].atom[m.second]
        atoms.append(np.where(a == b, a, -1))
    return np.concatenate(atoms)


def quartet_cost(order_bra: int, order_ket: int) -> float:
    """Relative cost of one primitive quartet: the Hermite recursion plus both contractions."""
    recursion = sum(n_hermite(n) for n in range(order_bra + order_ket + 1))
    return 20.0 + recursion + n_hermite(order_bra) * n_hermite(order_ket)


def _place(strips: list[Strips], n_tiles: int) -> tuple[Block, ...]:
    blocks = []
    for a, bra in enumerate(strips):
        for b in range(a, len(strips)):
            ket = strips[b]
            first, second = np.meshgrid(
                np.arange(bra.n_strips, dtype=np.int32),
                np.arange(ket.n_strips, dtype=np.int32),
                indexing="ij",
            )
            keep = first <= second if a == b else np.ones_like(first, bool)
            size = bra.source.shape[1] * bra.chunk * ket.source.shape[1] * ket.chunk
            cost = size * quartet_cost(bra.pair_class.order, ket.pair_class.order)
            blocks.append((a, b, first[keep], second[keep], cost))
    heap = [(0.0, t) for t in range(n_tiles)]
    tiles: dict[int, tuple[int, ...]] = {}
    for i in sorted(range(len(blocks)), key=lambda i: -blocks[i][4]):
        chosen = []
        for _ in blocks[i][2]:
            load, tile = heapq.heappop(heap)
            chosen.append(tile)
            heapq.heappush(heap, (load + blocks[i][4], tile))
        tiles[i] = tuple(chosen)
    return tuple(
        Block(a, b, first, ket_strip=second, cost=cost, tiles=tiles[i])
        for i, (a, b, first, second, cost) in enumerate(blocks)
    )


def _rows(layout: Layout, strips: list[Strips]) -> tuple[np.ndarray, np.ndarray]:
    """`TilePlan.row_of` and `TilePlan.aos`."""
    n = layout.shape.n_ao
    row_of = np.full((n, n), -1, np.int32)
    aos = np.full((sum(s.n_rows for s in strips), 2), -1, np.int32)
    for s in strips:
        offset = 0
        for m in s.pair_class.members:
            a, b = layout.groups[m.a], layout.groups[m.b]
            pairs = np.arange(offset, offset + len(m.first))
            offset += len(m.first)
            start = (
                s.first_row
                + (s.pair_strip[pairs] * s.pairs_per_strip + s.pair_place[pairs]) * s.n_products
            )
            fa, fb = np.arange(a.kind.n_functions), np.arange(b.kind.n_functions)
            i = a.ao[m.first][:, None, None] + fa[None, :, None] + 0 * fb
            j = b.ao[m.second][:, None, None] + 0 * fa[None, :, None] + fb
            rows = start[:, None, None] + fa[None, :, None] * len(fb) + fb
            row_of[i, j] = rows
            row_of[j, i] = rows
            aos[rows] = np.stack([i, j], axis=-1)
    # Inside one shell both (a, b) and (b, a) exist; make the table symmetric by the lower one.
    return np.minimum(row_of, row_of.T), aos

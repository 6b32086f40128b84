"""Electron repulsion of molecules that fill the tiles: in turns, and partly off the chip.

What the vertices of the quartet families receive and send grows as G does: shells of every family
once per molecule, the density of its pairs and its parts of G d in every cycle.  A small molecule's
families have theirs all at once.  Where that does not fit, they take turns, and the memory of one
turn serves the next.  Where G would not fit beside the AO values, these are made again in every
cycle, some points at a time.  Where G does not fit even so, the blocks of the last turns are in
streaming memory: a cycle loads them one turn at a time, for the price of the DRAM's rate.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.engine.algorithms.families import FamilyClass, FamilyPlan
from pyscf_ipu.ipu.engine.algorithms.family_cost import Kinds, Slices, block_bytes, piece_bytes
from pyscf_ipu.ipu.engine.algorithms.family_cuts import SCRATCH_BYTES
from pyscf_ipu.ipu.engine.spread.grid_strips import STRIP_BYTES
from pyscf_ipu.shapes.layout import layout_of
from pyscf_ipu.shapes.shape import Shape

FLOAT = 4
PLANES = 4  # AO values and gradients
S_CODE_BYTES, ORDER_CODE_BYTES = 88 * 1024, 16 * 1024
"""Of a tile for code, stack and constants of s shells, and for every order of the Hermite integrals
more.  Priced SCFs take 150 KiB (pentane in STO-3G) and 212 (ethane in 6-31G*)."""
TURN_BYTES = 24 * 1024
"""Of a tile for what the vertices of a turn receive and send, where there are several."""
UNEVEN = 1.15
"""Blocks of G on the fullest tile, with places for pairs that coincide, over the even share."""
LEAST_SCRATCH = 8 * 1024  # of a worker
LEAST_TURNS = 8  # if a part of G is off the chip
PART_BYTES = 16384  # of AO values that are made again, where a point does not need more
GRAIN = 2  # points that stay together
STRIPS = 3  # on a tile at once: of the density, of the matrix and of weighted AO values


@dataclass(frozen=True)
class Room:
    """Bytes of a tile that the electron repulsion may take."""

    all: float | int
    """For G, with what its vertices need while they run."""
    scratch: int
    """Of that, for intermediates of one worker, at most."""
    xc: int = STRIPS * STRIP_BYTES
    """Of that, while the tile is busy with XC: strips of matrices, and AO values that go again."""
    parts: int = 1
    """Of the tile's points, whose AO values are made again one after another; 1: all are kept."""


def room(target: Target, shape: Shape, n_tiles: int) -> Room:
    """What is left beside code, and beside AO values if they are kept: where G has room so."""
    workers = int(target.num_worker_contexts)
    left = int(target.memory_bytes_per_tile) - code_bytes(shape)
    blocks = UNEVEN * FLOAT * shape.n_pairs * (shape.n_pairs + 1) / 2 / n_tiles
    values = grid_bytes(shape, n_tiles)
    least = max(workers * LEAST_SCRATCH + TURN_BYTES, STRIPS * STRIP_BYTES)
    parts = 1 if blocks + values + least <= left else math.ceil(values / PART_BYTES)
    whole = beside(left, shape, n_tiles, parts=parts)
    each = (whole.all - blocks - TURN_BYTES) / workers
    return replace(whole, scratch=int(min(SCRATCH_BYTES, max(LEAST_SCRATCH, each))))


def code_bytes(shape: Shape) -> int:
    """The bytes of a tile for code, stack and constants."""
    order = 4 * max(g.kind.l_max for g in layout_of(shape).groups)
    return S_CODE_BYTES + order * ORDER_CODE_BYTES


def beside(left: float | int, shape: Shape, n_tiles: int, parts: int) -> Room:
    """The room where `left` bytes are to hold AO values, too; with the least scratch memory."""
    values, strips = grid_bytes(shape, n_tiles, parts), STRIPS * STRIP_BYTES
    if parts == 1:
        return Room(left - values, LEAST_SCRATCH, strips)
    return Room(left, LEAST_SCRATCH, strips + values, parts=parts)


def grid_bytes(shape: Shape, n_tiles: int, parts: int = 1) -> int:
    """AO values of a tile's grid points, or of a part of them."""
    points = GRAIN * math.ceil(shape.n_grid / (n_tiles * parts * GRAIN))
    return FLOAT * PLANES * shape.n_ao * points


def row_bytes(kinds: Kinds, slices: Slices) -> int:
    """The four shells of one piece of a family (`family_vertex.shell_rows`), and its weights."""
    numbers = 3
    for kind, s in zip(kinds, slices, strict=True):
        contractions = sum(n for _, n in kind.parts)
        numbers += 2 * (kind.n_prim // s) * (1 + contractions) + 6
    return FLOAT * numbers


def product_bytes(kinds: Kinds) -> int:
    """The density of a family's six pairs, and its parts of G d."""
    a, b, c, d = (kind.n_functions for kind in kinds)
    return 2 * FLOAT * (a * b + c * d + a * c + b * d + a * d + b * c)


@dataclass(frozen=True)
class Needs:
    """Bytes of the fullest tile."""

    blocks: float | int
    """Of G."""
    rows: float | int
    """Shells of all pieces."""
    products: float | int
    """Density of the pairs of all families, and G d."""


def turns_of(needs: Needs, left: Room, workers: int) -> tuple[int, float | int]:
    """Turns, and bytes of a tile for the blocks of G that stay on it; the rest is streamed."""
    scratch = workers * left.scratch
    at_once = max(needs.rows + scratch, needs.products, left.xc)
    if needs.blocks + at_once <= left.all:
        return 1, needs.blocks
    turns = max(1, math.ceil(max(needs.rows, needs.products) / TURN_BYTES))
    least = max(scratch + TURN_BYTES, left.xc)
    if needs.blocks + least <= left.all:
        return turns, needs.blocks
    turns = max(turns, LEAST_TURNS)
    # One turn's blocks are there while they are made or loaded.
    least = max(scratch + TURN_BYTES + needs.blocks / turns, left.xc)
    return turns, max(0.0, left.all - least)


def in_turns(plan: FamilyPlan, left: Room) -> FamilyPlan:
    """The families in as many turns as it takes; one, if all fits at once."""
    needs = [_needs(plan, c) for c in plan.classes]
    total = Needs(*(float(np.sum(x, axis=0).max()) for x in zip(*needs, strict=True)))
    turns, on_chip = turns_of(total, replace(left, scratch=_scratch(plan)), plan.workers)
    if turns == 1:
        return plan
    classes: list[FamilyClass] = []
    ends: list[int] = []
    for turn in range(turns):
        for c in plan.classes:
            n = len(c.tiles)
            part = slice(turn * n // turns, (turn + 1) * n // turns)
            if part.start < part.stop:
                classes.append(_part(c, part))
        if len(classes) > (ends[-1] if ends else 0):  # a few vertices may have fewer turns
            ends.append(len(classes))
    stored = len(ends) - math.floor(len(ends) * on_chip / total.blocks)
    return replace(plan, classes=tuple(classes), turns=tuple(ends), stored=stored)


def _scratch(plan: FamilyPlan) -> int:
    """Intermediates of the widest vertex."""
    return max(c.shells.shape[1] * piece_bytes(plan.kinds(c), c.slices) for c in plan.classes)


def _part(c: FamilyClass, part: slice) -> FamilyClass:
    """Some vertices of a class."""
    pieces = slice(part.start * c.pieces, part.stop * c.pieces)
    of_vertices = {x: getattr(c, x)[part] for x in ("shells", "element", "weight", "tiles")}
    of_pieces = {x: getattr(c, x)[pieces] for x in ("piece_tiles", "piece_workers")}
    return replace(c, **of_vertices, **of_pieces)


def _needs(plan: FamilyPlan, c: FamilyClass) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bytes [tiles] of blocks, rows and products of a class."""
    kinds, families, n = plan.kinds(c), c.shells.shape[1], plan.n_tiles + 1
    vertices, pieces = (np.bincount(x, minlength=n) * families for x in (c.tiles, c.piece_tiles))
    return (
        vertices * block_bytes(kinds),
        pieces * row_bytes(kinds, c.slices),
        vertices * product_bytes(kinds),
    )

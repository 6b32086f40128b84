"""The largest molecule that fits: memory of the fullest tile, from shapes alone.

For molecules whose program is too long to be priced.  Blocks of G, shells, densities, scratch
memory and AO values follow from the shape and the engine's own rules for turns (`spread.turns`),
each as the mean over all tiles.  What is there throughout (code, stack, constants) is taken from a
molecule that was priced.
"""

import itertools
import math
from dataclasses import replace

import numpy as np

from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.engine.algorithms.family_cost import block_bytes, piece_bytes, piece_cost
from pyscf_ipu.ipu.engine.algorithms.family_cuts import cut
from pyscf_ipu.ipu.engine.spread.turns import (
    Needs,
    beside,
    product_bytes,
    room,
    row_bytes,
    turns_of,
)
from pyscf_ipu.ipu.profile.regions import Memory
from pyscf_ipu.shapes.layout import layout_of
from pyscf_ipu.shapes.shape import Shape


def needs(shape: Shape, n_tiles: int, workers: int, scratch: int) -> tuple[Needs, int]:
    """Bytes of a tile for the electron repulsion, from the numbers of families of every class; and
    those that the widest vertex needs inside."""
    groups = layout_of(shape).groups
    found = []
    for four in itertools.combinations_with_replacement(reversed(range(len(groups))), 4):
        runs = [(g, len(list(run))) for g, run in itertools.groupby(four)]
        count = math.prod(math.comb(groups[g].n_shells + n - 1, n) for g, n in runs)
        a, b, c, d = (groups[g].kind for g in four)
        found.append(((a, b, c, d), count))
    work = sum(n * piece_cost(kinds, (1, 1, 1, 1)) for kinds, n in found)
    total, widest = np.zeros(3), 0
    for kinds, n in found:
        how = cut(kinds, n, work / (n_tiles * workers), scratch)
        widest = max(widest, how.families * piece_bytes(kinds, how.slices))
        each = block_bytes(kinds), how.pieces * row_bytes(kinds, how.slices), product_bytes(kinds)
        total += n * np.array(each) / n_tiles
    blocks, rows, products = total.tolist()
    return Needs(blocks, rows, products), widest


def streamed_share(shape: Shape, target: Target, num_ipus: int, measured: Memory) -> float | None:
    """Share of G that has to be in streaming memory; None if the molecule does not fit even so."""
    n_tiles, workers = num_ipus * int(target.tiles_per_ipu), int(target.num_worker_contexts)
    fixed = float(measured.always_live.max())
    planned = room(target, shape, n_tiles)
    left = beside(float(target.memory_bytes_per_tile) - fixed, shape, n_tiles, planned.parts)
    of, scratch = needs(shape, n_tiles, workers, planned.scratch)
    _, on_chip = turns_of(of, replace(left, scratch=scratch), workers)
    share = 1.0 - on_chip / of.blocks
    machines = max(1, num_ipus // int(target.ipus_per_machine))
    dram = float(target.streaming_memory_bytes) * machines
    return share if on_chip > 0 and share * of.blocks * n_tiles < dram else None

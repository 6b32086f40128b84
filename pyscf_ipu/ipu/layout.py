"""Where arrays lie on the tiles of a simulated IPU.

Arrays that a program has put on tiles stay there.  All others follow Poplar's linear mapping
(`poputil::mapTensorLinearly`): contiguous runs of elements on successive tiles, of at least 128
bytes, so that a small array does not touch every tile.  What only rearranges elements (reshape,
slice, transpose, broadcast, look-up with indices known at compile time) is a *view*, as it is in
Poplar: it costs nothing until it is used, and then the exchange of what is used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MIN_TILE_BYTES = 128  # poputil's default for the linear mapping
GRAIN = 2  # float32 elements of a 64-bit vector, which the mapping does not split


@dataclass(frozen=True, eq=False)
class Place:
    """Elements on each tile.

    key       arrays with the same key have corresponding elements on the same tiles.
    elements  [n_tiles] how many elements lie where.
    """

    key: tuple
    elements: np.ndarray

    def bytes(self, itemsize: int) -> np.ndarray:
        return self.elements * itemsize


def linear(size: int, itemsize: int, n_tiles: int) -> Place:
    """Poplar's linear mapping of `size` elements."""
    least = max(1, MIN_TILE_BYTES // itemsize)
    return _runs("linear", size, max(least, _rounded_up(-(-size // n_tiles))), n_tiles)


def spread(size: int, n_tiles: int) -> Place:
    """As many tiles as there are elements: where the result of a reduction is made."""
    return _runs("spread", size, -(-size // n_tiles) if size else 1, n_tiles)


def on_tiles(tiles: tuple[int, ...], row: int, n_tiles: int) -> Place:
    """One row of `row` elements for every entry of `tiles`."""
    if tiles and max(tiles) >= n_tiles:
        raise ValueError(
            f"the program uses tile {max(tiles)}, and the target has tiles 0 to {n_tiles - 1}: "
            "simulate more IPUs, or plan for fewer tiles"
        )
    return Place(("tiles", tiles), np.bincount(tiles, minlength=n_tiles).astype(float) * row)


def _runs(name: str, size: int, run: int, n_tiles: int) -> Place:
    elements = np.zeros(n_tiles)
    full = size // run
    elements[:full] = run
    if size % run:
        elements[full] = size % run
    return Place((name, size, run), elements)


def _rounded_up(n: int) -> int:
    return -(-n // GRAIN) * GRAIN

"""Places of arrays on the tiles of a simulated IPU.

Arrays that a program has put on tiles stay there.  All others follow Poplar's linear mapping
(`poputil::mapTensorLinearly`): contiguous runs of elements on successive tiles, of at least 128
bytes, so that a small array does not touch every tile.  An operation that only rearranges elements
(reshape, slice, transpose, broadcast, look-up with indices known at compile time) makes a *view*,
as in Poplar: it costs nothing until it is used, and then the exchange of the part that is used.
"""

from dataclasses import dataclass

import numpy as np

from pyscf_ipu.base.errors import NoSuchTile

MIN_TILE_BYTES = 128  # poputil's default for the linear mapping
GRAIN = 2  # float32 elements of a 64-bit vector, which the mapping does not split


@dataclass(frozen=True, eq=False)
class Place:
    """Elements on each tile."""

    key: tuple
    """Arrays with the same key have corresponding elements on the same tiles."""
    elements: np.ndarray
    """[n_tiles] number of elements."""

    def bytes(self, itemsize: int) -> np.ndarray:
        return self.elements * itemsize


def linear(size: int, itemsize: int, n_tiles: int) -> Place:
    """Poplar's linear mapping of `size` elements."""
    least = max(1, MIN_TILE_BYTES // itemsize)
    return _runs(size, max(least, GRAIN * -(-size // (n_tiles * GRAIN))), n_tiles)


def spread(size: int, n_tiles: int) -> Place:
    """Elements on as many tiles as possible: where the result of a reduction is made."""
    return _runs(size, -(-size // n_tiles) if size else 1, n_tiles)


def on_tiles(tiles: tuple[int, ...], row: int, n_tiles: int) -> Place:
    """One row of `row` elements for every entry of `tiles`."""
    if tiles and max(tiles) >= n_tiles:
        raise NoSuchTile(
            f"the program uses tile {max(tiles)}, and the target has tiles 0 to {n_tiles - 1}: "
            "simulate more IPUs, or plan for fewer tiles"
        )
    return Place(("tiles", tiles), np.bincount(tiles, minlength=n_tiles).astype(float) * row)


def _runs(size: int, run: int, n_tiles: int) -> Place:
    """`run` elements a tile; what fits on tile 0 has one place, whatever its type."""
    elements = np.zeros(n_tiles)
    full = size // run
    elements[:full] = run
    if size % run:
        elements[full] = size % run
    return Place(("runs", size, min(size, run)), elements)

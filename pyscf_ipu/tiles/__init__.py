"""Tile-partitioned execution: arrays with a row per tile, and `tile_map` to run vertices over them.

The vocabulary is TessellateIPU's (Graphcore Research): a `TileShardedArray` has one leading row
per tile, and `tile_map` is one compute set with one vertex per row.
"""

from pyscf_ipu.tiles.array import (
    TileShardedArray,
    tile_data_barrier,
    tile_gather,
    tile_put_replicated,
    tile_put_sharded,
)
from pyscf_ipu.tiles.map import tile_map
from pyscf_ipu.tiles.primitive import TilePrimitive, create_ipu_tile_primitive, subroutine
from pyscf_ipu.tiles.total import exact_product, tile_dot, tile_total, vertex_total

__all__ = [
    "TilePrimitive",
    "TileShardedArray",
    "create_ipu_tile_primitive",
    "exact_product",
    "subroutine",
    "tile_data_barrier",
    "tile_dot",
    "tile_gather",
    "tile_map",
    "tile_put_replicated",
    "tile_put_sharded",
    "tile_total",
    "vertex_total",
]

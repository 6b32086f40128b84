"""The largest molecule that fits: memory of the fullest tile, from shapes alone.

For molecules whose program is too long to be priced.  The parts are those that grow: blocks of G,
each held once; strips of the density matrix and of a partial XC matrix on every tile; AO values of
the tile's grid points.  Everything else (codes, small arrays, padding of the plan) is taken from a
molecule that was priced.
"""

from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.profile.regions import Memory
from pyscf_ipu.ipu.spread.grid_strips import strip_rows
from pyscf_ipu.shapes.shape import Shape

FLOAT = 4
PLANES = 4  # values and gradients


def growing_bytes(shape: Shape, n_tiles: int) -> float:
    """Bytes on a tile that grow with the molecule, if all tiles hold the same."""
    n, points = shape.n_ao, shape.n_grid / n_tiles
    blocks = shape.n_pairs * (shape.n_pairs + 1) / 2 / n_tiles
    matrices = 2 * n * strip_rows(n)  # strips of density and partial XC matrix
    grid = (PLANES + 1) * n * points  # AO values, and the product with the density
    return FLOAT * (blocks + matrices + grid)


def fits(
    shape: Shape, target: Target, num_ipus: int, measured: Memory, of: Shape, of_tiles: int
) -> bool:
    """Whether a shape fits, judged from a molecule `of` a shape that was priced on `of_tiles`."""
    n_tiles = num_ipus * int(target.tiles_per_ipu)
    rest = measured.max_tile_bytes - growing_bytes(of, of_tiles)
    return rest + growing_bytes(shape, n_tiles) <= int(target.memory_bytes_per_tile)

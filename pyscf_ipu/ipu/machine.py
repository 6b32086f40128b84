"""The engine's algorithms for an IPU: quartet families, warm Jacobi sweeps, a tile for each block
of grid points."""

from __future__ import annotations

from jax import Array

from pyscf_ipu.ipu.families import family_plan
from pyscf_ipu.ipu.family_eri import family_repulsion, family_supermatrix
from pyscf_ipu.ipu.host_blocks import host_supermatrix
from pyscf_ipu.ipu.jacobi import jacobi_eigh
from pyscf_ipu.ipu.priced_as import priced_as
from pyscf_ipu.ipu.target import Target
from pyscf_ipu.machine import Machine, Repulsion
from pyscf_ipu.shape import Shape
from pyscf_ipu.strips import StripData
from pyscf_ipu.tables import ClassTable, Conformer
from pyscf_ipu.tiles import TilePlan, TileShardedArray

Blocks = tuple[TileShardedArray, ...]


def machine_of(target: Target, num_ipus: int, shape: Shape, run_vertices: bool = False) -> Machine:
    """How molecules of a shape are computed on so many IPUs.

    run_vertices  compute the integrals by the vertices that are priced, too, instead of taking
                  them from this host's own (`host_blocks`): the same up to rounding, and minutes of
                  compilation for basis sets with many kinds of shells.

    Raises ValueError for fewer than one IPU.
    """
    if num_ipus < 1:
        raise ValueError(f"num_ipus={num_ipus}: give 1 or more")
    n_tiles = num_ipus * int(target.tiles_per_ipu)
    families = family_plan(shape, n_tiles - 1, int(target.num_worker_contexts))

    def build(
        plan: TilePlan,
        strips: tuple[StripData, ...],
        tables: tuple[ClassTable, ...],
        mol: Conformer,
        dtype: type,
        exact_exchange: float,
    ) -> Repulsion:
        del strips

        def vertices(tables: tuple[ClassTable, ...], mol: Conformer) -> Blocks:
            return family_supermatrix(families, tables, mol, dtype, exact_exchange)

        def host(tables: tuple[ClassTable, ...], mol: Conformer) -> Blocks:
            return host_supermatrix(families, plan, tables, mol, dtype, exact_exchange)

        blocks = vertices(tables, mol) if run_vertices else priced_as(host, vertices, tables, mol)
        return lambda d: family_repulsion(families, blocks, d)

    return Machine(build, warm_eigh, grid_tiles=n_tiles)


def warm_eigh(matrix: Array, start: Array, accuracy: Array) -> tuple[Array, Array]:
    """Jacobi sweeps from the vectors of the cycle before, as many as the accuracy asks for."""
    values, vectors, _ = jacobi_eigh(matrix, start, tolerance=accuracy)
    return values, vectors

"""What a machine does in its own way: electron repulsion, eigenproblems, the cut of the grid.

The engine is written once.  Where a machine with a thousand small memories wants another
algorithm than a processor with caches, the engine asks its `Machine`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from pyscf_ipu.integrals import eri_matrix
from pyscf_ipu.jk import repulsion, supermatrix
from pyscf_ipu.precision import Pair
from pyscf_ipu.strips import StripData
from pyscf_ipu.tables import ClassTable, Conformer
from pyscf_ipu.tiles import TilePlan

Repulsion = Callable[[Array], tuple[Array, Pair]]
"""Packed density [P] -> G d [P] and its energy; see `jk.repulsion`."""


BuildRepulsion = Callable[
    [TilePlan, tuple[StripData, ...], tuple[ClassTable, ...], Conformer, type, float], Repulsion
]
"""(plan, strips, tables, molecule, dtype, fraction of exact exchange in G) -> Repulsion."""


Eigh = Callable[[Array, Array, Array], tuple[Array, Array]]


@dataclass(frozen=True)
class Machine:
    """The algorithms of one kind of machine.

    repulsion   builds the function that gives G d.
    eigh        symmetric matrix [N, N], the eigenvectors of a similar one [N, N], and how large
                an off-diagonal element may stay (scalar; rounding at the least) -> eigenvalues
                [N], ascending, and eigenvectors [N, N].
    grid_tiles  tiles over which grid points are cut; None: blocks that fit into a cache.
    """

    repulsion: BuildRepulsion
    eigh: Eigh
    grid_tiles: int | None = None


def stored_supermatrix(
    plan: TilePlan,
    strips: tuple[StripData, ...],
    tables: tuple[ClassTable, ...],
    mol: Conformer,
    dtype: type,
    exact_exchange: float,
) -> Repulsion:
    """Half of G as one array, from the matrix of all ERIs."""
    del tables, mol, dtype
    half = supermatrix(plan, eri_matrix(plan, strips), exact_exchange)
    return lambda d: repulsion(half, d)


def library_eigh(matrix: Array, start: Array, accuracy: Array) -> tuple[Array, Array]:
    """LAPACK's, or the accelerator's; they have no use for a start, and are always accurate."""
    del start, accuracy
    values, vectors = jnp.linalg.eigh(matrix)
    return values, vectors


HOST = Machine(stored_supermatrix, library_eigh)
"""CPUs and GPUs."""

"""The engine's algorithms for an IPU: quartet families, rotations, blocks of grid points."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TypeVar

from jax import Array

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.integrals.one_electron import one_electron
from pyscf_ipu.integrals.strips import StripData, pair_strips
from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.engine.algorithms.families import FamilyPlan, family_plan
from pyscf_ipu.ipu.engine.algorithms.family_eri import family_repulsion, family_supermatrix
from pyscf_ipu.ipu.engine.algorithms.host_blocks import host_supermatrix
from pyscf_ipu.ipu.engine.spread.all_pairs import all_pairs_eigh
from pyscf_ipu.ipu.engine.spread.attraction import spread_one_electron
from pyscf_ipu.ipu.engine.spread.grid_strips import spread_products
from pyscf_ipu.ipu.engine.spread.primitive_pairs import spread_pairs
from pyscf_ipu.ipu.engine.spread.turns import in_turns, room
from pyscf_ipu.ipu.pricing.on_ipu import on_ipu
from pyscf_ipu.ipu.pricing.priced_as import priced_as
from pyscf_ipu.machines.machine import BuildRepulsion, Machine, Repulsion
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.numerics.products import side_by_side
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.shapes.shape import Shape

Out = TypeVar("Out")


def machine_of(
    target: Target, num_ipus: int, shape: Shape, run_vertices: bool = False, pipelined: bool = False
) -> Machine:
    """The algorithms for molecules of a shape on a number of chips.

    With `run_vertices` integrals are computed by the vertices that are priced, too, instead of this
    host's own (`host_blocks`): the same up to rounding, and minutes of compilation for basis sets
    with many kinds of shells.  `pipelined` is how PySCF-IPU was set up, on two IPUs: integrals on
    IPU 0, the SCF on IPU 1, a conformer in each.

    Raises:
        UsageError: There is less than one IPU.
    """
    if num_ipus < 1:
        raise UsageError(f"num_ipus={num_ipus}: give 1 or more")
    if pipelined and num_ipus != 2:
        raise UsageError(f"num_ipus={num_ipus}: a pipeline of integrals and SCF has 2 IPUs")
    n_tiles = (1 if pipelined else num_ipus) * int(target.tiles_per_ipu)
    left = room(target, shape, n_tiles)
    workers = int(target.num_worker_contexts)
    families = in_turns(family_plan(shape, n_tiles - 1, workers, scratch=left.scratch), left)

    tiles = range(1, n_tiles)  # tile 0 holds loop control

    def eigh(matrix: Array, start: Array, accuracy: Array) -> tuple[Array, Array]:
        values, vectors, _ = all_pairs_eigh(matrix, start, accuracy, tiles=tiles)
        return values, vectors

    def either(host: Callable[..., Out], vertices: Callable[..., Out]) -> Callable[..., Out]:
        on_tiles = partial(vertices, n_tiles)
        return on_tiles if run_vertices else partial(priced_as, host, on_tiles)

    return Machine(
        _repulsion_of(families, run_vertices, pipelined),
        eigh,
        grid_products=spread_products(),
        grid_tiles=n_tiles,
        grid_parts=left.parts,
        pairs=either(pair_strips, spread_pairs),
        one_electron=either(one_electron, spread_one_electron),
        has_float64=False,
        products=side_by_side,
        other_starts=False,
    )


def _repulsion_of(families: FamilyPlan, run_vertices: bool, pipelined: bool) -> BuildRepulsion:
    """Make the builder of the function that gives G d, with G in blocks on tiles."""
    stage = on_ipu if pipelined else nullcontext

    def build(atoms: Atoms, strips: tuple[StripData, ...], exchange: Interaction) -> Repulsion:
        del strips
        vertices = partial(family_supermatrix, families, exchange=exchange)
        host = partial(host_supermatrix, families, exchange=exchange)

        with stage(0):
            blocks = vertices(atoms) if run_vertices else priced_as(host, vertices, atoms)

        def repulsion(d: Array) -> tuple[Array, Pair]:
            with stage(1):
                return family_repulsion(families, blocks, d)

        return repulsion

    return build

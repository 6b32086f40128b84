"""How much memory a program needs, and how much there is."""

import numpy as np

from pyscf_ipu.base.host.backend import device
from pyscf_ipu.base.host.memory_limit import available_bytes
from pyscf_ipu.codelets import native_in_use, strip_primitives
from pyscf_ipu.elements.atomic_grid import atomic_grid
from pyscf_ipu.fitting.operators import exchange_parts
from pyscf_ipu.grid.blocks import KEPT_BYTES, PIECE_POINTS
from pyscf_ipu.machines.gpu_machine import has_kernel
from pyscf_ipu.numerics.interaction import COULOMB
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.auxiliary import auxiliary_layout, auxiliary_level
from pyscf_ipu.shapes.core import numerics_of
from pyscf_ipu.shapes.shape import Shape
from pyscf_ipu.shapes.tile_plan import tile_plan
from pyscf_ipu.xc.registry import functional

BASE_BYTES = 300 * 2**20  # the process itself, with JAX and compiled programs


def program_bytes(shape: Shape, settings: Settings) -> int:
    """Estimated peak memory of a call, whose molecules run one after another on a CPU.

    Matrices over AO pairs (half of the supermatrix; for the portable vertices also all ERIs, their
    blocks and parts), or those of density fitting, and the AO values with their gradients.
    """
    numerics = numerics_of(shape, settings)
    word = np.dtype(numerics.energy_dtype).itemsize
    words = word + (np.dtype(numerics.scf_dtype).itemsize if numerics.refines else 0)
    grid = 0.0
    for points in (shape.n_grid, vv10_points(shape, settings)):
        kept = 4 * word * shape.n_ao * points <= KEPT_BYTES
        held = points if kept else 2 * PIECE_POINTS
        grid += words * (5.0 * shape.n_ao * held + 10.0 * points)
    if settings.form(shape.n_ao) == "ri":
        return int(fitting_bytes(shape, settings) + grid) + BASE_BYTES
    matrices = 0.6 if native_in_use() else 4.5 + _more_eris(settings)
    if numerics.wide:  # all of them once, in float64
        words = np.dtype(numerics.matrix_dtype).itemsize
    return int(words * matrices * shape.n_pairs**2 + grid) + BASE_BYTES


def vv10_points(shape: Shape, settings: Settings) -> int:
    """Points whose pairs VV10 sums over, padding included; 0 without it."""
    grid = settings.vv10_grid
    if grid is None:
        return 0
    sizes = [max(len(atomic_grid(z, grid)) for z in c.family) for c in shape.classes]
    return sum(n * size for n, size in zip(shape.counts, sizes, strict=True))


def fitting_bytes(shape: Shape, settings: Settings) -> int:
    """What density fitting holds at most.

    (P|ab) in float64 over AO pairs, and B of each interaction; `mixed` has one more in float32,
    unless its matrices are in float64 anyway.
    Without codelets, and where the metric has no Cholesky factor (the long range of 1/r), (P|ab) is
    turned around and multiplied: three of it.
    """
    numerics = numerics_of(shape, settings)
    n = auxiliary_layout(shape, auxiliary_level(settings)).n_functions
    words = np.dtype(numerics.result_dtype).itemsize
    if numerics.refines and not numerics.wide:
        words += np.dtype(numerics.scf_dtype).itemsize
    others = [of for _, of in exchange_parts(functional(settings.xc).exchange) if of != COULOMB]
    copies = 1.1 if native_in_use() else 6.0
    if any(not of.full for of in others):
        copies += 2.0
    one = n * shape.n_pairs
    return int((8 * copies + words * (1 + len(others))) * one + 3 * 8 * n**2)


def _more_eris(settings: Settings) -> float:
    """Matrices of ERIs beside the one of 1/r: that of range-separated exchange."""
    return 1.0 if functional(settings.xc).long_range_exchange else 0.0


def result_bytes(shape: Shape, settings: Settings) -> int:
    """What is kept of every molecule of a batch: orbitals, density and their energies."""
    word = np.dtype(numerics_of(shape, settings).result_dtype).itemsize
    return (2 * shape.n_ao + 1) * shape.n_ao * word


def side_by_side_bytes(shape: Shape, settings: Settings, size: int, kernels: bool) -> int:
    """Estimated peak memory of a call on an accelerator, with all of its molecules at once.

    Measured on an H100: 34 MB a molecule of 56 AOs, B3LYP/STO-3G in float32, of which all integrals
    and G are 21 and the AO values 15.  Without GPU kernels the blocks of integrals come on top.
    """
    numerics = numerics_of(shape, settings)
    words = np.dtype(numerics.scf_dtype).itemsize
    if numerics.refines:
        words += np.dtype(numerics.energy_dtype).itemsize
    if settings.form(shape.n_ao) == "ri":
        one = fitting_bytes(shape, settings) + words * 5.0 * shape.n_ao * shape.n_grid
        return int(size * one) + BASE_BYTES
    plan = tile_plan(shape, strip_primitives=strip_primitives())
    fused = kernels and all(has_kernel(strips) for strips in plan.strips)
    eris = (1.2 if fused else 4.0) + _more_eris(settings)
    matrices = eris * plan.n_rows**2 + 1.2 * shape.n_pairs**2
    return int(size * words * (matrices + 5.0 * shape.n_ao * shape.n_grid)) + BASE_BYTES


def device_bytes() -> int:
    """Memory of the accelerator that JAX may use."""
    stats = device().memory_stats() or {}
    return int(stats.get("bytes_limit", available_bytes()))

"""How much memory a program needs, and how much there is."""

from typing import NamedTuple

import numpy as np

from pyscf_ipu.base.host.backend import device
from pyscf_ipu.base.host.memory_limit import available_bytes
from pyscf_ipu.codelets import native_in_use, strip_primitives
from pyscf_ipu.elements.atomic_grid import Grid, atomic_grid, coarse_grid
from pyscf_ipu.fitting.operators import PANEL, exchange_parts
from pyscf_ipu.grid.blocks import KEPT_BYTES, PIECE_POINTS
from pyscf_ipu.machines.gpu_machine import has_kernel
from pyscf_ipu.numerics.columns import BLOCK
from pyscf_ipu.numerics.interaction import COULOMB
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.auxiliary import auxiliary_layout, auxiliary_level
from pyscf_ipu.shapes.core import numerics_of
from pyscf_ipu.shapes.layout import layout_of
from pyscf_ipu.shapes.shape import Shape
from pyscf_ipu.shapes.tile_plan import tile_plan
from pyscf_ipu.xc.registry import functional

BASE_BYTES = 400 * 2**20
"""The process itself, with JAX, and what compiling leaves behind."""
CODE_BYTES, COMPILER_BYTES = 28 * 2**20, 20 * 2**20
"""Of a program, and of the compiler for every kind of shell while it makes it: measured with 2 to 8
kinds.  What the compiler frees goes back to the machine before anything is computed."""
LIVE = {4: 5 / 8, 8: 7 / 8}
"""Part of the AOs that count on a block of points, by the bytes of a number; the place of others is
not written and takes no memory.  Measured 0.5 to 0.85 in float32; in float64 they reach farther."""
POINT_NUMBERS = 40
"""Numbers at a point of the grid beside its AOs: place, weight, density and functional."""
MATRICES = 60
"""N x N matrices of an SCF: the history of DIIS, one-electron integrals, orbitals."""


class _Held(NamedTuple):
    """Bytes of a step of a program: throughout, and only before its grid is used."""

    kept: float
    passing: float = 0.0


def program_bytes(shape: Shape, settings: Settings, forces: bool = False) -> int:
    """Estimated peak memory of a call, whose molecules run one after another on a CPU.

    The process with its programs, and the largest of the steps that follow one another: a program
    is compiled; the SCF; its energy in a wider dtype; the gradient.

    Args:
        shape: of the molecules.
        settings: of the calculation.
        forces: whether they are computed, too.
    """
    numerics = numerics_of(shape, settings)
    kinds = len(layout_of(shape).groups)
    scf, last = (np.dtype(x).itemsize for x in (numerics.scf_dtype, numerics.energy_dtype))
    result = np.dtype(numerics.result_dtype).itemsize
    dtypes = [(np.dtype(numerics.matrix_dtype).itemsize, scf)]
    dtypes += [(result, last)] if numerics.refines else []
    steps = [
        _on_grid(shape, settings, word, held=_repulsion(shape, settings, matrices))
        for matrices, word in dtypes
    ]
    if forces:
        word = scf if numerics.wide else result
        steps.append(_on_grid(shape, settings, word, held=_derivatives(shape, settings)))
    programs = (2 if forces else 1) * CODE_BYTES
    compiling = kinds * COMPILER_BYTES
    return int(BASE_BYTES + programs + max(compiling, *steps))


def _on_grid(shape: Shape, settings: Settings, word: int, held: _Held) -> float:
    """A step with its AO values: kept beside everything else, or made again when they are used."""
    points = [shape.n_grid, vv10_points(shape, settings)]
    kept, remade = POINT_NUMBERS * word * sum(points), 0.0
    if settings.has_coarse_cycles:
        points.append(_points(shape, coarse_grid(settings.grid)))
    numerics = numerics_of(shape, settings)
    # The matrices of a second SCF take the place of the first one's AO values, and write all of it.
    overwritten = numerics.refines and not numerics.wide
    share = 1.0 if overwritten else LIVE[word]
    for count in points:
        values = 4.0 * word * shape.n_ao * count
        if values <= KEPT_BYTES[native_in_use()]:
            kept += share * values
        else:
            remade = 4.0 * word * shape.n_ao * PIECE_POINTS[native_in_use()]
    return held.kept + kept + max(held.passing, remade)


def _repulsion(shape: Shape, settings: Settings, word: int) -> _Held:
    """Electron repulsion: half of the supermatrix, or B of each interaction.

    The portable vertices have all ERIs besides, their blocks and parts.
    """
    matrices = MATRICES * word * shape.n_ao**2
    if settings.form(shape.n_ao) == "ri":
        held = _fit(shape, settings, word)
        return held._replace(kept=held.kept + matrices)
    part = 0.5 if native_in_use() else 4.5 + _more_eris(settings)
    return _Held(word * part * shape.n_pairs**2 + matrices)


def spin_bytes(shape: Shape, settings: Settings) -> int:
    """What a second spin adds on a CPU: matrices, and exchange apart from Coulomb repulsion."""
    word = np.dtype(numerics_of(shape, settings).result_dtype).itemsize
    xc = functional(settings.xc)
    has_exchange = settings.form(shape.n_ao) != "ri" and (xc.exact_exchange, xc.omega) != (0, 0)
    return word * (MATRICES * shape.n_ao**2 + has_exchange * shape.n_pairs**2 // 2)


def _fit(shape: Shape, settings: Settings, word: int) -> _Held:
    """B over AO pairs of each interaction, and (P|ab) of one in float64 while its B is made.

    Without codelets (P|ab) is turned around and solved: two more of it.
    """
    n = auxiliary_layout(shape, auxiliary_level(settings)).n_functions
    others = [of for _, of in exchange_parts(functional(settings.xc).exchange) if of != COULOMB]
    copies = 1 if native_in_use() else 3
    panels = 2 * min(PANEL, shape.n_pairs) if any(not of.full for of in others) else 0
    passing = 8.0 * n * (copies * shape.n_pairs + panels + 3 * n)
    return _Held(float(word * (1 + len(others)) * n * shape.n_pairs), passing)


def _derivatives(shape: Shape, settings: Settings) -> _Held:
    """What the gradient holds: of a fit (P|ab) and its weights, five arrays [N, BLOCK, F]."""
    matrices = 10 * 8.0 * shape.n_ao**2
    if settings.form(shape.n_ao) != "ri":
        return _Held(matrices)
    n = auxiliary_layout(shape, auxiliary_level(settings)).n_functions
    return _Held(matrices, 8.0 * n * (2 * shape.n_pairs + 5 * BLOCK * shape.n_ao + 3 * n))


def vv10_points(shape: Shape, settings: Settings) -> int:
    """Points whose pairs VV10 sums over, padding included; 0 without it."""
    grid = settings.vv10_grid
    return 0 if grid is None else _points(shape, grid)


def _points(shape: Shape, grid: Grid) -> int:
    """Points of a molecule with this grid on every atom, padding included."""
    sizes = [max(len(atomic_grid(z, grid)) for z in c.family) for c in shape.classes]
    return sum(n * size for n, size in zip(shape.counts, sizes, strict=True))


def fitting_bytes(shape: Shape, settings: Settings) -> int:
    """What density fitting holds at most, in the precision of the results."""
    word = np.dtype(numerics_of(shape, settings).result_dtype).itemsize
    return int(sum(_fit(shape, settings, word)))


def _more_eris(settings: Settings) -> float:
    """Matrices of ERIs beside the one of 1/r: that of range-separated exchange."""
    return 1.0 if functional(settings.xc).long_range_exchange else 0.0


def result_bytes(shape: Shape, settings: Settings) -> int:
    """What is kept of every molecule of a batch: orbitals, density and their energies."""
    word = np.dtype(numerics_of(shape, settings).result_dtype).itemsize
    return (2 * shape.n_ao + 1) * shape.n_ao * word


def side_by_side_bytes(
    shape: Shape, settings: Settings, size: int, kernels: bool, forces: bool = False
) -> int:
    """Estimated peak memory of a call on an accelerator, with all of its molecules at once.

    Measured on an H100: 34 MB a molecule of 56 AOs, B3LYP/STO-3G in float32, of which all integrals
    and G are 21 and the AO values 15.  Without GPU kernels the blocks of integrals come on top.
    """
    numerics = numerics_of(shape, settings)
    words = np.dtype(numerics.scf_dtype).itemsize
    if numerics.refines:
        words += np.dtype(numerics.energy_dtype).itemsize
    if settings.form(shape.n_ao) == "ri":
        one = fitting_bytes(shape, settings)
        if forces:
            one = max(one, int(sum(_derivatives(shape, settings))))
        one += words * 5.0 * shape.n_ao * shape.n_grid
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

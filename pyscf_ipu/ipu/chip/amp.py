"""Cycles of the matrix unit (AMP) of one tile of the second generation: GC200 and Bow.

The vertex is PopLibs's ConvPartial1x1, whose estimator is in lib/poplin/PerformanceEstimation.hpp
(graphcore/poplibs), with 16 convolution units: a pass multiplies the rows by 16 columns of weights,
a chunk of the inner dimension at a time.  No constant in here is fitted.
"""

from dataclasses import dataclass

import numpy as np

from pyscf_ipu.tiles.array import WORKERS

UNITS = 16  # columns of a pass
WEIGHT_BYTES_PER_CYCLE = 16
SUPERVISOR = 50
LEAST_BUSY = 14  # tile cycles that the supervisor's tag costs the worker with the least to do
SAME_PATH = 1  # both kinds of vertex used here share the code path of float partial sums


@dataclass(frozen=True)
class _Unit:
    """The differences between the two number formats."""

    chunk: int
    """Inner elements that a pass multiplies at once."""
    itemsize: int
    row: int
    """Worker cycles per row in the steady state."""
    rows: tuple[int, int, int, int]
    """Worker cycles for 0, 1, 2 and 3 rows, without clearing the sums first."""
    clear: tuple[int, int]
    """(offset, cycles per row) by which the first chunk differs, because it starts from 0."""
    retain: tuple[int, int]
    """Worker cycles of set-up that is kept from chunk to chunk: the first time, and later."""


_FLOAT16 = _Unit(16, 2, 4, rows=(22, 33, 42, 38), clear=(-1, 0), retain=(7, 3))
_FLOAT32 = _Unit(8, 4, 8, rows=(24, 47, 46, 46), clear=(2, 8), retain=(0, 0))


def matmul_cycles(rows: int, inner: int, columns: int, dtype: object = "float32") -> float:
    """Tile cycles of [rows, inner] @ [inner, columns] inside one tile, by all its workers.

    The inner dimension is padded to chunks of 16 (float16) or 8 (float32), the columns to 16.

    Raises:
        ValueError: A matrix is empty, or `dtype` is neither float16 nor float32.
    """
    if min(rows, inner, columns) < 1:
        raise ValueError(
            f"[{rows}, {inner}] @ [{inner}, {columns}] has an empty matrix: every dimension has to "
            "be at least 1"
        )
    unit = _unit(dtype)
    chunks, passes = -(-inner // unit.chunk), -(-columns // UNITS)
    load = UNITS * unit.chunk * unit.itemsize // WEIGHT_BYTES_PER_CYCLE
    first = 11 + 19 - SAME_PATH + passes * (7 + load + _pass(unit, rows, clear=True))
    later = 16 - SAME_PATH + 19 + passes * (6 + load + _pass(unit, rows, clear=False))
    kept = WORKERS * (unit.retain[0] + unit.retain[1] * (chunks - 1))
    return float(SUPERVISOR + kept + 12 + SAME_PATH + first + (chunks - 1) * later)


def _unit(dtype: object) -> _Unit:
    name = np.dtype(dtype).name  # type: ignore[arg-type]
    if name not in ("float16", "float32"):
        raise ValueError(f"the matrix unit has float16 and float32, not {name}: convert first")
    return _FLOAT16 if name == "float16" else _FLOAT32


def _pass(unit: _Unit, rows: int, clear: bool) -> int:
    """Tile cycles of one chunk against 16 columns: of the busiest worker."""
    share, rest = divmod(rows, WORKERS)
    least = _worker(unit, share, clear)
    most = _worker(unit, share + 1, clear) if rest else least
    # Set-up makes one row dearer than two, so the worker with more rows may be the earlier one.
    low, high = sorted((least, most))
    return max(WORKERS * high, WORKERS * low + LEAST_BUSY)


def _worker(unit: _Unit, rows: int, clear: bool) -> int:
    if rows == 0:
        return 0
    cycles = unit.rows[min(rows, 3)] + max(rows - 3, 0) * unit.row - unit.retain[0]
    return cycles + clear * (unit.clear[0] + unit.clear[1] * rows)

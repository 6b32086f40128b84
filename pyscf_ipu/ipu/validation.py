"""The model against published measurements of hardware.

Four kinds of row, which must not be mixed up:

prediction   a published formula or figure, unfitted, against a measurement that it has not seen;
known miss   the same, where the model is wrong, and by how much;
fit          constants fitted to these very measurements: the difference is a residual;
calibration  a constant that was taken from this measurement: agreement shows consistency only.

Not in the table: the exchange of tutorial 6 of graphcore/examples (8,743.1 cycles on hardware,
8,697.4 in Graphcore's IPUModel).  To predict it, one needs where Poplar put that program's
tensors, which its profile does not say.  Nor is any complete integral or SCF program: no public
measurement of one states its molecule and its steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyscf_ipu.ipu.amp import matmul_cycles
from pyscf_ipu.ipu.exchange import host_seconds
from pyscf_ipu.ipu.popops import binary_1d
from pyscf_ipu.ipu.target import BOW, GC200

KINDS = ("prediction", "known miss", "fit", "calibration")
COUNTER_CYCLES = 45  # of reading the cycle counter twice: TessellateIPU, ipu_cycle_count_overhead

# rows -> cycles, [rows, 16] @ [16, 16] in float16 on every tile of a Bow, without the counter's
# own: TessellateIPU, notebook "IPU Peak Flops".
MATMUL_FLOAT16 = (
    (16, 402.0), (32, 461.3), (64, 584.0), (256, 1352.0), (512, 2381.3), (1024, 4424.0),
    (2048, 8525.3),
)  # fmt: skip
# float32 elements of one tile -> raw cycles of an addition: TessellateIPU, tests.
ADD_1024, ADD_10 = 1860.0, 329.5
# elements -> cycles of its scaled_add vertex: TessellateIPU, comments in the tests.
SCALED_ADD = ((64, 375.0), (128, 467.0), (256, 665.0), (512, 1043.0))


@dataclass(frozen=True)
class Comparison:
    """One measurement beside the model: `measured` and `modelled` in `unit`, `kind` of KINDS."""

    id: str
    what: str
    unit: str
    measured: float
    modelled: float
    kind: str
    source: str

    @property
    def difference_percent(self) -> float:
        """Of the model, relative to the measurement."""
        return 100.0 * (self.modelled / self.measured - 1.0)


def validation_table() -> tuple[Comparison, ...]:
    """Every comparison, with the kind of evidence that it is."""
    return (*_predictions(), *_misses(), *_fits(), *_calibrations())


def fitted_line(points: tuple[tuple[int | float, float], ...]) -> tuple[float, float]:
    """(offset, slope) of the least-squares line through points (x, y)."""
    x, y = np.array(points, float).T
    slope, offset = np.polyfit(x, y, 1)
    return float(offset), float(slope)


def _predictions() -> tuple[Comparison, ...]:
    products = tuple(
        Comparison(
            "V1", f"[{rows}, 16] @ [16, 16] in float16, one tile of Bow", "cycles", cycles,
            matmul_cycles(rows, 16, 16, "float16"), "prediction",
            "TessellateIPU, notebook IPU Peak Flops",
        )
        for rows, cycles in MATMUL_FLOAT16
    )  # fmt: skip
    addition = Comparison(
        "V2", "add 1024 float32 per tile", "cycles", ADD_1024 - COUNTER_CYCLES,
        float(binary_1d("add", 1024)), "prediction", "TessellateIPU, tests",
    )  # fmt: skip
    return (*products, addition)


def _misses() -> tuple[Comparison, ...]:
    return (
        Comparison(
            "V3", "add 10 float32 per tile: start-up, which the formula has too low", "cycles",
            ADD_10 - COUNTER_CYCLES, float(binary_1d("add", 10)), "known miss",
            "TessellateIPU, tests",
        ),
    )  # fmt: skip


def _fits() -> tuple[Comparison, ...]:
    offset, slope = fitted_line(SCALED_ADD)
    return tuple(
        Comparison(
            "V4", f"scaled_add of {n} float32: {offset:.0f} + {slope:.2f} per element", "cycles",
            cycles, offset + slope * n, "fit", "TessellateIPU, comments in the tests",
        )
        for n, cycles in SCALED_ADD
    )  # fmt: skip


def _calibrations() -> tuple[Comparison, ...]:
    tiles, clock = float(GC200.tiles_per_ipu), float(GC200.tile_clock_frequency)
    per_cycle = float(GC200.interleaved_load_bytes_per_cycle) + float(GC200.store_bytes_per_cycle)
    moved = 40.0e6
    triad = "WaveEquation-IPU, README"
    return (
        Comparison(
            "V5", "one worker, a loop of 15 instructions, Bow", "cycles/turn", 90.0,
            15.0 * float(BOW.num_worker_contexts), "calibration", "UCL-RITS/pi_examples",
        ),
        Comparison(
            "V6", "STREAM triad, memory, GC200", "TB/s", 46.55, tiles * clock * per_cycle / 1e12,
            "calibration", triad,
        ),
        Comparison(
            "V6", "STREAM triad, arithmetic, GC200", "Tflop/s", 7.76,
            tiles * clock * float(GC200.fp32_vector_flops_per_cycle) / 1e12, "calibration", triad,
        ),
        Comparison(
            "V8", "40.0 MB to a GC200 from its host", "cycles", 2_641_488.4,
            host_seconds(GC200, moved)[0] * clock, "calibration",
            "graphcore/examples, tutorial 6",
        ),
    )  # fmt: skip

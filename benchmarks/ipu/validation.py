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

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pyscf_ipu.ipu.chip.amp import matmul_cycles
from pyscf_ipu.ipu.chip.popops import binary_1d
from pyscf_ipu.ipu.chip.target import BOW, GC200
from pyscf_ipu.ipu.chip.transfer import host_seconds

KINDS = ("prediction", "known miss", "fit", "calibration")
COUNTER_CYCLES = 45  # of reading the cycle counter twice: TessellateIPU, ipu_cycle_count_overhead

# rows -> cycles, [rows, 16] @ [16, 16] in float16 on every tile of a Bow, without the counter's
# own: TessellateIPU, notebook "IPU Peak Flops".
MATMUL_FLOAT16 = (
    (16, 402.0),
    (32, 461.3),
    (64, 584.0),
    (256, 1352.0),
    (512, 2381.3),
    (1024, 4424.0),
    (2048, 8525.3),
)
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
        """Difference of the model, relative to the measurement."""
        return 100.0 * (self.modelled / self.measured - 1.0)


def validation_table() -> tuple[Comparison, ...]:
    """Every comparison, with the kind of evidence that it is."""
    return (*_arithmetic(), *_constants())


def fitted_line(points: tuple[tuple[int | float, float], ...]) -> tuple[float, float]:
    """(offset, slope) of the least-squares line through points (x, y)."""
    x, y = np.array(points, float).T
    slope, offset = np.polyfit(x, y, 1)
    return float(offset), float(slope)


def _arithmetic() -> Iterator[Comparison]:
    """V1 to V4: cycles of one tile."""
    tests = "TessellateIPU, tests"
    for rows, cycles in MATMUL_FLOAT16:
        what = f"[{rows}, 16] @ [16, 16] in float16, one tile of Bow"
        modelled = matmul_cycles(rows, 16, 16, "float16")
        source = "TessellateIPU, notebook IPU Peak Flops"
        yield Comparison("V1", what, "cycles", cycles, modelled, "prediction", source)
    what, modelled = "add 1024 float32 per tile", float(binary_1d("add", 1024))
    cycles = ADD_1024 - COUNTER_CYCLES
    yield Comparison("V2", what, "cycles", cycles, modelled, "prediction", tests)
    what = "add 10 float32 per tile: start-up, which the formula underestimates"
    cycles, modelled = ADD_10 - COUNTER_CYCLES, float(binary_1d("add", 10))
    yield Comparison("V3", what, "cycles", cycles, modelled, "known miss", tests)
    offset, slope = fitted_line(SCALED_ADD)
    for n, cycles in SCALED_ADD:
        what, modelled = (
            f"scaled_add of {n} float32: {offset:.0f} + {slope:.2f} per element",
            offset + slope * n,
        )
        source = "TessellateIPU, comments in the tests"
        yield Comparison("V4", what, "cycles", cycles, modelled, "fit", source)


def _constants() -> Iterator[Comparison]:
    """V5, V6 and V8: constants beside the measurements that they are from."""
    rate = float(GC200.tiles_per_ipu) * float(GC200.tile_clock_frequency) / 1e12
    per_cycle = float(GC200.interleaved_load_bytes_per_cycle) + float(GC200.store_bytes_per_cycle)
    flops = float(GC200.fp32_vector_flops_per_cycle)
    host = host_seconds(GC200, 40.0e6)[0] * float(GC200.tile_clock_frequency)
    turn = 15.0 * float(BOW.num_worker_contexts)
    triad = "WaveEquation-IPU, README"
    for id_, what, unit, measured, modelled, source in (
        (
            "V5",
            "one worker, a loop of 15 instructions, Bow",
            "cycles/turn",
            90.0,
            turn,
            "UCL-RITS/pi_examples",
        ),
        ("V6", "STREAM triad, memory, GC200", "TB/s", 46.55, rate * per_cycle, triad),
        ("V6", "STREAM triad, arithmetic, GC200", "Tflop/s", 7.76, rate * flops, triad),
        (
            "V8",
            "40.0 MB to a GC200 from its host",
            "cycles",
            2_641_488.4,
            host,
            "graphcore/examples, tutorial 6",
        ),
    ):
        yield Comparison(id_, what, unit, measured, modelled, "calibration", source)

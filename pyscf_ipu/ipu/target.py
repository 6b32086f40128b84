"""The chips that can be simulated, as data: every figure with its unit and its source.

Fields are named after those of Poplar's `IPUModel` and `Target` where these have them.  There are
no defaults: whoever makes a target states every figure, and an unknown one raises where it is
used.  Repositories: PopLibs = graphcore/poplibs; ipu-stack = osmarks/ipu-stack, a compiler for Bow
that quotes Poplar's target description; "tutorial 6" = the matrix-vector tutorial of
graphcore/examples, whose README gives a profile of the IPUModel and one of the hardware.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType

from pyscf_ipu.ipu.quantity import Quantity, unknown

Row = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Target:
    """One kind of IPU and what it is connected to.

    max_ipu_sync_delay     cycles by which tiles of one IPU leave an internal sync apart.
    global_sync_cycles     of a sync that all IPUs take part in.
    data_path_bytes_per_cycle  load of one tile from ordinary memory, per cycle.
    executable_memory_bytes    part of a tile's memory that code can run from.
    exchange_fragment_cycles   per piece, when many small pieces are gathered.
    compiled_code_factor   cycles of a compiled C++ vertex over those of ideal code.
    ipu_link_*             of one IPU, one way, to the others of its machine; machine_link_*,
                           of one machine of `ipus_per_machine` IPUs, to the others of its pod of
                           `ipus_per_pod`; gateway_link_*, of one machine, to other pods.
    host_bandwidth_*       what programs were seen to reach: a range, not a figure.
    """

    name: str
    ipu_version: str
    tiles_per_ipu: Quantity
    num_worker_contexts: Quantity
    memory_bytes_per_tile: Quantity
    loadable_bytes_per_tile: Quantity
    executable_memory_bytes: Quantity
    memory_element_bytes: Quantity
    tile_clock_frequency: Quantity
    exchange_bytes_per_cycle: Quantity
    tiles_per_shared_exchange_bus: Quantity
    exchange_fragment_cycles: Quantity
    max_ipu_sync_delay: Quantity
    global_sync_cycles: Quantity
    memcpy_bytes_per_cycle: Quantity
    data_path_bytes_per_cycle: Quantity
    interleaved_load_bytes_per_cycle: Quantity
    store_bytes_per_cycle: Quantity
    supervisor_launch_cycles: Quantity
    fp32_vector_flops_per_cycle: Quantity
    fp32_amp_flops_per_cycle: Quantity
    fp16_amp_flops_per_cycle: Quantity
    compiled_code_factor: Quantity
    ipus_per_machine: Quantity
    ipus_per_pod: Quantity
    ipu_link_bytes_per_second: Quantity
    ipu_link_latency: Quantity
    machine_link_bytes_per_second: Quantity
    gateway_link_bytes_per_second: Quantity
    host_bandwidth_low: Quantity
    host_bandwidth_mid: Quantity
    host_bandwidth_high: Quantity

    def quantities(self) -> Mapping[str, Quantity]:
        """Every figure by the name of its field."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return MappingProxyType({k: v for k, v in found.items() if isinstance(v, Quantity)})

    def table(self) -> tuple[Row, ...]:
        """Rows (name, value, unit, how, source) for printing."""
        return tuple(
            (name, f"{q.value:.6g}" if q.value is not None else "-", q.unit, q.how, q.source)
            for name, q in self.quantities().items()
        )


_STACK = "ipu-stack, cost.rs, quoting Poplar's Target::"
_MEMORY = "ipu-stack, memory.rs"
_SHEET = "Bow-2000 datasheet"
_PODS = "docs.graphcore.ai, IPU-POD getting started, overview"

GC200 = Target(
    name="gc200",
    ipu_version="ipu2",
    tiles_per_ipu=Quantity(1472, "tiles", "vendor", "Poplar target report; EPCC's documentation"),
    num_worker_contexts=Quantity(
        6, "workers", "vendor", "docs.graphcore.ai, assembly programming, 4.2.1"
    ),
    memory_bytes_per_tile=Quantity(
        624 * 1024, "B", "vendor", f"{_MEMORY}, TILE_MEMORY_SIZE; Poplar target report, 624.0 kB"
    ),
    loadable_bytes_per_tile=Quantity(
        0xE7BB0 - 0x4C000, "B", "derived", f"{_MEMORY}: base 0x4c000, application limit 0xe7bb0"
    ),
    executable_memory_bytes=Quantity(
        0x80000 - 0x4C000, "B", "derived", f"{_MEMORY}: base 0x4c000, code runs below 0x80000"
    ),
    memory_element_bytes=Quantity(16 * 1024, "B", "vendor", _MEMORY),
    tile_clock_frequency=Quantity(
        1.33e9, "Hz", "measured", "tutorial 6: 6,681,766 cycles in 5,023.9 us"
    ),
    exchange_bytes_per_cycle=Quantity(4, "B/cycle", "vendor", f"{_STACK}getExchangeBytesPerCycle"),
    tiles_per_shared_exchange_bus=Quantity(
        2, "tiles", "formula", "PopLibs, popops/ExchangeEstimator.cpp, which asserts it"
    ),
    exchange_fragment_cycles=Quantity(160, "cycles", "estimated", "ipu-stack, cost.rs: about 160"),
    max_ipu_sync_delay=Quantity(126, "cycles", "vendor", f"{_STACK}getMaxIPUSyncDelay"),
    global_sync_cycles=Quantity(600, "cycles", "vendor", f"{_STACK}getGlobalSyncCycles"),
    memcpy_bytes_per_cycle=Quantity(8, "B/cycle", "vendor", f"{_STACK}getMemcpyBytesPerCycle"),
    data_path_bytes_per_cycle=Quantity(8, "B/cycle", "vendor", "ipu-stack, cost.rs"),
    interleaved_load_bytes_per_cycle=Quantity(16, "B/cycle", "vendor", "ipu-stack, cost.rs"),
    store_bytes_per_cycle=Quantity(
        8, "B/cycle", "derived", f"{_SHEET}: 261 TB/s of four IPUs = 24 B/cycle/tile, 16 of it load"
    ),
    supervisor_launch_cycles=Quantity(
        11, "cycles", "formula", "PopLibs, popops/PerformanceEstimation.cpp, supervisor overhead"
    ),
    fp32_vector_flops_per_cycle=Quantity(
        4, "flop/cycle", "measured", "WaveEquation-IPU: STREAM triad 7.76 Tflop/s = 3.96 per cycle"
    ),
    fp32_amp_flops_per_cycle=Quantity(
        32, "flop/cycle", "derived", f"{_SHEET}: 0.349 Pflop/s of four IPUs; GC200 has that core"
    ),
    fp16_amp_flops_per_cycle=Quantity(
        128, "flop/cycle", "derived", "IPU-M2000 datasheet: 1 Pflop/s of four IPUs at 1.33 GHz"
    ),
    compiled_code_factor=Quantity(
        7.44, "", "measured", "tutorial 6: 28,300.3 cycles of compiled C++ over 3,801.8 declared"
    ),
    ipus_per_machine=Quantity(4, "IPUs", "vendor", f"{_PODS}: four IPUs in an IPU-M2000"),
    ipus_per_pod=Quantity(
        64, "IPUs", "vendor", f"{_PODS}: IPU-Links inside a POD64 rack, GW-Links between racks"
    ),
    ipu_link_bytes_per_second=Quantity(
        160e9, "B/s", "estimated", "the Elk paper's 640 GB/s of an IPU-POD4, a quarter for each IPU"
    ),
    ipu_link_latency=unknown("ipu_link_latency of GC200", "s"),
    machine_link_bytes_per_second=Quantity(
        125e9, "B/s", "estimated", f"as for Bow ({_SHEET}: eight IPU-Links, 2 Tbit/s both ways)"
    ),
    gateway_link_bytes_per_second=Quantity(
        25e9, "B/s", "estimated", f"as for Bow ({_SHEET}: two GW-Links of 100 Gbit/s)"
    ),
    host_bandwidth_low=Quantity(
        5.5e9, "B/s", "measured", "graphcore/examples, README of EfficientDet"
    ),
    host_bandwidth_mid=Quantity(
        7.98e9, "B/s", "derived", "tutorial 6: 40.0 MB in 6,663,550.8 cycles of the IPUModel"
    ),
    host_bandwidth_high=Quantity(
        20.1e9, "B/s", "measured", "tutorial 6: 40.0 MB in 2,641,488.4 cycles of the hardware"
    ),
)


def _on_bow(figure: Quantity) -> Quantity:
    """A figure measured with a GC200 and used for Bow, whose host side is taken to be the same."""
    return replace(figure, how="estimated", source=f"as for GC200 ({figure.source})")


# The Bow chip has the cores of the GC200 at a higher clock.
BOW = replace(
    GC200,
    name="bow",
    ipu_version="ipu21",
    tile_clock_frequency=Quantity(1.85e9, "Hz", "vendor", f"{_SHEET}, table 2.4"),
    fp32_amp_flops_per_cycle=Quantity(
        32, "flop/cycle", "derived", f"{_SHEET}: 0.349 Pflop/s of four IPUs"
    ),
    fp16_amp_flops_per_cycle=Quantity(
        128, "flop/cycle", "derived", f"{_SHEET}: 1.394 Pflop/s of four IPUs"
    ),
    ipus_per_machine=Quantity(4, "IPUs", "vendor", _SHEET),
    ipu_link_bytes_per_second=_on_bow(GC200.ipu_link_bytes_per_second),
    ipu_link_latency=unknown("ipu_link_latency of Bow", "s"),
    machine_link_bytes_per_second=Quantity(
        125e9, "B/s", "derived", f"{_SHEET}: eight IPU-Links, 2 Tbit/s both ways"
    ),
    gateway_link_bytes_per_second=Quantity(
        25e9, "B/s", "derived", f"{_SHEET}: two GW-Links of 100 Gbit/s"
    ),
    host_bandwidth_low=_on_bow(GC200.host_bandwidth_low),
    host_bandwidth_mid=_on_bow(GC200.host_bandwidth_mid),
    host_bandwidth_high=_on_bow(GC200.host_bandwidth_high),
)

_GC2_SHEET = "peak rates of the GC2, read in summaries only"
_OF_GC2 = {
    "tiles_per_ipu": Quantity(
        1216, "tiles", "vendor", "Poplar target report, graphcore/tensorflow"
    ),
    "num_worker_contexts": GC200.num_worker_contexts,
    "memory_bytes_per_tile": Quantity(
        256 * 1024, "B", "vendor", "Poplar target report, graphcore/tensorflow"
    ),
    "tile_clock_frequency": Quantity(
        1.6e9, "Hz", "vendor", "Poplar target report, graphcore/tensorflow; some ran at 1.3 GHz"
    ),
    "tiles_per_shared_exchange_bus": GC200.tiles_per_shared_exchange_bus,
    "supervisor_launch_cycles": GC200.supervisor_launch_cycles,
    "fp32_amp_flops_per_cycle": Quantity(
        16, "flop/cycle", "estimated", f"{_GC2_SHEET}: 31.1 Tflop/s at 1.6 GHz"
    ),
    "fp16_amp_flops_per_cycle": Quantity(
        64, "flop/cycle", "estimated", f"{_GC2_SHEET}: 124.5 Tflop/s at 1.6 GHz"
    ),
}

# The first generation: little of it is public.
GC2 = Target(
    name="gc2",
    ipu_version="ipu1",
    **{
        name: _OF_GC2.get(name, unknown(f"{name} of GC2", figure.unit))
        for name, figure in GC200.quantities().items()
    },
)

TARGETS: Mapping[str, Target] = MappingProxyType({t.name: t for t in (GC2, GC200, BOW)})
"""The targets by their names."""


def target(name: str) -> Target:
    """The chip called `name`; upper and lower case are the same.

    Raises ValueError, with the names there are, if there is no such chip.
    """
    if name.lower() not in TARGETS:
        raise ValueError(f"unknown target {name!r}: choose one of {', '.join(TARGETS)}")
    return TARGETS[name.lower()]

"""The chips and systems that can be simulated, as data: every figure with its unit and its source.

The figures are in `targets.toml`.  There are no defaults: a target states every figure, and an
unknown one raises where it is used.  A *system* is a target whose number of IPUs is known; a chip
by itself stands for any number of them.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from numbers import Integral
from types import MappingProxyType

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.ipu.chip.quantity import Quantity, unknown
from pyscf_ipu.ipu.profile.data import Peaks
from pyscf_ipu.tiles.array import WORKERS


@dataclass(frozen=True)
class Target:
    """One kind of IPU, and what it is connected to: a chip, or a system of a number of them."""

    name: str
    ipu_version: str
    tiles_per_ipu: Quantity
    num_worker_contexts: Quantity
    memory_bytes_per_tile: Quantity
    loadable_bytes_per_tile: Quantity
    executable_memory_bytes: Quantity
    """Part of a tile's memory that code can run from."""
    memory_element_bytes: Quantity
    tile_clock_frequency: Quantity
    exchange_bytes_per_cycle: Quantity
    tiles_per_shared_exchange_bus: Quantity
    exchange_fragment_cycles: Quantity
    """Cycles per piece, when many small pieces are gathered."""
    max_ipu_sync_delay: Quantity
    """Cycles by which tiles of one IPU leave an internal sync apart."""
    global_sync_cycles: Quantity
    """Cycles of a sync that all IPUs take part in."""
    memcpy_bytes_per_cycle: Quantity
    data_path_bytes_per_cycle: Quantity
    """Load of one tile from ordinary memory."""
    interleaved_load_bytes_per_cycle: Quantity
    store_bytes_per_cycle: Quantity
    supervisor_launch_cycles: Quantity
    fp32_vector_flops_per_cycle: Quantity
    fp32_amp_flops_per_cycle: Quantity
    fp16_amp_flops_per_cycle: Quantity
    compiled_code_factor: Quantity
    """Cycles of a compiled C++ vertex over those of ideal code."""
    ipus_per_machine: Quantity
    ipus_per_pod: Quantity
    ipu_link_bytes_per_second: Quantity
    """From one IPU, one way, to the others of its machine."""
    ipu_link_latency: Quantity
    machine_link_bytes_per_second: Quantity
    """From one machine, one way, to the others of its pod."""
    gateway_link_bytes_per_second: Quantity
    """From one machine, one way, to other pods."""
    host_bandwidth_low: Quantity
    """Measured programs reached rates between low and high."""
    host_bandwidth_mid: Quantity
    host_bandwidth_high: Quantity
    ipus_per_system: Quantity
    """IPUs that there are; unknown for a chip by itself."""
    host_link_bytes_per_second: Quantity
    """From the host to one machine, one way; its IPUs share it."""
    pcie_bytes_per_second: Quantity
    """Of the slot that the machine's network card is in."""
    streaming_memory_bytes: Quantity
    """Of a machine: DRAM that its IPUs load from and store to."""
    streaming_bytes_per_second: Quantity
    """Between that DRAM and the IPUs of a machine, together."""
    host_cores: Quantity
    """Of all host servers of the system."""

    def quantities(self) -> Mapping[str, Quantity]:
        """Every figure by the name of its field."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return MappingProxyType({k: v for k, v in values.items() if isinstance(v, Quantity)})

    def peaks(self, half: bool = False) -> Peaks:
        """The most that a tile does in a cycle: with float16 products, or with float32 alone."""
        unit = self.fp16_amp_flops_per_cycle if half else self.fp32_amp_flops_per_cycle
        moved = float(self.interleaved_load_bytes_per_cycle) + float(self.store_bytes_per_cycle)
        rate, ipus = float(self.exchange_bytes_per_cycle), int(self.ipus_per_machine)
        return Peaks(float(unit), moved, exchange_bytes=rate, ipus_per_machine=ipus)

    @property
    def machines(self) -> int:
        """Machines of the system; raises UnknownQuantityError for a chip by itself."""
        return -(-int(self.ipus_per_system) // int(self.ipus_per_machine))

    @property
    def most_replicas(self) -> int:
        """The replicas of one IPU each: all IPUs of the system; 1 for a chip by itself."""
        limit = self.ipus_per_system
        return int(limit) if limit.known else 1

    def check_ipus(self, num_ipus: int, replicas: int = 1) -> None:
        """Check that these replicas of this many IPUs fit into the system.

        Raises:
            TypeError: A number is not a whole one.
            UsageError: There are fewer IPUs than that, or less than one is asked for.
        """
        for name, count in (("num_ipus", num_ipus), ("replicas", replicas)):
            if not isinstance(count, Integral):
                raise TypeError(f"{name}={count!r}: give a whole number of 1 or more")
            if count < 1:
                raise UsageError(f"{name}={count}: give 1 or more")
        limit = self.ipus_per_system
        if limit.known and num_ipus * replicas > int(limit):
            raise UsageError(
                f"num_ipus={num_ipus}, replicas={replicas}: {self.name} has {int(limit)} IPUs, and "
                f"this needs {num_ipus * replicas}; give a larger system, or fewer"
            )

    def table(self) -> tuple[tuple[str, str, str, str, str], ...]:
        """Rows (name, value, unit, how, source) for printing."""
        return tuple(
            (name, f"{q.value:.6g}" if q.value is not None else "-", q.unit, q.how, q.source)
            for name, q in self.quantities().items()
        )


_OF_A_FIGURE = ("value", "unit", "how", "source")
_FIGURES = {
    chip: {
        name: Quantity(**dict(zip(_OF_A_FIGURE, figure, strict=True)))
        for name, figure in figures.items()
    }
    for chip, figures in tomllib.loads(
        files("pyscf_ipu").joinpath("ipu", "chip", "targets.toml").read_text(encoding="utf-8")
    ).items()
}


def _alone(chip: str) -> dict[str, Quantity]:
    """What only a system has, and what is not public."""
    return {
        "ipu_link_latency": unknown(f"ipu_link_latency of {chip}", "s"),
        "ipus_per_system": unknown(f"ipus_per_system of {chip}, a chip by itself", "IPUs"),
        "host_link_bytes_per_second": unknown(f"host_link_bytes_per_second of {chip}", "B/s"),
        "host_cores": unknown(f"host_cores of {chip}", "cores"),
    }


GC200 = Target(
    name="gc200",
    ipu_version="ipu2",
    num_worker_contexts=Quantity(
        WORKERS, "workers", "vendor", source="docs.graphcore.ai, assembly programming, 4.2.1"
    ),
    **_FIGURES["gc200"],
    **_alone("GC200"),
)

BOW = replace(
    GC200,
    name="bow",
    ipu_version="ipu21",
    **_FIGURES["bow"],
    **_alone("Bow"),
    # Measured with a GC200; the host side of a Bow is taken to be the same.
    **{
        name: replace(figure, how="estimated", source=f"as for GC200 ({figure.source})")
        for name, figure in _FIGURES["gc200"].items()
        if name == "ipu_link_bytes_per_second" or name.startswith("host_bandwidth")
    },
)

_OF_GC2 = {"num_worker_contexts": GC200.num_worker_contexts} | _FIGURES["gc2"]

GC2 = Target(
    name="gc2",
    ipu_version="ipu1",
    **{
        name: _OF_GC2.get(name, unknown(f"{name} of GC2", figure.unit))
        for name, figure in GC200.quantities().items()
    },
)

SERVERS = {4: 1, 16: 1, 64: 1, 256: 4}
"""Host servers of the systems as they are sold by default, by their number of IPUs."""


def _system(chip: Target, ipus: int) -> Target:
    """A Pod of that many IPUs."""
    of = _FIGURES["pods"]
    cores = of["cores_per_server"]
    return replace(
        chip,
        name=f"{chip.name}-pod{ipus}",
        ipus_per_system=Quantity(ipus, "IPUs", "vendor", source=of["ipus_per_system"].source),
        host_link_bytes_per_second=of["host_link_bytes_per_second"],
        host_cores=replace(cores, value=SERVERS[ipus] * int(cores)),
    )


PODS = tuple(_system(chip, n) for chip in (GC200, BOW) for n in SERVERS)

TARGETS: Mapping[str, Target] = MappingProxyType({t.name: t for t in (GC2, GC200, BOW, *PODS)})
"""The targets by their names: chips, then systems."""


def target(name: str) -> Target:
    """The chip or system called `name`, in upper or lower case: "bow", "bow-pod16", "gc200-pod4".

    Raises:
        UsageError: There is no such target; the error lists the names.
    """
    if name.lower() not in TARGETS:
        raise UsageError(f"unknown target {name!r}: choose one of {', '.join(TARGETS)}")
    return TARGETS[name.lower()]


def priced_target(name: str) -> Target:
    """Find a target by name, for a command that prices programs.

    Raises:
        UsageError: There is no such target, or too little is known of it; the error lists those
            that can be named.
    """
    known = [x.name for x in TARGETS.values() if x.exchange_bytes_per_cycle.known]
    choice = f"choose one of {', '.join(known)}"
    system, colon, _ = name.partition(":")
    if colon and system.lower() in TARGETS:
        raise UsageError(
            f"{name!r}: give no number, because a system has that of its IPUs in its name; {choice}"
        )
    if name.lower() not in TARGETS:
        raise UsageError(f"unknown target {name!r}: {choice}")
    if name.lower() not in known:
        raise UsageError(f"too little is public about {name!r} to price a program: {choice}")
    return target(name)


def described_target(text: str) -> Target:
    """Find a target by name, or one with other figures: "bow:tile_clock_frequency=1.5e9,...".

    Its name has the figures in alphabetical order, without those that are the chip's own.

    Raises:
        UsageError: As `priced_target`; or there is no such figure, it is given twice, it cannot
            have this value, or code fills all memory.
    """
    name, colon, given = text.partition(":")
    base = priced_target(name)
    known = base.quantities()
    figures: dict[str, float | int] = {}
    for word in given.split(",") if colon else ():
        field, _, value = (part.strip() for part in word.partition("="))
        if field not in known:
            raise UsageError(
                f"{text!r}: {field!r} is no figure of a chip; give {name}:FIGURE=NUMBER, with one "
                f"of {', '.join(known)}"
            )
        if field in figures:
            raise UsageError(f"{text!r} gives {field} twice: give it once")
        figures[field] = _number(text, value, known[field])
    own = {k: v for k, v in sorted(figures.items()) if v != known[k].value}
    if not own:
        return base
    words = {field: f"{field}={value:.15g}" for field, value in own.items()}
    changed = {
        field: Quantity(
            value, known[field].unit, how="estimated", source=f"given as {words[field]}"
        )
        for field, value in own.items()
    }
    target = replace(base, name=f"{base.name}:{','.join(words.values())}", **changed)
    code, memory = target.executable_memory_bytes, target.memory_bytes_per_tile
    if float(code) >= float(memory):
        raise UsageError(
            f"{text!r}: code may fill {code.value} of the {memory.value} bytes of a tile, which "
            "leaves none for data; give a smaller executable_memory_bytes, too"
        )
    return target


def _number(text: str, value: str, figure: Quantity) -> float | int:
    """A figure of a chip from text; whole numbers stay whole."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise UsageError(f"{text!r}: {value!r} is no number above 0")
    if number.is_integer():
        return int(number)
    if isinstance(figure.value, int):
        raise UsageError(f"{text!r}: {value!r} is no whole number, as this figure is")
    return number

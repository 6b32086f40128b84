"""The findings of a simulation: the steps of a program, how often each ran, and its cost.

Nothing in here prices or presents: `pyscf_ipu.ipu.report.profile` adds the reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pyscf_ipu.ipu.profile.regions import Memory


@dataclass(frozen=True)
class Cycles:
    """An interval of tile-clock cycles: what perfect code takes, and what compiled code takes."""

    low: float
    high: float

    def __add__(self, other: Cycles) -> Cycles:
        return Cycles(self.low + other.low, self.high + other.high)

    def __mul__(self, count: float | int) -> Cycles:
        return Cycles(self.low * count, self.high * count)

    def to_dict(self) -> dict[str, float]:
        """In types that JSON has."""
        return {"low": self.low, "high": self.high}


NOTHING = Cycles(0.0, 0.0)

Origin = tuple[str, str]
"""How cycles were found, one of `pyscf_ipu.ipu.chip.quantity.HOWS`, and their source."""


@dataclass(frozen=True)
class Step:
    """One step of the program."""

    kind: str
    """"compute" (a compute set), "exchange", "sync" or "host" (traffic with the host)."""
    name: str
    """Name of the vertex or primitive: "eri_s_sp", "add", "reduce_sum"."""
    stage: str
    """Named scope of the engine: "eri", "xc", "eigensolver", ...; "" outside of all."""
    cycles: Cycles
    """Cycles of one run; for compute, of the busiest tile."""
    tiles: int
    """Tiles that take part."""
    vertices: int = 0
    """Number of vertices of a compute set."""
    balance: float = 1.0
    """Mean low cycles of all tiles of the target over those of the busiest tile."""
    moved_bytes: float = 0.0
    """Bytes that leave a tile (exchange) or cross to the host."""
    how: str = "formula"
    """Where the cycles come from, one of `pyscf_ipu.ipu.chip.quantity.HOWS`."""
    source: str = ""
    """The formula or document."""
    flops: float = 0.0
    """Floating-point operations of all tiles: one for an element, two for a multiply-add."""
    memory_bytes: float = 0.0
    """Bytes that the vertices of a compute set load from and store to the memory of their tiles."""
    overlapped: bool = False
    """Traffic with the host beside the program, on tiles of its own, instead of before or after."""
    ipu: int = 0
    """The pipeline stage's IPU, in a program of stages; else 0."""
    phase: str = "forward"
    """In a program of stages: "forward", "backward" (transposed), or "update" (what follows)."""

    @property
    def crosses(self) -> bool:
        """Whether it brings data from the IPU of another stage."""
        return self.kind == "exchange" and self.name.startswith("IPU ")


@dataclass(frozen=True)
class MicroBatches:
    """How many micro-batches go through a pipeline before an update, and in which order."""

    count: int = 16
    order: Literal["sequential", "grouped", "1f1b"] = "1f1b"
    """sequential: one at a time.  grouped: all forward, then all backward (GPipe).  1f1b: a stage
    goes backward as soon as it can (PipeDream)."""
    recompute: bool = False
    """A stage keeps only its input, and computes all else again in the backward pass."""


@dataclass(frozen=True)
class Repeat:
    """Steps that run `count` times in a row: a loop with its real trip count.

    Inside another loop the count is the mean over the turns of that loop, possibly a fraction.
    """

    count: float | int
    body: tuple[Step | Repeat, ...]
    name: str = "loop"


Program = tuple["Step | Repeat", ...]
Times = tuple[Step, float | int]
"""A step, and how often it ran."""


@dataclass(frozen=True)
class Peaks:
    """The most that one tile does in a cycle, and how IPUs are grouped."""

    flops: float = 32.0
    """Floating-point operations of the matrix unit: of float16, if the program multiplies any."""
    bytes: float = 24.0
    """Loaded from and stored to memory."""
    exchange_bytes: float = 4.0
    ipus_per_machine: int = 4


@dataclass(frozen=True)
class IpuRow:
    """One IPU of a program; replicas do the same."""

    ipu: int
    """Its number in the system."""
    replica: int
    machine: int
    compute_cycles: float
    """Low cycles of its busiest tile."""
    mean_compute_cycles: float
    busy: float
    """Mean compute over all cycles of the program."""
    max_tile_bytes: int
    """Of its fullest tile."""


@dataclass(frozen=True)
class ProfileData:
    """The priced run of one program."""

    target: str
    """Name of the chip."""
    num_ipus: int
    n_tiles: int
    clock_hz: float
    """Clock of a tile."""
    program: Program
    memory: Memory
    tile_compute: np.ndarray
    """[n_tiles] low compute cycles of every tile."""
    host_seconds: tuple[float, float, float]
    """(low, mid, high) of the traffic with the host."""
    unknown_ops: dict[str, int] = field(default_factory=dict)
    """Primitive without a cost rule -> times run; if there is one, the total is a lower bound."""
    notes: tuple[str, ...] = ()
    """Notes for the reader: scaled energies, fitted constants, assumptions."""
    energy_hartree: float | None = None
    """The energy, if the program is an SCF and its caller gave it."""
    subject: str = ""
    """What was computed: the molecule and the level of theory, if the caller gave them."""
    replicas: int = 1
    """Copies of the program that run side by side, each on `num_ipus` IPUs and its own data."""
    staged: bool = False
    """The program names IPUs for its stages (`on_ipu`)."""
    rounds: tuple[int, int] = (1, 1)
    """Updates in a program of stages, and micro-batches in each of them."""
    micro_batches: MicroBatches = field(default_factory=MicroBatches)
    """Of its pipeline."""
    peaks: Peaks = field(default_factory=lambda: Peaks())
    """What the chip could do at most."""

    def steps(self) -> Iterator[Times]:
        """Every step of the program with the number of times that it ran."""
        yield from flat(self.program)

    @property
    def cycles(self) -> Cycles:
        """Cycles of all steps on the device; host traffic is apart, in seconds."""
        return sum((s.cycles * n for s, n in self.steps() if s.kind != "host"), NOTHING)

    @property
    def seconds(self) -> Cycles:
        """Device time, as an interval of seconds."""
        return self.cycles * (1.0 / self.clock_hz)

    @property
    def wall_seconds(self) -> Cycles:
        """Device time and the traffic with the host, which may run beside it."""
        host = [s for s, _ in self.steps() if s.kind == "host"]
        beside = sum((s.cycles for s in host if s.overlapped), NOTHING)
        alone = sum((s.cycles for s in host if not s.overlapped), NOTHING)
        in_turn = self.cycles + alone
        longest = Cycles(max(in_turn.low, beside.low), max(in_turn.high, beside.high))
        return longest * (1.0 / self.clock_hz)

    def total_by(self, attribute: str) -> dict[str, Cycles]:
        """Cycles summed by "kind", "stage", "name" or "how", the largest first."""
        groups = self.grouped(attribute).items()
        totals = {name: sum((s.cycles * n for s, n in steps), NOTHING) for name, steps in groups}
        return dict(sorted(totals.items(), key=lambda item: -item[1].low))

    def grouped(self, attribute: str, kind: str = "") -> dict[str, list[Times]]:
        """Steps on the device, or those of a kind, by "kind", "stage", "name" or "how"."""
        groups: dict[str, list[Times]] = {}
        for step, n in self.steps():
            if step.kind == kind or (not kind and step.kind != "host"):
                groups.setdefault(getattr(step, attribute) or "other", []).append((step, n))
        return groups

    def balance(self, stage: str | None = None) -> float:
        """Mean over largest tile of the compute sets of a stage, weighted by their cycles."""
        steps = self.grouped("kind", "compute").get("compute", [])
        return balance_of([x for x in steps if stage in (None, x[0].stage)])

    def balance_by_stage(self) -> dict[str, float]:
        """`balance` of every stage that has a compute set."""
        stages = self.grouped("stage", "compute")
        return {stage: balance_of(steps) for stage, steps in sorted(stages.items())}

    def ipus(self, whole: float = 0.0) -> tuple[IpuRow, ...]:
        """A row for every IPU of every replica.

        Args:
            whole: Low cycles of the program, if stages run side by side; 0: the sum of its steps.
        """
        load = self.tile_compute.reshape(self.num_ipus, -1)
        memory = self.memory.per_tile.reshape(self.num_ipus, -1)
        cycles = whole or self.cycles.low
        return tuple(
            IpuRow(
                ipu=r * self.num_ipus + k,
                replica=r,
                machine=(r * self.num_ipus + k) // self.peaks.ipus_per_machine,
                compute_cycles=float(load[k].max()),
                mean_compute_cycles=float(load[k].mean()),
                busy=float(load[k].mean() / cycles) if cycles else 0.0,
                max_tile_bytes=int(memory[k].max()),
            )
            for r in range(self.replicas)
            for k in range(self.num_ipus)
        )


def balance_of(compute: list[Times]) -> float:
    """Mean over largest tile of some compute sets, weighted by their cycles."""
    total = sum(s.cycles.low * n for s, n in compute)
    return sum(s.balance * s.cycles.low * n for s, n in compute) / total if total else 1.0


def flat(program: Program, times: float | int = 1) -> Iterator[Times]:
    """Every step of a program with the number of times that it ran."""
    for x in program:
        if isinstance(x, Repeat):
            yield from flat(x.body, times * x.count)
        else:
            yield x, times

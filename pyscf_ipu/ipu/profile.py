"""What a simulation found: the steps of the program, how often each ran, and what it cost.

A `Profile` is data.  `summary`, `html`, `trace` and `diff` present it; nothing in here prices.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

KINDS = ("compute", "exchange", "sync", "host")


@dataclass(frozen=True)
class Cycles:
    """An interval of tile-clock cycles: what perfect code takes, and what compiled code takes."""

    low: float
    high: float

    def __add__(self, other: Cycles) -> Cycles:
        return Cycles(self.low + other.low, self.high + other.high)

    def __mul__(self, count: float | int) -> Cycles:
        return Cycles(self.low * count, self.high * count)


NOTHING = Cycles(0.0, 0.0)


@dataclass(frozen=True)
class Step:
    """One step of the program: a compute set, an exchange, a sync or host traffic.

    kind      of KINDS.
    name      vertex or primitive: "eri_s_sp", "add", "reduce_sum".
    stage     named scope of the engine that it belongs to: "eri", "xc", "eigensolver", ..; "".
    cycles    of one run: for compute, of the busiest tile.
    tiles     tiles that take part; vertices, their number (0 unless compute).
    balance   mean over all tiles of the target of the low cycles, over the largest.
    moved_bytes  leaving a tile (exchange) or crossing to the host.
    how       where the cycles come from: "measured", "formula", "counted", "vendor", "estimated".
    source    the formula or document.
    """

    kind: str
    name: str
    stage: str
    cycles: Cycles
    tiles: int
    vertices: int = 0
    balance: float = 1.0
    moved_bytes: float = 0.0
    how: str = "formula"
    source: str = ""


@dataclass(frozen=True)
class Repeat:
    """Steps that run `count` times in a row: a loop with its real trip count.

    Inside another loop that is the mean over its turns, and need not be a whole number.
    """

    count: float | int
    body: tuple[Step | Repeat, ...]
    name: str = "loop"


Program = tuple["Step | Repeat", ...]


@dataclass(frozen=True)
class Buffer:
    """A variable at the moment of the highest load: its bytes on the fullest tile."""

    name: str
    stage: str
    category: str
    tile_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class Memory:
    """Bytes per tile in PopVision's categories, and over the program.

    limit_bytes       of a tile.
    by_category       {category: [n_tiles] bytes}, each tile at its own highest load.
    always_live       [n_tiles] bytes that are live throughout.
    timeline          (label, bytes of the fullest tile) after each program step that allocates.
    largest           the buffers that fill the fullest tile.
    """

    limit_bytes: int
    by_category: dict[str, np.ndarray]
    always_live: np.ndarray
    timeline: tuple[tuple[str, int], ...]
    largest: tuple[Buffer, ...]

    @property
    def per_tile(self) -> np.ndarray:
        return sum(self.by_category.values(), np.zeros_like(self.always_live))

    @property
    def max_tile_bytes(self) -> int:
        return int(self.per_tile.max())

    @property
    def overflowing(self) -> np.ndarray:
        """Tiles that hold more than they can."""
        return np.flatnonzero(self.per_tile > self.limit_bytes)


@dataclass(frozen=True)
class Profile:
    """The priced run of one program.

    target       name of the chip, `num_ipus` of them; `clock_hz` its tile clock.
    unknown_ops  {primitive: times run} without a cost rule: the total is then a lower bound.
    host_seconds (low, mid, high) of the traffic with the host.
    notes        what the reader must know: scaled energies, fitted constants, assumptions.
    energy_hartree  if the program was an SCF and its caller said so, else None.
    tile_compute [n_tiles] low compute cycles of every tile.
    """

    target: str
    num_ipus: int
    n_tiles: int
    clock_hz: float
    program: Program
    memory: Memory
    tile_compute: np.ndarray
    host_seconds: tuple[float, float, float]
    unknown_ops: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    energy_hartree: float | None = None

    def steps(self) -> Iterator[tuple[Step, float | int]]:
        """Every step of the program with the number of times that it ran."""
        yield from _flat(self.program, 1)

    @property
    def cycles(self) -> Cycles:
        """All steps on the device; host traffic is apart, in seconds."""
        return sum((s.cycles * n for s, n in self.steps() if s.kind != "host"), NOTHING)

    @property
    def seconds(self) -> Cycles:
        """Device time, as an interval of seconds."""
        return self.cycles * (1.0 / self.clock_hz)

    def total_by(self, attribute: str) -> dict[str, Cycles]:
        """Cycles summed by "kind", "stage", "name" or "how", the largest first."""
        found: dict[str, Cycles] = {}
        for step, n in self.steps():
            if step.kind != "host":
                key = getattr(step, attribute) or "other"
                found[key] = found.get(key, NOTHING) + step.cycles * n
        return dict(sorted(found.items(), key=lambda item: -item[1].low))

    def balance(self, stage: str | None = None) -> float:
        """Mean over largest tile of the compute sets of a stage, weighted by their cycles."""
        compute = [
            (s, n) for s, n in self.steps() if s.kind == "compute" and stage in (None, s.stage)
        ]
        total = sum(s.cycles.low * n for s, n in compute)
        return sum(s.balance * s.cycles.low * n for s, n in compute) / total if total else 1.0

    def balance_by_stage(self) -> dict[str, float]:
        """`balance` of every stage that has a compute set."""
        stages = {s.stage for s, _ in self.steps() if s.kind == "compute"}
        return {stage or "other": self.balance(stage) for stage in sorted(stages)}

    def to_dict(self) -> dict[str, Any]:
        """Everything, in types that JSON knows."""
        stages = self.total_by("stage")
        return {
            "target": self.target,
            "num_ipus": self.num_ipus,
            "tiles": self.n_tiles,
            "clock_hz": self.clock_hz,
            "energy_hartree": self.energy_hartree,
            "cycles": {
                "total": self.cycles.low,
                "high": self.cycles.high,
                "is_lower_bound": bool(self.unknown_ops),
                "by_stage": {k: asdict(v) for k, v in stages.items()},
                "by_kind": {k: asdict(v) for k, v in self.total_by("kind").items()},
                "by_vertex": {k: asdict(v) for k, v in self.total_by("name").items()},
            },
            "seconds": asdict(self.seconds),
            "host_seconds": dict(zip(("low", "mid", "high"), self.host_seconds, strict=True)),
            "memory": {
                "limit_bytes": self.memory.limit_bytes,
                "max_tile_bytes": self.memory.max_tile_bytes,
                "overflowing_tiles": self.memory.overflowing.tolist(),
                "by_category": {
                    k: {"max_bytes": int(v.max()), "total_bytes": int(v.sum())}
                    for k, v in self.memory.by_category.items()
                },
                "per_tile_bytes": self.memory.per_tile.tolist(),
                "always_live_bytes": self.memory.always_live.tolist(),
                "timeline": [list(x) for x in self.memory.timeline],
                "largest": [asdict(b) for b in self.memory.largest],
            },
            "tile_balance": {"all": self.balance(), **self.balance_by_stage()},
            "tile_compute_cycles": self.tile_compute.tolist(),
            "unknown_ops": self.unknown_ops,
            "provenance": {k: asdict(v) for k, v in self.total_by("how").items()},
            "notes": list(self.notes),
            "program": [_node(x) for x in self.program],
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """`to_dict` as text; written to `path` if one is given."""
        text = json.dumps(self.to_dict())
        if path is not None:
            Path(path).write_text(text)
        return text

    def summary(self) -> str:
        """The profile as text for the terminal, of at most 100 columns."""
        from pyscf_ipu.ipu.summary import summary

        return summary(self)

    def to_html(self, path: str | Path, other: Profile | None = None) -> None:
        """Write a report for the browser, one file; compared with `other` if it is given."""
        from pyscf_ipu.ipu.html import to_html

        to_html(self, path, other)

    def to_trace(self, path: str | Path, max_events: int = 200_000) -> None:
        """Write a trace for Perfetto of at most `max_events` steps and loops."""
        from pyscf_ipu.ipu.trace import to_trace

        to_trace(self, path, max_events)


def _flat(program: Program, times: float | int) -> Iterator[tuple[Step, float | int]]:
    for x in program:
        if isinstance(x, Repeat):
            yield from _flat(x.body, times * x.count)
        else:
            yield x, times


def _node(x: Step | Repeat) -> dict[str, Any]:
    if isinstance(x, Repeat):
        return {"repeat": x.count, "name": x.name, "body": [_node(y) for y in x.body]}
    return asdict(x)

"""The findings of a simulation: the steps of a program, how often each ran, and its cost.

Nothing in here prices or presents: `pyscf_ipu.ipu.profile.profile` adds the reports.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np


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


@dataclass(frozen=True)
class Repeat:
    """Steps that run `count` times in a row: a loop with its real trip count.

    Inside another loop the count is the mean over the turns of that loop, possibly a fraction.
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
    """Bytes per tile in PopVision's categories, and over the program."""

    limit_bytes: int
    """Capacity of a tile."""
    by_category: dict[str, np.ndarray]
    """Category -> bytes [n_tiles], each tile at its own highest load."""
    always_live: np.ndarray
    """[n_tiles] bytes that are live throughout."""
    timeline: tuple[tuple[str, int], ...]
    """(label, bytes of the fullest tile) after each program step that allocates."""
    largest: tuple[Buffer, ...]
    """The buffers that fill the fullest tile."""

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

    def steps(self) -> Iterator[tuple[Step, float | int]]:
        """Every step of the program with the number of times that it ran."""
        yield from _flat(self.program, 1)

    @property
    def cycles(self) -> Cycles:
        """Cycles of all steps on the device; host traffic is apart, in seconds."""
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

    def to_dict(self) -> dict[str, object]:
        """Everything, in types that JSON has."""
        return figures(self) | {"program": [_node(x) for x in self.program]}

    def to_json(self, path: str | Path | None = None) -> str:
        """`to_dict` as text; written to `path` if one is given."""
        text = json.dumps(self.to_dict())
        if path is not None:
            Path(path).write_text(text)
        return text


def figures(profile: ProfileData) -> dict[str, object]:
    """Everything but the program, in types that JSON has."""
    memory, cycles = profile.memory, profile.cycles
    return {
        "target": profile.target,
        "num_ipus": profile.num_ipus,
        "tiles": profile.n_tiles,
        "clock_hz": profile.clock_hz,
        "energy_hartree": profile.energy_hartree,
        "cycles": {
            "total": cycles.low,
            "high": cycles.high,
            "is_lower_bound": bool(profile.unknown_ops),
            "by_stage": _plain_totals(profile, "stage"),
            "by_kind": _plain_totals(profile, "kind"),
            "by_vertex": _plain_totals(profile, "name"),
        },
        "seconds": asdict(profile.seconds),
        "host_seconds": dict(zip(("low", "mid", "high"), profile.host_seconds, strict=True)),
        "memory": {
            "limit_bytes": memory.limit_bytes,
            "max_tile_bytes": memory.max_tile_bytes,
            "overflowing_tiles": memory.overflowing.tolist(),
            "by_category": {
                k: {"max_bytes": int(v.max()), "total_bytes": int(v.sum())}
                for k, v in memory.by_category.items()
            },
            "per_tile_bytes": memory.per_tile.tolist(),
            "always_live_bytes": memory.always_live.tolist(),
            "timeline": [list(x) for x in memory.timeline],
            "largest": [asdict(b) for b in memory.largest],
        },
        "tile_balance": {"all": profile.balance(), **profile.balance_by_stage()},
        "tile_compute_cycles": profile.tile_compute.tolist(),
        "unknown_ops": profile.unknown_ops,
        "provenance": _plain_totals(profile, "how"),
        "notes": list(profile.notes),
        "subject": profile.subject,
    }


def _plain_totals(profile: ProfileData, attribute: str) -> dict[str, dict[str, float]]:
    return {name: asdict(cycles) for name, cycles in profile.total_by(attribute).items()}


def _flat(program: Program, times: float | int) -> Iterator[tuple[Step, float | int]]:
    for x in program:
        if isinstance(x, Repeat):
            yield from _flat(x.body, times * x.count)
        else:
            yield x, times


def _node(x: Step | Repeat) -> dict[str, object]:
    if isinstance(x, Repeat):
        return {"repeat": x.count, "name": x.name, "body": [_node(y) for y in x.body]}
    return asdict(x)

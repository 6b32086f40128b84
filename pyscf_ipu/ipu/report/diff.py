"""Two Profiles side by side: what changed, stage by stage."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pyscf_ipu.ipu.findings.totals import chips
from pyscf_ipu.ipu.profile.data import NOTHING, ProfileData
from pyscf_ipu.ipu.profile.regions import Memory
from pyscf_ipu.ipu.profile.text import clip, data_size, duration, table, whole

_NAME = 34


@dataclass(frozen=True)
class Row:
    """One quantity of profile A and of profile B; zero where a profile has none of it."""

    name: str
    a: float
    b: float

    @property
    def ratio(self) -> float | None:
        """B over A; None if A is zero."""
        return self.b / self.a if self.a else None


@dataclass(frozen=True)
class Comparison:
    """Rows of two profiles."""

    names: tuple[str, str]
    """Target and number of IPUs of A and of B."""
    low: tuple[Row, ...]
    """Cycles by stage if the code is perfect, then "total"."""
    high: tuple[Row, ...]
    """The same for compiled code."""
    seconds: tuple[Row, ...]
    """On the device, and for the traffic with the host."""
    memory: tuple[Row, ...]
    """Bytes of the fullest tile by category, then of the fullest tile in all."""


def compare(a: ProfileData, b: ProfileData) -> Comparison:
    """The quantities of both profiles, in the order of A's stages; B's own ones follow."""
    x, y = a.total_by("stage"), b.total_by("stage")
    pairs = [(name, x.get(name, NOTHING), y.get(name, NOTHING)) for name in x | y]
    pairs.append(("total", a.cycles, b.cycles))
    return Comparison(
        names=(chips(a), chips(b)),
        low=tuple(Row(name, x.low, y.low) for name, x, y in pairs),
        high=tuple(Row(name, x.high, y.high) for name, x, y in pairs),
        seconds=(
            Row("device, low", a.seconds.low, b.seconds.low),
            Row("device, high", a.seconds.high, b.seconds.high),
            Row("host exchange, about", a.host_seconds[1], b.host_seconds[1]),
        ),
        memory=_memory(a.memory, b.memory),
    )


def diff(a: ProfileData, b: ProfileData) -> str:
    """A terminal table of at most 100 columns: cycles by stage, times and memory of A and B."""
    comparison = compare(a, b)
    header = ["", "A low", "A high", "B low", "B high", "B / A"]
    cycles = [header]
    for low, high in zip(comparison.low, comparison.high, strict=True):
        values = (low.a, high.a, low.b, high.b)
        cycles.append([clip(low.name, _NAME), *(whole(v) for v in values), _ratio(low)])
    lines = ["Profiles", *table(zip("AB", comparison.names, strict=True), "< <"), ""]
    lines += ["Cycles by stage", *table(cycles, "< > > > > >"), ""]
    lines += ["Time", *_two_columns(comparison.seconds, duration), ""]
    lines += ["Memory of the fullest tile", *_two_columns(comparison.memory, data_size)]
    if a.unknown_ops or b.unknown_ops:
        lines += ["", *_unknown(a, b)]
    return "\n".join(lines)


def _memory(a: Memory, b: Memory) -> tuple[Row, ...]:
    none = np.zeros(1)
    x, y = a.by_category, b.by_category
    rows = [
        Row(name, float(x.get(name, none).max()), float(y.get(name, none).max())) for name in x | y
    ]
    return (*rows, Row("total", float(a.max_tile_bytes), float(b.max_tile_bytes)))


def _ratio(row: Row) -> str:
    return "-" if row.ratio is None else f"{row.ratio:.3f}"


def _two_columns(rows: tuple[Row, ...], unit: Callable[[float], str]) -> list[str]:
    cells = [[clip(r.name, _NAME), unit(r.a), unit(r.b), _ratio(r)] for r in rows]
    return table([["", "A", "B", "B / A"], *cells], "< > > >")


def _unknown(a: ProfileData, b: ProfileData) -> list[str]:
    rows = [
        (name, clip(", ".join(sorted(p.unknown_ops)), 80))
        for name, p in (("A", a), ("B", b))
        if p.unknown_ops
    ]
    return ["Operations without a cost rule: the cycles are lower bounds", *table(rows, "< <")]

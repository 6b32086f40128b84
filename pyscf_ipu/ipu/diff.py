"""Two Profiles side by side: what changed, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from pyscf_ipu.ipu.profile import NOTHING, Cycles, Profile
from pyscf_ipu.ipu.text import clip, data_size, duration, table, whole
from pyscf_ipu.ipu.totals import title

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
    """Rows of two profiles.

    names   of A and of B: target and number of IPUs.
    low     cycles by stage if the code is perfect, then "total"; high, as compiled.
    seconds on the device and for the traffic with the host.
    memory  bytes of the fullest tile by category, then of the fullest tile in all.
    """

    names: tuple[str, str]
    low: tuple[Row, ...]
    high: tuple[Row, ...]
    seconds: tuple[Row, ...]
    memory: tuple[Row, ...]


def compare(a: Profile, b: Profile) -> Comparison:
    """The quantities of both profiles, in the order of A's stages; B's own ones follow."""
    pairs = _paired_cycles(a, b)
    return Comparison(
        names=(title(a), title(b)),
        low=tuple(Row(name, x.low, y.low) for name, x, y in pairs),
        high=tuple(Row(name, x.high, y.high) for name, x, y in pairs),
        seconds=_seconds(a, b),
        memory=_memory(a, b),
    )


def diff(a: Profile, b: Profile) -> str:
    """A terminal table of at most 100 columns: cycles by stage, times and memory of A and B."""
    found = compare(a, b)
    header = ["", "A low", "A high", "B low", "B high", "B / A"]
    cycles = [header]
    for low, high in zip(found.low, found.high, strict=True):
        values = (low.a, high.a, low.b, high.b)
        cycles.append([clip(low.name, _NAME), *(whole(v) for v in values), _ratio(low)])
    lines = ["Profiles", *table([("A", found.names[0]), ("B", found.names[1])], "ll"), ""]
    lines += ["Cycles by stage", *table(cycles, "lrrrrr"), ""]
    lines += ["Time", *_two_columns(found.seconds, duration), ""]
    lines += ["Memory of the fullest tile", *_two_columns(found.memory, data_size)]
    if a.unknown_ops or b.unknown_ops:
        lines += ["", *_unknown(a, b)]
    return "\n".join(lines)


def _merged(a: Iterable[str], b: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*a, *b]))


def _paired_cycles(a: Profile, b: Profile) -> list[tuple[str, Cycles, Cycles]]:
    x, y = a.total_by("stage"), b.total_by("stage")
    pairs = [(name, x.get(name, NOTHING), y.get(name, NOTHING)) for name in _merged(x, y)]
    return [*pairs, ("total", a.cycles, b.cycles)]


def _seconds(a: Profile, b: Profile) -> tuple[Row, ...]:
    return (
        Row("device, low", a.seconds.low, b.seconds.low),
        Row("device, high", a.seconds.high, b.seconds.high),
        Row("host exchange, about", a.host_seconds[1], b.host_seconds[1]),
    )


def _memory(a: Profile, b: Profile) -> tuple[Row, ...]:
    x, y = a.memory.by_category, b.memory.by_category
    none = np.zeros(1)
    rows = [
        Row(name, float(x.get(name, none).max()), float(y.get(name, none).max()))
        for name in _merged(x, y)
    ]
    fullest = Row("total", float(a.memory.max_tile_bytes), float(b.memory.max_tile_bytes))
    return (*rows, fullest)


def _ratio(row: Row) -> str:
    return "-" if row.ratio is None else f"{row.ratio:.3f}"


def _two_columns(rows: tuple[Row, ...], unit: Callable[[float], str]) -> list[str]:
    cells = [[clip(r.name, _NAME), unit(r.a), unit(r.b), _ratio(r)] for r in rows]
    return table([["", "A", "B", "B / A"], *cells], "lrrr")


def _unknown(a: Profile, b: Profile) -> list[str]:
    rows = [
        (name, clip(", ".join(sorted(p.unknown_ops)), 80))
        for name, p in (("A", a), ("B", b))
        if p.unknown_ops
    ]
    return ["Operations without a cost rule: the cycles are lower bounds", *table(rows, "ll")]

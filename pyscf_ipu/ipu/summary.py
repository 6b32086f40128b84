"""A Profile as text for the terminal.

The sections follow the profile summary of the Poplar SDK, "Target", "Graph", "Memory Usage" and
"Execution" (printed in https://github.com/graphcore/tensorflow, docs on logging and profiling),
so that a reader of one finds his way in the other.  What that summary need not say, this one
must: which numbers are an interval, where the cycles come from and what could not be priced.
"""

from __future__ import annotations

import textwrap
from itertools import pairwise

import numpy as np

from pyscf_ipu.ipu.profile import NOTHING, Profile
from pyscf_ipu.ipu.text import WIDTH, bar, clip, data_size, duration, percent, table, whole
from pyscf_ipu.ipu.totals import program_counts, shares, vertex_totals

_TOP_TILES = 5
_TOP_BUFFERS = 10
_TOP_VERTICES = 15
_BINS = 8
_NAME = 30  # characters of a name
_EMPTY = ""


def summary(profile: Profile) -> str:
    """The profile as text of at most 100 columns, one section after the other."""
    sections = (_target, _program, _memory, _execution, _stages, _vertices, _provenance)
    parts = [section(profile) for section in (*sections, _unknown_ops, _notes)]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _target(profile: Profile) -> list[str]:
    limit = profile.memory.limit_bytes
    rows = [
        ("Name", profile.target),
        ("IPUs", whole(profile.num_ipus)),
        ("Tiles", whole(profile.n_tiles)),
        ("Tile clock", f"{profile.clock_hz / 1e9:.3f} GHz"),
        ("Memory per tile", data_size(limit)),
        ("Memory of all tiles", data_size(limit * profile.n_tiles)),
    ]
    return ["Target", *table(rows, "lr")]


def _program(profile: Profile) -> list[str]:
    rows = [(_EMPTY, "written", "executed")]
    for name, count in program_counts(profile).items():
        rows.append((name.capitalize(), whole(count.written), whole(count.executed)))
    return ["Program", *table(rows, "lrr")]


def _memory(profile: Profile) -> list[str]:
    memory, per_tile = profile.memory, profile.memory.per_tile
    fullest, over = int(per_tile.argmax()), memory.overflowing
    total = int(per_tile.sum())
    room = memory.limit_bytes * profile.n_tiles
    rows = [
        ("Total", f"{data_size(total)}  ({percent(total / room)} of all tiles)"),
        ("Always live", data_size(int(memory.always_live.sum()))),
        ("Maximum", f"{data_size(memory.max_tile_bytes)} on tile {fullest}"),
        ("Tiles out of memory", f"{len(over)}{_first(over)}"),
    ]
    lines = ["Memory Usage", *table(rows, "ll"), _EMPTY, "  Tile histogram", *_histogram(profile)]
    lines += [_EMPTY, "  Fullest tiles", *_fullest_tiles(profile)]
    lines += [_EMPTY, "  By category", *_categories(profile)]
    if memory.largest:
        lines += [_EMPTY, f"  Largest buffers on tile {fullest}", *_largest(profile)]
    return lines


def _first(tiles: np.ndarray) -> str:
    if not len(tiles):
        return _EMPTY
    more = ", .." if len(tiles) > _TOP_TILES else _EMPTY
    return "  (" + ", ".join(str(t) for t in tiles[:_TOP_TILES]) + more + ")"


def _histogram(profile: Profile) -> list[str]:
    """Tiles by eighths of what a tile holds; those that hold too much in a bin of their own."""
    per_tile, limit = profile.memory.per_tile, profile.memory.limit_bytes
    edges = np.linspace(0, limit, _BINS + 1)
    # A tile filled to the last byte is full, not out of memory: bins include their upper edge.
    places = np.clip(np.searchsorted(edges, per_tile, side="left") - 1, 0, _BINS)
    counts = np.bincount(places, minlength=_BINS + 1)
    names = [f"{data_size(a)} to {data_size(b)}" for a, b in pairwise(edges)]
    rows = [
        (f"  {name}", whole(int(n)), bar(float(n) / len(per_tile), 40))
        for name, n in zip([*names, f"over {data_size(limit)}"], counts, strict=True)
    ]
    return table(rows, "lrl")


def _fullest_tiles(profile: Profile) -> list[str]:
    per_tile, limit = profile.memory.per_tile, profile.memory.limit_bytes
    order = np.argsort(-per_tile, kind="stable")[:_TOP_TILES]
    rows = [
        (f"  tile {t}", data_size(int(per_tile[t])), percent(float(per_tile[t]) / limit))
        for t in order
    ]
    return table(rows, "lrr")


def _categories(profile: Profile) -> list[str]:
    rows = [(_EMPTY, "fullest tile", "all tiles")]
    by_size = sorted(profile.memory.by_category.items(), key=lambda item: -int(item[1].sum()))
    for name, tiles in by_size:
        cells = (data_size(int(tiles.max())), data_size(int(tiles.sum())))
        rows.append(("  " + clip(name, _NAME), *cells))
    return table(rows, "lrr")


def _largest(profile: Profile) -> list[str]:
    rows = [(_EMPTY, "stage", "category", "this tile", "all tiles")]
    for b in profile.memory.largest[:_TOP_BUFFERS]:
        sizes = (data_size(b.tile_bytes), data_size(b.total_bytes))
        rows.append(("  " + clip(b.name, _NAME), clip(b.stage, 14), clip(b.category, 20), *sizes))
    return table(rows, "lllrr")


def _execution(profile: Profile) -> list[str]:
    kinds, total, tiles = profile.total_by("kind"), profile.cycles, profile.tile_compute
    part = shares(kinds)
    busy = tiles[tiles > 0]
    bound = "Total cycles, at least" if profile.unknown_ops else "Total cycles"
    rows = [(_EMPTY, "low", "high", "share"), (bound, whole(total.low), whole(total.high), "")]
    for kind, name in (
        ("compute", "Compute, busiest tile of each step"),
        ("exchange", "Exchange"),
        ("sync", "Sync"),
    ):
        c = kinds.get(kind, NOTHING)
        rows.append((name, whole(c.low), whole(c.high), percent(part.get(kind, 0.0))))
    averages = (
        (f"Compute of the busiest tile, {int(tiles.argmax())}", tiles.max()),
        ("Compute, tile average including idle", tiles.mean()),
        ("Compute, tile average excluding idle", busy.mean() if len(busy) else 0.0),
    )
    rows += [(name, whole(float(value)), _EMPTY, _EMPTY) for name, value in averages]
    return ["Execution", *table(rows, "lrrr"), _EMPTY, *_times(profile)]


def _times(profile: Profile) -> list[str]:
    low, mid, high = profile.host_seconds
    time = f"{duration(profile.seconds.low)} to {duration(profile.seconds.high)}"
    rows = [
        ("Time on the device", f"at least {time}" if profile.unknown_ops else time),
        ("Host exchange", f"{duration(low)} to {duration(high)}, about {duration(mid)}"),
        ("Tile balance", f"{profile.balance():.2f}"),
    ]
    if profile.energy_hartree is not None:
        rows.append(("Energy", f"{profile.energy_hartree:.6f} hartree"))
    return table(rows, "ll")


def _stages(profile: Profile) -> list[str]:
    stages = profile.total_by("stage")
    part, balance = shares(stages), profile.balance_by_stage()
    rows = [(_EMPTY, "low", "high", "share", "balance", _EMPTY)]
    for name, c in stages.items():
        even = f"{balance[name]:.2f}" if name in balance else _EMPTY
        cells = (whole(c.low), whole(c.high), percent(part[name]), even, bar(part[name], 20))
        rows.append((clip(name, _NAME), *cells))
    return ["Cycles by stage", *table(rows, "lrrrrl")]


def _vertices(profile: Profile) -> list[str]:
    vertices = vertex_totals(profile)
    if not vertices:
        return []
    rows = [(_EMPTY, "low", "high", "instances", "how")]
    for v in vertices[:_TOP_VERTICES]:
        name, cells = clip(v.name, _NAME), (whole(v.cycles.low), whole(v.cycles.high))
        rows.append((name, *cells, whole(v.instances), clip(v.how, 18)))
    if rest := vertices[_TOP_VERTICES:]:
        c = sum((v.cycles for v in rest), NOTHING)
        instances = whole(sum(v.instances for v in rest))
        rows.append((f"{len(rest)} more", whole(c.low), whole(c.high), instances, _EMPTY))
    return ["Cycles by vertex type", *table(rows, "lrrrl")]


def _provenance(profile: Profile) -> list[str]:
    rows = [(how, percent(x)) for how, x in shares(profile.total_by("how")).items()]
    return ["Provenance of the cycles", *table(rows, "lr")] if rows else []


def _unknown_ops(profile: Profile) -> list[str]:
    if not profile.unknown_ops:
        return []
    by_times = sorted(profile.unknown_ops.items(), key=lambda item: -item[1])
    rows = [(clip(name, 60), f"{whole(n)} times") for name, n in by_times]
    return ["Operations without a cost rule, not in the total", *table(rows, "lr")]


def _notes(profile: Profile) -> list[str]:
    if not profile.notes:
        return []
    style = {"width": WIDTH, "initial_indent": "  - ", "subsequent_indent": "    "}
    return ["Notes", *(line for note in profile.notes for line in textwrap.wrap(note, **style))]

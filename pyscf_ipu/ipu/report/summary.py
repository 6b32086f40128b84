"""A Profile as text for the terminal.

The sections follow the profile summary of the Poplar SDK, "Target", "Graph", "Memory Usage" and
"Execution" (printed in https://github.com/graphcore/tensorflow, docs on logging and profiling), so
that its readers find their way.  This one also says which numbers are an interval, where the
cycles come from and what could not be priced.
"""

import textwrap
from itertools import pairwise

import numpy as np

from pyscf_ipu.ipu.findings.pipelines import pipeline
from pyscf_ipu.ipu.findings.rates import rates
from pyscf_ipu.ipu.findings.totals import program_counts, shares, vertex_totals
from pyscf_ipu.ipu.profile.data import NOTHING, Cycles, ProfileData
from pyscf_ipu.ipu.profile.text import WIDTH, bar, clip, data_size, duration, percent, table, whole

_TOP_TILES = 5
_TOP_BUFFERS = 10
_TOP_VERTICES = 15
_BINS = 8
_NAME = 30  # characters of a name
_KINDS = {"compute": "Compute, busiest tile of each step", "exchange": "Exchange", "sync": "Sync"}


def summary(profile: ProfileData) -> str:
    """The profile as text for the terminal, of at most 100 columns."""
    first = (_target, _program, _memory, _execution, _stages, pipeline_lines, _rates, _vertices)
    parts = [section(profile) for section in (*first, _provenance, _unknown_ops, _notes)]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _target(profile: ProfileData) -> list[str]:
    limit = profile.memory.limit_bytes
    rows = [
        ("Name", profile.target),
        ("Replicas", whole(profile.replicas)),
        ("IPUs" if profile.replicas == 1 else "IPUs of a replica", whole(profile.num_ipus)),
        ("Tiles", whole(profile.n_tiles)),
        ("Tile clock", f"{profile.clock_hz / 1e9:.3f} GHz"),
        ("Memory per tile", data_size(limit)),
        ("Memory of all tiles", data_size(limit * profile.n_tiles)),
    ]
    return ["Target", *table(rows, "< >")]


def _program(profile: ProfileData) -> list[str]:
    counts = program_counts(profile).items()
    rows = [(name.capitalize(), whole(c.written), whole(c.executed)) for name, c in counts]
    return ["Program", *table([("", "written", "executed"), *rows], "< > >")]


def _memory(profile: ProfileData) -> list[str]:
    memory, per_tile = profile.memory, profile.memory.per_tile
    fullest, over = int(per_tile.argmax()), memory.overflowing
    total = int(per_tile.sum())
    some = ", ".join(map(str, over[:_TOP_TILES])) + (", .." if len(over) > _TOP_TILES else "")
    share = percent(total / (memory.limit_bytes * profile.n_tiles))
    rows = [
        ("Total", f"{data_size(total)}  ({share} of all tiles)"),
        ("Always live", data_size(int(memory.always_live.sum()))),
        ("Maximum", f"{data_size(memory.max_tile_bytes)} on tile {fullest}"),
        ("Tiles out of memory", f"{len(over)}  ({some})" if some else "0"),
        *_limits(profile),
    ]
    lines = ["Memory Usage", *table(rows, "< <"), "", "  Tile histogram", *_histogram(profile)]
    lines += ["", "  Fullest tiles", *_fullest_tiles(profile)]
    categories = dict(sorted(memory.by_category.items(), key=lambda x: -x[1].sum()))
    lines += ["", "  By category", *_parts(categories)]
    if memory.regions:
        lines += ["", "  By region", *_parts(memory.regions)]
    if memory.largest:
        lines += ["", f"  Largest buffers on tile {fullest}", *_largest(profile)]
    return lines


def _limits(profile: ProfileData) -> list[tuple[str, str]]:
    """What may be full before the whole tile is: code, interleaved memory, the machine's DRAM."""
    memory, rows = profile.memory, []

    def row(name: str, used: int, limit: int, over: int) -> None:
        state = f", too much on {whole(over)} tiles" if over else ""
        rows.append((name, f"{data_size(used)} of {data_size(limit)}{state}"))

    if (code := memory.executable_bytes) is not None:
        row("Code, most on a tile", int(memory.code.max()), code, over=len(memory.code_overflowing))
        operands, rest = int(memory.only_interleaved.max(initial=0)), memory.limit_bytes - code
        row("Matrix operands, most", operands, rest, over=len(memory.interleaved_overflowing))
    if memory.streaming_bytes and (dram := memory.streaming_limit_bytes):
        over = int(memory.streaming_bytes > dram)
        row("Streaming memory", memory.streaming_bytes, dram, over=over * profile.n_tiles)
    return rows


def _parts(parts: dict[str, np.ndarray]) -> list[str]:
    rows = [
        ("  " + clip(name, _NAME), data_size(int(tiles.max())), data_size(int(tiles.sum())))
        for name, tiles in parts.items()
    ]
    return table([("", "fullest tile", "all tiles"), *rows], "< > >")


def _histogram(profile: ProfileData) -> list[str]:
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
    return table(rows, "< > <")


def _fullest_tiles(profile: ProfileData) -> list[str]:
    per_tile, limit = profile.memory.per_tile, profile.memory.limit_bytes
    rows = [
        (f"  tile {t}", data_size(int(per_tile[t])), percent(float(per_tile[t]) / limit))
        for t in np.argsort(-per_tile, kind="stable")[:_TOP_TILES]
    ]
    return table(rows, "< > >")


def _largest(profile: ProfileData) -> list[str]:
    rows = [("", "stage", "category", "this tile", "all tiles")]
    for b in profile.memory.largest[:_TOP_BUFFERS]:
        sizes = (data_size(b.tile_bytes), data_size(b.total_bytes))
        rows.append(("  " + clip(b.name, _NAME), clip(b.stage, 14), clip(b.category, 20), *sizes))
    return table(rows, "< < < > >")


def _interval(cycles: Cycles) -> tuple[str, str]:
    return whole(cycles.low), whole(cycles.high)


def _execution(profile: ProfileData) -> list[str]:
    kinds, tiles = profile.total_by("kind"), profile.tile_compute
    part, busy = shares(kinds), tiles[tiles > 0]
    bound = "Total cycles, at least" if profile.unknown_ops else "Total cycles"
    rows = [("", "low", "high", "share"), (bound, *_interval(profile.cycles), "")]
    for kind, name in _KINDS.items():
        rows.append((name, *_interval(kinds.get(kind, NOTHING)), percent(part.get(kind, 0.0))))
    averages = {
        f"Compute of the busiest tile, {int(tiles.argmax())}": tiles.max(),
        "Compute, tile average including idle": tiles.mean(),
        "Compute, tile average excluding idle": busy.mean() if len(busy) else 0.0,
    }
    rows += [(name, whole(float(value)), "", "") for name, value in averages.items()]
    return ["Execution", *table(rows, "< > > >"), "", *_times(profile)]


def _times(profile: ProfileData) -> list[str]:
    low, mid, high = map(duration, profile.host_seconds)
    time = f"{duration(profile.seconds.low)} to {duration(profile.seconds.high)}"
    rows = [
        ("Time on the device", f"at least {time}" if profile.unknown_ops else time),
        ("Host exchange", f"{low} to {high}, about {mid}"),
        *_wall(profile),
        ("Tile balance", f"{profile.balance():.2f}"),
    ]
    if (whole_program := rates(profile)["all"]).flops:
        share = f"{percent(whole_program.flops_share)} of the matrix units' peak"
        rows.append(("Floating-point operations", f"{whole_program.flops / 1e9:.3f} G, {share}"))
    if profile.energy_hartree is not None:
        rows.append(("Energy", f"{profile.energy_hartree:.6f} hartree"))
    return table(rows, "< <")


def _wall(profile: ProfileData) -> list[tuple[str, str]]:
    """Both together, if the program says how they run."""
    if not any(s.kind == "host" and s.cycles.high for s, _ in profile.steps()):
        return []
    wall, beside = profile.wall_seconds, any(s.overlapped for s, _ in profile.steps())
    name = "Both, side by side" if beside else "Both, one after the other"
    return [(name, f"{duration(wall.low)} to {duration(wall.high)}")]


def _stages(profile: ProfileData) -> list[str]:
    stages = profile.total_by("stage")
    part, balance = shares(stages), profile.balance_by_stage()
    rows = [("", "low", "high", "share", "balance", "")]
    for name, c in stages.items():
        even = f"{balance[name]:.2f}" if name in balance else ""
        cells = (*_interval(c), percent(part[name]), even, bar(part[name], 20))
        rows.append((clip(name, _NAME), *cells))
    return ["Cycles by stage", *table(rows, "< > > > > <")]


def _rates(profile: ProfileData) -> list[str]:
    reached = {
        name: rate for name, rate in rates(profile).items() if rate.flops or rate.memory_bytes
    }
    if not reached:
        return []
    rows = [("", "Gflop", "flop/s", "of peak", "memory", "of peak", "bound by")]
    for name, r in sorted(reached.items(), key=lambda item: -item[1].cycles):
        speed = f"{r.flops_per_second / 1e12:.3f} T"
        work = f"{r.flops / 1e9:.3f}", speed, percent(r.flops_share)
        moved = f"{r.bytes_per_second / 1e12:.3f} TB/s", percent(r.bytes_share)
        rows.append((clip(name, _NAME), *work, *moved, r.bound))
    return ["Rates, of low cycles", *table(rows, "< > > > > > <")]


def pipeline_lines(profile: ProfileData) -> list[str]:
    """The stages, the schedule and the bubble of a program of stages."""
    schedule = pipeline(profile)
    if schedule is None:
        return []
    rows, order = [("", "low", "high")], schedule.micro_batches
    parts = ("forward", "backward", "update") if schedule.trained else ()
    for k, stage in enumerate(schedule.stages):
        rows.append((f"IPU {k}, one micro-batch", *_interval(stage.both)))
        rows += [(f"  {part}", *_interval(getattr(stage, part))) for part in parts]
    how = f", {order.order}{', recomputed' * order.recompute}" if parts else ""
    rows.append((f"{order.count} micro-batches{how}", *_interval(schedule.cycles)))
    phases = {name: x for name, x in schedule.phases.items() if x or name != "update"}
    rows += [(f"  {name.replace('_', '-')}", whole(x), "") for name, x in phases.items()]
    rows.append(("Bubble", percent(schedule.bubble), ""))
    return ["Pipeline", *table(rows, "< > >")]


def _vertices(profile: ProfileData) -> list[str]:
    vertices = vertex_totals(profile)
    if not vertices:
        return []
    rows = [("", "low", "high", "instances", "how")]
    for v in vertices[:_TOP_VERTICES]:
        rows.append(
            (clip(v.name, _NAME), *_interval(v.cycles), whole(v.instances), clip(v.how, 18))
        )
    if rest := vertices[_TOP_VERTICES:]:
        cycles = sum((v.cycles for v in rest), NOTHING)
        instances = whole(sum(v.instances for v in rest))
        rows.append((f"{len(rest)} more", *_interval(cycles), instances, ""))
    return ["Cycles by vertex type", *table(rows, "< > > > <")]


def _provenance(profile: ProfileData) -> list[str]:
    rows = [(how, percent(x)) for how, x in shares(profile.total_by("how")).items()]
    return ["Provenance of the cycles", *table(rows, "< >")] if rows else []


def _unknown_ops(profile: ProfileData) -> list[str]:
    by_times = sorted(profile.unknown_ops.items(), key=lambda item: -item[1])
    rows = [(clip(name, 60), f"{whole(n)} times") for name, n in by_times]
    title = "Operations without a cost rule, not in the total"
    return [title, *table(rows, "< >")] if rows else []


def _notes(profile: ProfileData) -> list[str]:
    style = {"width": WIDTH, "initial_indent": "  - ", "subsequent_indent": "    "}
    lines = [line for note in profile.notes for line in textwrap.wrap(note, **style)]
    return ["Notes", *lines] if lines else []

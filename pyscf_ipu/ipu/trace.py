"""A Profile as a trace for Perfetto (https://ui.perfetto.dev) or chrome://tracing.

The format is the Trace Event Format of Chromium: "X" events with a start and a duration in
microseconds, "i" events without a duration, "M" events that name the lanes.  Events of a lane
either follow or contain each other.  Times are those of the low cycles at the tile clock.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pyscf_ipu.ipu.profile import Profile, Program, Repeat, Step
from pyscf_ipu.ipu.totals import title

LANES = ("loops", "compute", "exchange", "sync", "host")
_PROCESS = 1
_Place = tuple[int, ...]  # of a loop: indices, from the program inwards


@dataclass(frozen=True)
class _Span:
    """A step or a loop, the cycles of all its runs, and its parts if the loop is opened."""

    node: Step | Repeat
    cycles: float
    opened: bool = False
    body: tuple[_Span, ...] = ()


def to_trace(profile: Profile, path: str | Path, max_events: int = 200_000) -> None:
    """Write the trace to `path`.

    max_events  the most steps and loops in the file.  Loops for which there is no room become one
                event with args {"repeats": n}; should that not suffice, one event stands for the
                end of the program, with args {"steps": n}.

    Raises ValueError if max_events is less than 1.
    """
    trace = {
        "traceEvents": [*_lane_names(profile), *trace_events(profile, max_events)],
        "displayTimeUnit": "ns",
        "otherData": {"target": profile.target, "num_ipus": profile.num_ipus},
    }
    Path(path).write_text(json.dumps(trace, separators=(",", ":"), allow_nan=False))


def trace_events(profile: Profile, max_events: int = 200_000) -> list[dict[str, Any]]:
    """The events of the program in the order of their start, without the names of the lanes."""
    if max_events < 1:
        raise ValueError(f"max_events is {max_events}; a trace needs room for at least 1 event")
    spans = _spans(profile.program, _opened_loops(profile.program, max_events))
    microseconds = 1e6 / profile.clock_hz
    events = list(islice(_events(spans, 0.0, microseconds), max_events))
    if len(spans) > max_events:
        # No loop is opened then: the last event begins where all the others have ended.
        start = events[-1]["ts"]
        end = sum(s.cycles for s in spans) * microseconds
        rest = {"steps": len(spans) - max_events + 1}
        events[-1] = _event("X", "rest of the program", "loops", start, end - start, rest)
    return events


def _opened_loops(program: Program, max_events: int) -> set[_Place]:
    """The loops whose every turn is shown: outer ones first, as long as there is room."""
    opened: set[_Place] = set()
    events = len(program)
    waiting: deque[tuple[_Place, Repeat, int]] = deque(_loops(program, (), 1))
    while waiting:
        place, loop, shown = waiting.popleft()
        turns = int(loop.count)
        more = shown * (turns * len(loop.body) + (loop.count > turns))
        if events + more <= max_events:
            events += more
            opened.add(place)
            waiting.extend(_loops(loop.body, place, shown * turns))
    return opened


def _loops(body: Program, outer: _Place, shown: int) -> list[tuple[_Place, Repeat, int]]:
    """The loops of `body`, their places, and how many times `body` is shown."""
    return [((*outer, i), x, shown) for i, x in enumerate(body) if isinstance(x, Repeat)]


def _spans(program: Program, opened: set[_Place], outer: _Place = ()) -> tuple[_Span, ...]:
    return tuple(_span(node, opened, (*outer, i)) for i, node in enumerate(program))


def _span(node: Step | Repeat, opened: set[_Place], place: _Place) -> _Span:
    if isinstance(node, Step):
        return _Span(node, node.cycles.low if node.kind != "host" else 0.0)
    body = _spans(node.body, opened, place)
    return _Span(node, node.count * sum(s.cycles for s in body), place in opened, body)


def _events(spans: tuple[_Span, ...], start: float, scale: float) -> Iterator[dict[str, Any]]:
    for span in spans:
        if isinstance(span.node, Repeat):
            yield from _loop_events(span.node, span, start, scale)
        else:
            yield _step_event(span.node, start * scale, scale)
        start += span.cycles


def _loop_events(loop: Repeat, span: _Span, start: float, scale: float) -> Iterator[dict[str, Any]]:
    length = span.cycles * scale
    if not span.opened:
        yield _event("X", loop.name, "loops", start * scale, length, {"repeats": loop.count})
        return
    yield _event("X", loop.name, "loops", start * scale, length, {"iterations": loop.count})
    turn = sum(s.cycles for s in span.body)
    whole_turns = int(loop.count)
    for k in range(whole_turns):
        yield from _events(span.body, start + k * turn, scale)
    if part := loop.count - whole_turns:
        # A mean count: what is left is a part of a turn, nobody knows which.
        start += whole_turns * turn
        name = f"{loop.name}, part of a turn"
        yield _event("X", name, "loops", start * scale, part * turn * scale, {"repeats": part})


def _step_event(step: Step, start: float, scale: float) -> dict[str, Any]:
    args: dict[str, Any] = {"stage": step.stage, "how": step.how, "tiles": step.tiles}
    if step.kind == "compute":
        args |= {"vertices": step.vertices, "balance": step.balance}
    if step.moved_bytes:
        args["moved_bytes"] = step.moved_bytes
    if step.kind == "host":
        return _event("i", step.name, "host", start, None, args)
    args |= {"cycles_low": step.cycles.low, "cycles_high": step.cycles.high}
    return _event("X", step.name, step.kind, start, step.cycles.low * scale, args)


def _event(
    phase: str, name: str, lane: str, start: float, length: float | None, args: dict[str, Any]
) -> dict[str, Any]:
    event = {"ph": phase, "name": name, "cat": lane, "ts": start, "args": args}
    event |= {"pid": _PROCESS, "tid": LANES.index(lane)}
    if length is None:
        return event | {"s": "t"}  # the event belongs to its lane alone
    return event | {"dur": length}


def _lane_names(profile: Profile) -> Iterator[dict[str, Any]]:
    common = {"ph": "M", "pid": _PROCESS}
    process = {"name": title(profile)}
    yield common | {"name": "process_name", "tid": 0, "args": process}
    for tid, lane in enumerate(LANES):
        yield common | {"name": "thread_name", "tid": tid, "args": {"name": lane}}
        yield common | {"name": "thread_sort_index", "tid": tid, "args": {"sort_index": tid}}

"""A Profile as a trace for Perfetto (https://ui.perfetto.dev) or chrome://tracing.

The format is the Trace Event Format of Chromium: "X" events with a start and a duration in
microseconds, "i" events without a duration, "M" events that name the lanes.  Events of a lane
either follow or contain each other.  Times are those of the low cycles at the tile clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.ipu.findings.pipelines import pipeline
from pyscf_ipu.ipu.findings.totals import title
from pyscf_ipu.ipu.profile.data import ProfileData, Program, Repeat, Step

LANES = ("loops", "compute", "exchange", "sync", "host")
_PROCESS, _PIPELINE = 1, 2
Event = dict[str, object]
_Place = tuple[int, ...]  # of a loop: indices, from the program inwards


@dataclass(frozen=True)
class _Span:
    """A step or a loop, the cycles of all its runs, and its parts if the loop is opened."""

    node: Step | Repeat
    cycles: float
    opened: bool = False
    body: tuple[_Span, ...] = ()


def trace(profile: ProfileData, max_events: int) -> dict[str, object]:
    """The trace as JSON has it; raises UsageError if `max_events` is less than 1."""
    events = trace_events(profile, max_events)
    return {
        "traceEvents": [*_lane_names(profile), *events, *_pipeline_events(profile)],
        "displayTimeUnit": "ns",
        "otherData": {"target": profile.target, "num_ipus": profile.num_ipus},
    }


def trace_events(profile: ProfileData, max_events: int = 200_000) -> list[Event]:
    """The events of the program in the order of their start, without the names of the lanes."""
    if max_events < 1:
        raise UsageError(f"max_events is {max_events}; a trace needs room for at least 1 event")
    spans = _spans(profile.program, _opened_loops(profile.program, max_events))
    microseconds = 1e6 / profile.clock_hz
    events = list(islice(_events(spans, 0.0, microseconds), max_events))
    if len(spans) > max_events:
        # No loop is opened then: the last event begins where all the others have ended.
        start, end = (
            sum(s.cycles for s in some) * microseconds for some in (spans[: max_events - 1], spans)
        )
        rest = {"steps": len(spans) - max_events + 1}
        events[-1] = _event(
            "X", "rest of the program", "loops", start=start, length=end - start, args=rest
        )
    return events


def _opened_loops(program: Program, max_events: int) -> set[_Place]:
    """The loops whose every turn is shown: outer ones first, while there is room."""
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
        return _Span(node, node.cycles.low if not node.overlapped else 0.0)
    body = _spans(node.body, opened, place)
    return _Span(node, node.count * sum(s.cycles for s in body), place in opened, body=body)


def _events(spans: tuple[_Span, ...], start: float, scale: float) -> Iterator[Event]:
    for span in spans:
        if isinstance(span.node, Repeat):
            yield from _loop_events(span.node, span, start, scale=scale)
        else:
            yield _step_event(span.node, start * scale, scale)
        start += span.cycles


def _loop_events(loop: Repeat, span: _Span, start: float, scale: float) -> Iterator[Event]:
    length = span.cycles * scale
    counted = {"iterations" if span.opened else "repeats": loop.count}
    yield _event("X", loop.name, "loops", start=start * scale, length=length, args=counted)
    if not span.opened:
        return
    turn = sum(s.cycles for s in span.body)
    whole_turns = int(loop.count)
    for k in range(whole_turns):
        yield from _events(span.body, start + k * turn, scale)
    if part := loop.count - whole_turns:
        # A mean count leaves a part of a turn; which part is not known.
        start += whole_turns * turn
        name, length = f"{loop.name}, part of a turn", part * turn * scale
        yield _event("X", name, "loops", start=start * scale, length=length, args={"repeats": part})


def _step_event(step: Step, start: float, scale: float) -> Event:
    args: dict[str, object] = {"stage": step.stage, "how": step.how, "tiles": step.tiles}
    if step.kind == "compute":
        args |= {"vertices": step.vertices, "balance": step.balance}
    if step.moved_bytes:
        args["moved_bytes"] = step.moved_bytes
    if step.kind == "host" and not step.cycles.low:
        return _event("i", step.name, "host", start=start, length=None, args=args)
    args |= {"cycles_low": step.cycles.low, "cycles_high": step.cycles.high}
    return _event("X", step.name, step.kind, start=start, length=step.cycles.low * scale, args=args)


def _event(
    phase: str, name: str, lane: str, start: float, length: float | None, args: Mapping[str, object]
) -> Event:
    event: Event = {"ph": phase, "name": name, "cat": lane, "ts": start, "args": args}
    event |= {"pid": _PROCESS, "tid": LANES.index(lane)}
    # Without a length it is a moment, which belongs to its lane alone.
    return event | ({"s": "t"} if length is None else {"dur": length})


def _pipeline_events(profile: ProfileData) -> Iterator[Event]:
    """The Gantt chart of a pipeline: a process of its own, with a lane for each IPU."""
    if (schedule := pipeline(profile)) is None:
        return
    yield {"ph": "M", "pid": _PIPELINE, "name": "process_name", "args": {"name": "IPUs"}}
    scale, common = 1e6 / profile.clock_hz, {"ph": "X", "cat": "pipeline", "pid": _PIPELINE}
    for bar in schedule.bars:
        name = bar.kind if bar.micro_batch is None else f"{bar.kind} {bar.micro_batch}"
        times = {"ts": bar.start * scale, "dur": (bar.end - bar.start) * scale}
        yield common | times | {"name": name, "tid": bar.ipu}


def _lane_names(profile: ProfileData) -> Iterator[Event]:
    common = {"ph": "M", "pid": _PROCESS}
    process = {"name": title(profile)}
    yield common | {"name": "process_name", "tid": 0, "args": process}
    for tid, lane in enumerate(LANES):
        yield common | {"name": "thread_name", "tid": tid, "args": {"name": lane}}
        yield common | {"name": "thread_sort_index", "tid": tid, "args": {"sort_index": tid}}

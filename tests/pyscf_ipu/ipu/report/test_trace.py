"""The trace: valid by the rules of its format, complete, bounded."""

import json

import pytest
from sample_profile import compute, host, scf_profile, sync

from pyscf_ipu.ipu.profile.data import Repeat
from pyscf_ipu.ipu.report.trace import LANES, trace_events


def durations(events):
    """Microseconds of steps, and of loops that stand for their steps."""
    return sum(
        e["dur"]
        for e in events
        if e["ph"] == "X" and (e["cat"] != "loops" or "iterations" not in e["args"])
    )


def microseconds(profile):
    return profile.cycles.low / profile.clock_hz * 1e6


def check_lane_nesting(events):
    """Events of a lane contain or follow each other, as the format asks."""
    for lane in range(len(LANES)):
        spans = [(e["ts"], -e["dur"]) for e in events if e["ph"] == "X" and e["tid"] == lane]
        open_ends = []
        for start, negative in sorted(spans):
            slack = 1e-9 * max(1.0, start)
            while open_ends and open_ends[-1] <= start + slack:
                open_ends.pop()
            end = start - negative
            assert not open_ends or end <= open_ends[-1] + slack
            open_ends.append(end)


def test_file_obeys_the_format(tmp_path):
    profile = scf_profile()
    path = tmp_path / "trace.json"
    profile.to_trace(path)
    trace = json.loads(path.read_text())
    events = trace["traceEvents"]
    assert trace["displayTimeUnit"] in ("ms", "ns")
    assert {e["ph"] for e in events} == {"M", "X", "i"}
    for e in events:
        assert isinstance(e["name"], str)
        assert e["pid"] == 1
        assert e["tid"] in range(len(LANES))
        if e["ph"] != "M":
            assert e["ts"] >= 0
        if e["ph"] == "X":
            assert e["dur"] >= 0
        if e["ph"] == "i":
            assert e["s"] == "t"
    names = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
    assert names == list(LANES)
    check_lane_nesting(events)


def test_every_step_is_an_event_and_durations_add_up():
    profile = scf_profile()
    events = trace_events(profile)
    steps = [e for e in events if e["cat"] != "loops"]
    assert len(steps) == sum(n for _, n in profile.steps())
    assert durations(events) == pytest.approx(microseconds(profile), rel=1e-9)
    for kind, cycles in profile.total_by("kind").items():
        lane = [e for e in events if e["cat"] == kind]
        assert durations(lane) * profile.clock_hz / 1e6 == pytest.approx(cycles.low, rel=1e-9)
    starts = [e["ts"] for e in events]
    assert starts == sorted(starts)


@pytest.mark.parametrize("most", [1, 2, 10, 100, 1000, 5000, 30_000])
def test_never_more_events_than_asked_and_never_less_time(most):
    profile = scf_profile()
    events = trace_events(profile, most)
    assert 1 <= len(events) <= most
    assert durations(events) == pytest.approx(microseconds(profile), rel=1e-9)
    check_lane_nesting(events)


def test_long_inner_loops_are_closed_before_the_loop_around_them():
    inner = Repeat(1_000_000, (compute("spin", "", 2, 2),), "inner")
    profile = scf_profile(program=(Repeat(5, (inner, compute("work", "", 7, 7)), "outer"),))
    events = trace_events(profile, 100)
    assert [(e["name"], e["args"]) for e in events[:2]] == [
        ("outer", {"iterations": 5}),
        ("inner", {"repeats": 1_000_000}),
    ]
    assert [e["name"] for e in events].count("work") == 5
    assert durations(events) == pytest.approx(microseconds(profile))


def test_a_mean_number_of_turns_ends_in_a_part_of_one():
    inner = Repeat(2.5, (compute("v", "", 100, 100), sync("")), "inner")
    profile = scf_profile(program=(Repeat(4, (inner,), "outer"),))
    events = trace_events(profile)
    assert len(events) == 1 + 4 * (1 + 2 * 2 + 1)
    assert durations(events) == pytest.approx(microseconds(profile))
    assert (events[6]["name"], events[6]["args"]) == ("inner, part of a turn", {"repeats": 0.5})
    assert trace_events(profile, len(events)) == events
    assert len(trace_events(profile, len(events) - 1)) == 1 + 4
    check_lane_nesting(events)


def test_a_long_program_without_loops_ends_in_one_event():
    profile = scf_profile(program=tuple(compute(f"v{k}", "", 1, 1) for k in range(20)))
    events = trace_events(profile, 8)
    assert (events[-1]["name"], events[-1]["args"]) == ("rest of the program", {"steps": 13})
    assert events[-1]["ts"] == pytest.approx(7 / profile.clock_hz * 1e6)
    assert durations(events) == pytest.approx(microseconds(profile))


def test_host_traffic_has_a_moment_and_no_duration():
    profile = scf_profile(program=(compute("v", "", 133, 200), host("energy", "", 64)))
    event = trace_events(profile)[-1]
    assert (event["ph"], event["cat"], event["args"]["moved_bytes"]) == ("i", "host", 64.0)
    assert "dur" not in event
    assert event["ts"] == pytest.approx(0.1)


def test_no_room_for_events_is_refused():
    with pytest.raises(ValueError, match="max_events is 0"):
        trace_events(scf_profile(), 0)

"""The trace of a run: readable by Perfetto, complete, and in time."""

import json
import os
from collections import Counter

import pytest
from fake_runs import LINES, settings

from qm1b.cli import main
from qm1b.run.generate import Run, generate
from qm1b.run.trace import COMPUTE, EMBED, HOST, Trace


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trace")
    source, path = folder / "in.smi", folder / "trace.json"
    source.write_text(LINES)
    run = Run(source, folder / "out", settings(), 2, "fake_engine:Solver", trace=path)
    summary = generate(run)
    return json.loads(path.read_text()), summary


def test_every_molecule_and_batch_is_there(events):
    found, summary = events
    spans = [e for e in found if e["ph"] == "X"]
    names = Counter((e["pid"], e["name"]) for e in spans)
    embedded = {e["args"]["line"] for e in spans if e["name"] == "embed"}
    assert embedded == {1, 2, 3, 4, 5, 6, 12, 14}
    assert names[HOST, "write"] == summary.tally.units
    assert names[COMPUTE, "compute"] >= 2
    computed = sum(e["args"]["conformers"] for e in spans if e["name"] == "compute")
    assert computed >= summary.tally.statuses["converged"]
    assert {e["args"]["name"] for e in found if e["name"] == "process_name"} >= {"RDKit", "engine"}
    assert any(e["ph"] == "C" and "RDKit" in e["name"] for e in found)


def test_a_worker_does_one_job_at_a_time(events):
    found, _ = events
    for group in (EMBED, COMPUTE):
        jobs = [e for e in found if e["ph"] == "X" and e["pid"] == group]
        for lane in {e["tid"] for e in jobs}:
            mine = sorted(
                (e["ts"], e["ts"] + e["dur"])
                for e in jobs
                if e["tid"] == lane and e["name"] in ("embed", "compute")
            )
            ends = [end for _, end in mine]
            begins = [begin for begin, _ in mine]
            assert all(e <= b + 0.2 for e, b in zip(ends, begins[1:], strict=False))
            assert min(begins) >= 0


def test_without_a_path_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Trace(None) as trace, trace.host("x"):
        trace.queues(1, 2)
        trace.look([], [])
    assert not [*tmp_path.iterdir()]


def test_a_full_disk_costs_the_trace_alone(tmp_path, capsys):
    source, path = tmp_path / "in.smi", tmp_path / "trace.json"
    source.write_text(LINES)
    path.symlink_to("/dev/full")
    run = Run(source, tmp_path / "out", settings(), 1, "fake_engine:Solver", trace=path)
    assert generate(run).tally.units == 4
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "the work goes on, but the trace" in said
    assert "cannot be written (No space left on device)" in said


def test_wrong_flags_are_one_sentence(tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main(["generate", "--out", out, "--trace", "t.txt"]) == 2
    assert "must end in .json" in capsys.readouterr().err
    assert main(["generate", "--out", out, "--trace", "t.json", "--cluster", "auto"]) == 2
    assert "leave --cluster out" in capsys.readouterr().err
    assert main(["generate", "--out", out, "--trace", str(tmp_path / "no" / "t.json")]) == 2
    assert "no such folder; make it first" in capsys.readouterr().err


def test_a_trace_that_cannot_be_closed_is_said(tmp_path, capsys):
    with Trace(tmp_path / "trace.json") as trace:
        os.close(trace._file.fileno())
    assert "the work goes on, but the trace" in capsys.readouterr().err

"""The main path, with an engine that computes nothing: nothing vanishes or depends on luck."""

import csv
import os

import numpy as np
import pytest
from fake_runs import LINES, fake_run, settings

from pyscf_ipu.base.errors import UnknownBasis
from qm1b import inputs
from qm1b.cli import main
from qm1b.engine.programs import ProgramEvent
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.folder.manifest.tally import Tally
from qm1b.process.display import Display, speed
from qm1b.report.info import describe
from qm1b.rows.schema import fields_of
from qm1b.run.generate import Run, generate
from qm1b.run.progress.progress import Stats

CHARGES = "fake_engine:NoAnions"


def all_rows(folder):
    return [shards.read_shard(path) for path in shards.shards(folder)]


def dropped(folder):
    with open(folder / shards.DROPPED, newline="") as stream:
        return list(csv.DictReader(stream))


def test_every_line_ends_as_rows_or_with_a_reason(finished):
    out, summary = finished
    lines = {int(n) for shard in all_rows(out) for n in shard["line"]}
    drops = {int(d["line"]): d["reason"] for d in dropped(out)}
    assert lines == {1, 2, 3, 4, 5, 6, 12}
    assert drops == {
        7: "unparsable",
        8: "empty",
        9: "radical",
        10: "duplicate",
        11: "multi_fragment",
        13: "too_large",
        14: "too_large",
    }
    assert not summary.interrupted
    manifest = shards.read_manifest(out)
    assert manifest.status == "complete"
    assert manifest.counts.rows == 14
    assert manifest.fingerprint
    assert "libxc" in manifest.functional_definition


def test_a_file_name_that_is_no_text(tmp_path, capsys):
    source = tmp_path / os.fsdecode(b"m\xfc.smi")
    source.write_text("O\n")
    run = Run(source, tmp_path / "out", settings(), 1, "fake_engine:Solver")
    generate(run)
    assert shards.read_manifest(run.out).input.name == source.name
    assert generate(run).tally.rows == 2  # the manifest read back is that of the same run
    for command in (["info"], ["stats"], ["head"]):
        assert main([*command, str(run.out)]) == 0
    assert main(["export", str(run.out), str(tmp_path / "out.extxyz")]) == 0
    assert main(["export", str(run.out), str(tmp_path / "out.parquet")]) == 0
    assert main(["card", str(run.out)]) == 0


def test_a_lost_batch_is_retried_and_only_the_culprit_has_an_error(finished):
    out, _ = finished
    status = {}
    for shard in all_rows(out):
        for line, text in zip(shard["line"], shard["status"], strict=True):
            status.setdefault(int(line), set()).add(text)
    assert status[1] == status[2] == status[3] == status[12] == {"converged"}
    assert status[4] == {"error: the compute process died, exit code 3"}
    assert status[5] == {"error: RuntimeError: neon lights"}
    assert status[6] == {"not_converged"}


def test_rows_do_not_depend_on_the_number_of_workers(finished, tmp_path):
    one, _ = fake_run(tmp_path, LINES, workers=1)
    for ours, theirs in zip(all_rows(one), all_rows(finished[0]), strict=True):
        for field in fields_of({}):
            np.testing.assert_array_equal(ours[field.name], theirs[field.name], err_msg=field.name)


def test_info(finished):
    text = describe(finished[0])
    assert "complete" in text
    assert "not_converged" in text
    assert "too_large" in text


def test_refusals(tmp_path):
    with pytest.raises(UnknownBasis, match="unknown"):
        fake_run(tmp_path, factory="fake_engine:refuse")


def test_the_estimate_counts_only_what_will_come():
    stats = Stats(n_lines=100, conformers=10)
    assert stats.expected == 1000
    stats.lines, stats.kept_lines, stats.missing = 50, 25, 3
    assert stats.expected == 497
    assert stats.eta == "-:--:--"


def test_the_time_left_counts_programs(monkeypatch):
    """Two workers: 10 rows/s between programs, which take 8 s, and five of them are missing."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    stats = Stats(n_lines=10, conformers=100, lines=10, kept_lines=10, workers=2)
    stats._tick()
    now, stats.rows = 14.0, 100  # 4 s of these 14 went into the program that is ready ...
    now = 10.0
    stats.program_ready(ProgramEvent("a", 8.0))
    now = 14.0
    stats._tick()
    assert stats.seconds_left == pytest.approx(90)
    stats.pending_programs = 5
    assert stats.seconds_left == pytest.approx(90 + 5 * 8 / 2)
    now, stats.compiling = 16.0, [("b", 3.0), ("c", 1.0)]  # ... and 2 s since into two others
    assert stats.seconds_left == pytest.approx(90 + (5 * 8 + 5 + 7) / 2)
    assert stats.eta == "0:01:56"


def test_a_program_that_takes_minutes_does_not_end_the_run_in_a_moment(monkeypatch):
    """Two workers: one gives a row per second, the other compiles for five minutes."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    stats = Stats(n_lines=1, conformers=10_000, lines=1, kept_lines=1, workers=2)
    for now in map(float, range(1, 400)):
        stats.rows += 1 if now <= 300 else 2
        stats.compiling = [("a", now)] if now < 300 else []
        if now == 300:
            stats.program_ready(ProgramEvent("a", 300.0, worker=1))
        stats._tick()
        if now > 2:  # two rows a second, as soon as both compute
            assert 0.9 < stats.seconds_left / ((10_000 - stats.rows) / 2) < 1.6


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (31.62, "31.6 conformers/s"),
        (0.25, "0.25 conformers/s"),
        (0.1, "0.10 conformers/s"),
        (0.0234, "43 s a conformer"),
        (0.0, "0.00 conformers/s"),
    ],
)
def test_a_slow_rate_is_in_seconds(rate, words):
    assert speed(rate) == words


def test_rows_of_lines_that_are_tried_again_are_not_lost():
    """They are in the folder and not counted by the run that replaces them."""
    stats = Stats(n_lines=9, conformers=1, rows=3)
    stats.settle(Tally(rows=5))
    assert (stats.rows, stats.lost_rows) == (5, 0)
    stats.settle(Tally(rows=2))
    assert (stats.rows, stats.lost_rows) == (2, 3)


def test_two_rows_of_one_batch_are_no_rate(monkeypatch):
    """They arrive together, after 40 seconds."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    stats = Stats(n_lines=10, conformers=1, lines=10, kept_lines=10)
    for now in (40.0, 40.01):  # noqa: B007
        stats.rows += 1
        stats._tick()
    assert speed(stats.rate) == "20 s a conformer"
    assert stats.eta == "0:02:40"


def test_the_screen_says_what_it_waits_for():
    stats = Stats(n_lines=1, conformers=1)
    assert stats.activity == ["starting the worker processes"]
    stats.compiling = [(f"shape {i}", 3.2) for i in range(9)]
    assert stats.activity == [
        *(f"compiling shape {i}: 3 s" for i in range(3)),
        "compiling 6 more programs",
    ]
    stats.compiling, stats.rows = [], 1
    assert stats.activity == []


def test_a_run_that_never_started_may_be_tried_again(tmp_path):
    with pytest.raises(UserError, match="cannot start"):
        fake_run(tmp_path, "O\n", factory="fake_engine:only_in_the_parent")
    out, summary = fake_run(tmp_path, "O\n")
    assert shards.read_manifest(out).status == "complete"
    assert summary.stats.rows == 2


def test_an_engine_that_takes_no_time_starves(finished):
    _, summary = finished
    assert 0 < summary.stats.starved_seconds < 2 * summary.stats.seconds


@pytest.mark.parametrize("text", ["C\nCC\n", "C\nCC\nCCC\nCCCC\nCCCCCO\n"])
def test_an_input_that_changes_under_way_ends_the_run(tmp_path, monkeypatch, text):
    real = inputs.summarise

    def summarise(path, settings):
        summary = real(path, settings)
        path.write_text(text)
        return summary

    before = "C\nCC\nCCC\nCCCC\nCCCCC\n"
    with monkeypatch.context() as patch:
        patch.setattr(inputs, "summarise", summarise)
        with pytest.raises(UserError, match="has changed since"):
            fake_run(tmp_path, before)
    out = tmp_path / "out-2"
    assert shards.read_manifest(out).status == "failed"
    assert len(shards.shards(out)) < 2
    _, summary = fake_run(tmp_path, before)  # the old content: gone on with
    assert not summary.interrupted
    assert summary.tally.molecules == 5


def test_a_charge_that_the_basis_cannot_hold_is_not_hidden_by_its_neighbour(tmp_path):
    source = tmp_path / "a.xyz"
    atom = "O 0 0 0\n"
    source.write_text(f"1\ncharge=2\n{atom}1\ncharge=-2\n{atom}")
    run = Run(source, tmp_path / "out", settings(conformers=1, keep_charged=True), 1, CHARGES)
    generate(run)
    assert {d["line"]: d["reason"] for d in dropped(run.out)} == {"2": "invalid"}


def test_batch_and_memory_are_printed_for_every_program(tmp_path):
    texts = []

    class Listening(Display):
        def say(self, text):
            texts.append(text)

    (tmp_path / "a.smi").write_text("C\n")
    run = Run(tmp_path / "a.smi", tmp_path / "out", settings(), 1, "fake_engine:Solver")
    generate(run, Listening())
    ready = [text for text in texts if " compiled " in text]
    assert ready == ["worker 0 compiled 16 AOs in 0.0 s: batch of 4, about 0 MiB"]

"""Work units by price: what a run cuts, what it loses, and folders of earlier versions."""

import json
import math
import shutil

import pytest
from fake_runs import MANY, fake_run

import qm1b
from qm1b.cli import main
from qm1b.convert.merge import merge
from qm1b.folder import same, shards
from qm1b.folder.manifest import work_units
from qm1b.folder.manifest.work_units import Share
from qm1b.run import pipeline

CUT = "qm1b.folder.manifest.work_units.UNIT_SECONDS"


@pytest.fixture
def small_units(monkeypatch):
    """Units of half a second by the table, and no fewer parts than that allows."""
    monkeypatch.setattr(CUT, 0.5)
    monkeypatch.setattr(work_units, "PART_UNITS", 1)
    monkeypatch.setattr(pipeline, "UNIT_SECONDS", 0.1)  # so it does not read all lines at once
    monkeypatch.setattr(pipeline, "WAITING_EACH", 1)
    monkeypatch.setattr(pipeline, "LINES_AT_A_TIME", 2)


def units_of(folder):
    return shards.read_manifest(folder).settings.get("units")


@pytest.fixture
def cut(tmp_path, small_units):
    return fake_run(tmp_path, MANY, unit_rows=None, padding="fine")[0]


def test_units_are_smaller_where_molecules_are_larger(cut):
    parts = units_of(cut)
    assert sum(lines for lines, _ in parts) == 39
    lengths = [each for _, each in parts]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[-1]
    manifest = shards.read_manifest(cut)
    assert [list(part) for part in manifest.unit_lines] == parts
    assert len(shards.shards(cut)) == len(manifest.plan.units)
    assert manifest.counts.lines == 39
    assert json.loads(shards.read_attributes(shards.shards(cut)[0])["settings"])["units"] == parts


def test_rows_do_not_depend_on_the_cut(cut, tmp_path):
    (tmp_path / "other").mkdir()
    other, _ = fake_run(tmp_path / "other", MANY)
    rows, others = ([*qm1b.load(folder)] for folder in (cut, other))
    assert len(rows) == len(others) > 50
    for row, one in zip(rows, others, strict=True):
        assert {k: str(v) for k, v in row.items()} == {k: str(v) for k, v in one.items()}
    assert (cut / "dropped.csv").read_text() == (other / "dropped.csv").read_text()


def test_a_run_keeps_its_units_when_the_table_changes(cut, tmp_path, monkeypatch):
    before = units_of(cut)
    for path in shards.shards(cut)[1::2]:
        path.unlink()
    monkeypatch.setattr(CUT, 120.0)
    (cut / "manifest.json").unlink()  # the shards say it, too
    out, summary = fake_run(tmp_path, MANY, unit_rows=None, padding="fine")
    assert (out, units_of(out)) == (cut, before)
    assert not summary.interrupted


def test_a_folder_of_an_earlier_version_keeps_its_own(tmp_path, small_units):
    out, _ = fake_run(tmp_path, MANY, unit_rows=8)
    assert shards.read_manifest(out).unit_lines == 4
    whole = shutil.copytree(out, tmp_path / "whole")
    shards.shards(out)[3].unlink()
    fake_run(tmp_path, MANY, unit_rows=None)
    assert "units" not in shards.read_manifest(out).settings
    assert same.differences(whole, out) == []


def test_shares_agree_on_the_units(cut, tmp_path):
    parts = []
    for i in range(3):
        (tmp_path / f"{i}").mkdir()
        run = fake_run(tmp_path / f"{i}", MANY, unit_rows=None, padding="fine", share=Share(i, 3))
        parts.append(run[0])
        assert units_of(run[0]) == units_of(cut)
    merge(parts, tmp_path / "merged")
    assert same.differences(cut, tmp_path / "merged") == []


@pytest.mark.parametrize("left", [1e-3, 0.0], ids=["soon over", "over"])
def test_a_run_that_is_stopped_in_time_has_whole_units_and_goes_on(
    cut, tmp_path, monkeypatch, left
):
    """The time is over when three shards are there, or will be before another is."""
    (tmp_path / "early").mkdir()
    out = tmp_path / "early" / "out-2"
    until = property(lambda _: 1000.0 if len(shards.shards(out)) < 3 else left)
    with monkeypatch.context() as patched:
        patched.setattr("qm1b.process.interrupts.Interrupt.seconds_left", until)
        _, early = fake_run(tmp_path / "early", MANY, unit_rows=None, padding="fine", deadline=0.0)
    assert early.interrupted
    assert early.stopped_in_time
    manifest = shards.read_manifest(out)
    assert manifest.status == "interrupted"
    assert 3 <= manifest.counts.units < len(manifest.plan.units)
    assert early.stats.drops == early.tally.drops
    assert early.stats.rows == early.tally.rows == manifest.counts.rows
    assert len((out / "dropped.csv").read_text().splitlines()) == early.stats.drops.total() + 1
    _, late = fake_run(tmp_path / "early", MANY, unit_rows=None, padding="fine", deadline=math.inf)
    assert not late.interrupted
    assert not late.stopped_in_time
    assert same.differences(cut, out) == []


@pytest.mark.parametrize("text", ["20", "h", "-1h", "0m", "1h1d", "1.2.3h", "nan", "20 h"])
def test_a_time_that_is_none(text, capsys, tmp_path):
    out = str(tmp_path / "out")
    assert main(["generate", "--out", out, f"--stop-after={text}"]) == 2
    assert "as 20h, 90m or 1d12h" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()

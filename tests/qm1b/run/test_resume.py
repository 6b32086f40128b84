"""A folder is gone on with, and ends as if one undisturbed run had filled it."""

import json
import os
import signal
import threading
import time

import pytest
from fake_runs import MANY, fake_run, flip, settings

from qm1b.cli import main
from qm1b.errors import UserError
from qm1b.folder import same
from qm1b.folder import shards as folder_shards
from qm1b.folder.manifest import manifest
from qm1b.folder.manifest.manifest import Manifest
from qm1b.folder.manifest.tally import Tally
from qm1b.run.generate import Summary
from qm1b.run.progress.progress import Stats
from qm1b.storage.lock import locked


def again(out, text=MANY, **changes):
    return fake_run(out.parent, text, **changes)


def test_only_what_is_missing_or_damaged_is_computed_again(whole, partial):
    shards = folder_shards.shards(partial)
    assert len(shards) == 10
    kept = {path: path.stat().st_mtime_ns for path in (*shards[:2], *shards[6:])}
    shards[2].unlink()
    flip(shards[3], 5000)
    os.truncate(shards[4], 2000)
    flip(shards[5], 20)
    (partial / folder_shards.DROPPED).unlink()
    leftover = partial / ".shard-00002.h5.tmp"
    leftover.write_bytes(b"half")
    record = json.loads((partial / folder_shards.MANIFEST).read_text())
    record["runs"][0]["status"] = record["status"] = "running"  # as SIGKILL leaves it
    (partial / folder_shards.MANIFEST).write_text(json.dumps(record))

    _, summary = again(partial)
    assert same.differences(whole, partial) == []
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert not leftover.exists()
    found = folder_shards.read_manifest(partial)
    assert [run["status"] for run in found.runs] == ["killed", "complete"]
    assert found.runs[1]["rows"] == summary.stats.rows - summary.stats.rows_before
    assert found.counts.rows == summary.stats.rows == summary.tally.rows
    assert summary.stats.drops == summary.tally.drops
    assert summary.stats.lines == summary.tally.lines == 39


def test_a_complete_folder_is_left_as_it_is(whole, partial):
    (partial / folder_shards.MANIFEST).write_text("{")  # lost; the shards say what they are
    before = {path: path.read_bytes() for path in folder_shards.shards(partial)}
    _, summary = again(partial, factory="fake_engine:only_in_the_parent")  # no worker is started
    assert not summary.interrupted
    assert {path: path.read_bytes() for path in folder_shards.shards(partial)} == before
    assert same.differences(whole, partial) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 2}, r"field +there +here\n +seed +1 +2$"),
        ({"conformers": 3, "max_aos": 50}, r"conformers +2 +3\n +max_aos +128 +50$"),
        ({"text": "C\n"}, r"input.sha256 .*\n.*input.lines +39 +1$"),
    ],
)
def test_another_run_is_refused_with_the_difference(partial, changes, words):
    with pytest.raises(UserError, match=words):
        again(partial, **changes)
    (partial / folder_shards.MANIFEST).unlink()
    with pytest.raises(UserError, match="belongs to another run"):
        again(partial, **changes)


def test_other_software_is_refused_unless_allowed(whole, partial, monkeypatch):
    real = manifest.versions()
    monkeypatch.setattr(manifest, "versions", lambda *_: real | {"rdkit": "1.0", "h5py": "1.0"})
    folder_shards.shards(partial)[0].unlink()
    with pytest.raises(UserError, match=r"field +there +here\n +rdkit +\S+ +1.0$"):
        again(partial)
    again(partial, other_versions=True)
    assert same.differences(whole, partial) == []  # in truth, nothing was different
    runs = folder_shards.read_manifest(partial).runs
    assert [run["versions"]["rdkit"] for run in runs] == [real["rdkit"], "1.0"]
    versions = {
        folder_shards.read_attributes(path)["versions"] for path in folder_shards.shards(partial)
    }
    assert len(versions) == 2


def test_where_all_is_damaged_the_settings_that_are_given_count(whole, partial):
    (partial / folder_shards.MANIFEST).write_text("{")
    for path in folder_shards.shards(partial):
        os.truncate(path, 2000)
    with pytest.raises(UserError, match="give --padding and --max-aos as the run had them"):
        again(partial)
    again(partial, padding="coarsest")
    assert same.differences(whole, partial) == []


def test_a_strangers_shard_is_not_touched(partial):
    folder_shards.shards(partial)[0].rename(partial / "shard-00077.h5")
    with pytest.raises(UserError, match=r"shard-00077.h5 belongs to another run"):
        again(partial)
    assert (partial / "shard-00077.h5").exists()


def test_two_runs_on_one_folder(partial):
    with locked(partial), pytest.raises(UserError, match="in use by process"):
        again(partial)


def test_interrupt_closes_whole_units_and_the_next_run_goes_on(whole, tmp_path):
    def interrupt():
        while not list(tmp_path.glob("out-2/shard-*.h5")):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    out, summary = fake_run(tmp_path, MANY, factory="fake_engine:Slow")
    assert summary.interrupted
    found = folder_shards.read_manifest(out)
    assert found.status == found.runs[0]["status"] == "interrupted"
    for path in folder_shards.shards(out):
        assert same.same_unit(path, whole / path.name)
    assert 1 <= found.counts.units == len(folder_shards.shards(out)) < 10
    fake_run(tmp_path, MANY)
    assert same.differences(whole, out) == []


def test_a_full_disk_is_one_sentence(partial, monkeypatch):
    def write(path, _):
        raise UserError(f"cannot write {path}: No space left on device; make room.")

    folder_shards.shards(partial)[1].unlink()
    with monkeypatch.context() as patch:
        patch.setattr(folder_shards, "atomic_write", write)
        with pytest.raises(UserError, match="No space left"):
            again(partial)


@pytest.mark.parametrize("given", [(), ("--out", "my data")])
def test_the_command_that_goes_on_is_printed(given, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.smi").write_text("C\n")
    ended = Summary(Stats(n_lines=9, conformers=4), Tally(lines=5), interrupted=True)

    def stopped_at_once(run, _):
        run.out.mkdir(parents=True)
        folder_shards.write_manifest(
            run.out, Manifest(status="interrupted", settings=settings().to_dict())
        )
        return ended

    monkeypatch.setattr("qm1b.run.generate.generate", stopped_at_once)
    arguments = ["generate", "in.smi", *given]
    monkeypatch.setattr("sys.argv", ["qm1b", *arguments])
    assert main(arguments) == 130
    lines = capsys.readouterr().out.splitlines()
    last = lines[-1]
    assert any(line.endswith(" has no rows.") for line in lines)
    assert "5 of 9 lines are done. To resume: " in last
    folder = "--out 'my data'" if given else "--out data/in"
    assert last.endswith(f" generate in.smi {folder}")

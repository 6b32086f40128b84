"""Damaged manifests: readers say so in one sentence, and the next run mends them."""

import json
import shutil

import pytest
from fake_runs import fake_run

from qm1b.cli import main
from qm1b.folder import shards

DAMAGED = [
    None,
    3,
    [],
    {"settings": None},
    {"settings": {}},
    {"input": "x"},
    {"input": {"lines": "x"}},
    {"unit_lines": 0},
    {"unit_lines": None},
    {"shard": 3},
    {"shard": "3"},
    {"versions": []},
    {"status": None},
]
LOST = ["settings", "fingerprint", "functional_definition", "input", "unit_lines", "versions"]
LOST += ["status"]


@pytest.fixture
def folder(finished, tmp_path):
    return shutil.copytree(finished[0], tmp_path / "run")


def damage(folder, change=None, lost=None):
    path = folder / shards.MANIFEST
    values = json.loads(path.read_text())
    values = {**values, **change} if isinstance(change, dict) else values if lost else change
    if lost:
        del values[lost]
    path.write_text(json.dumps(values))


def commands(folder, tmp_path):
    return [["info", folder], ["head", folder], ["export", folder, tmp_path / "all.parquet"]]


@pytest.mark.parametrize("change", DAMAGED, ids=str)
def test_a_damaged_manifest_is_one_sentence(folder, tmp_path, capsys, change):
    damage(folder, change)
    for command in commands(folder, tmp_path):
        if main([*map(str, command)]) == 0:
            continue  # the command needs no such part
        assert "damaged" in (said := capsys.readouterr().err) or "--shard is" in said
        assert said.count("\n") == 1


@pytest.mark.parametrize("lost", LOST)
def test_a_part_that_is_lost_is_named(folder, tmp_path, capsys, lost):
    damage(folder, lost=lost)
    for command in commands(folder, tmp_path):
        assert main([*map(str, command)]) == 2
        assert f"it lacks {lost}" in capsys.readouterr().err


@pytest.mark.parametrize("counts", [{}, None, [], {"units": 1}, {"units": "x"}], ids=str)
def test_counts_that_no_run_writes_are_refused(folder, tmp_path, capsys, counts):
    damage(folder, {"counts": counts})
    for command in commands(folder, tmp_path):
        assert main([*map(str, command)]) == 2
        assert "counts" in capsys.readouterr().err


@pytest.mark.parametrize("change", [{"counts": {}}, {"unit_lines": 0}, 3], ids=str)
def test_a_run_mends_its_manifest(tmp_path, change):
    out = fake_run(tmp_path)[0]
    good = shards.read_manifest(out)
    damage(out, change)
    fake_run(tmp_path)
    found = shards.read_manifest(out)
    assert (found.settings, found.counts, found.status) == (good.settings, good.counts, "complete")

"""Shards, or the whole folder, that somebody deletes during a run: a sentence, and nothing lost."""

import shutil

import pytest
from fake_runs import MANY, fake_run

from qm1b.errors import UserError
from qm1b.folder import same, shards
from qm1b.folder.completeness import notice
from qm1b.folder.run_folder import LockedFolder
from qm1b.folder.shard_folder import ShardFolder


def after(monkeypatch, n_units, act):
    """Do something to the folder once a run has written this many units."""
    real = LockedFolder.add

    def add(self, unit, versions=None):
        real(self, unit, versions)
        if len(self.done) == n_units:
            act(self.path)

    monkeypatch.setattr(LockedFolder, "add", add)


def test_a_shard_that_is_deleted_under_way_ends_the_run_and_is_computed_again(
    whole, tmp_path, monkeypatch
):
    with monkeypatch.context() as patch:
        after(patch, 5, lambda out: shards.shards(out)[1].unlink())
        words = (
            r"1 of the shards .* are gone, such as shard-0000\d.h5: .*give the same command again"
        )
        with pytest.raises(UserError, match=words):
            fake_run(tmp_path, MANY)
    out = tmp_path / "out-2"
    assert shards.read_manifest(out).status == "failed"
    assert len(shards.shards(out)) == 9  # the others were written
    with pytest.raises(UserError, match="has lost 1 of the shards"):
        notice(ShardFolder(out))
    fake_run(tmp_path, MANY)
    assert same.differences(whole, out) == []


def test_a_folder_that_is_deleted_under_way_is_one_sentence(whole, tmp_path, monkeypatch, capfd):
    with monkeypatch.context() as patch:
        after(patch, 3, shutil.rmtree)
        with pytest.raises(UserError, match=r"folder .*out-2 is gone: somebody deleted or moved"):
            fake_run(tmp_path, MANY, processes=True)
    assert not (tmp_path / "out-2").exists()
    assert "Traceback" not in capfd.readouterr().err
    out, _ = fake_run(tmp_path, MANY)
    assert same.differences(whole, out) == []


def test_a_folder_that_is_gone_before_the_workers_open_their_log(tmp_path, monkeypatch, capfd):
    real = LockedFolder.write_dropped
    (tmp_path / "away").mkdir()

    def deleted(self):
        real(self)
        shutil.move(self.path, tmp_path / "away")

    monkeypatch.setattr(LockedFolder, "write_dropped", deleted)
    with pytest.raises(UserError, match=r"folder .*out-2 is gone"):
        fake_run(tmp_path, MANY, processes=True)
    assert "Traceback" not in capfd.readouterr().err

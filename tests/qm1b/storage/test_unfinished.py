"""A folder is filled whole; one that was left unfinished is filled again, a foreign one never."""

import pytest

from qm1b.errors import UserError
from qm1b.storage.unfinished import MARK, filling


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_mark_is_there_while_the_folder_is_filled(tmp_path):
    out = tmp_path / "new" / "out"
    with filling(out, ()):
        assert names(out) == [MARK]
        (out / "a").touch()
    assert names(out) == ["a"]


def test_a_folder_that_was_left_unfinished_is_filled_again(tmp_path):
    def failing():
        with filling(tmp_path, ("data",)):
            (tmp_path / "data").mkdir()
            (tmp_path / "data" / "of another input").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert MARK in names(tmp_path)
    with filling(tmp_path, ("data",)):
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "a").touch()
    assert names(tmp_path) == ["data/a"]


def test_a_foreign_folder_stays_as_it_is(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine").touch()
    with pytest.raises(UserError, match="is not an empty folder"), filling(tmp_path, ("data",)):
        pass
    assert names(tmp_path) == ["data/mine"]


def test_two_processes_do_not_fill_one_folder(tmp_path):
    with (
        filling(tmp_path, ()),
        pytest.raises(UserError, match="another process is writing to"),
        filling(tmp_path, ()),
    ):
        pass
    assert names(tmp_path) == []


def test_a_folder_that_was_finished_meanwhile_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / MARK).touch()
    (tmp_path / "data").mkdir()

    def finished(file, how):
        (tmp_path / MARK).unlink()

    monkeypatch.setattr("fcntl.flock", finished)
    with pytest.raises(UserError, match="another process"), filling(tmp_path, ("data",)):
        pass
    assert (tmp_path / "data").exists()


def test_a_folder_that_cannot_be_marked_is_one_sentence(tmp_path, monkeypatch):
    def full(file, how):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fcntl.flock", full)
    with (
        pytest.raises(UserError, match="No space left on device; make room"),
        filling(tmp_path, ()),
    ):
        pass

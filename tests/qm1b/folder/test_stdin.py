"""Standard input: kept where a resumed run finds it."""

import fcntl
import io

import pytest

from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.folder.stdin import spooled
from qm1b.storage.lock import locked


def test_a_resumed_run_gets_the_same_or_nothing(tmp_path):
    out = tmp_path / "out"
    path = spooled(out, io.BytesIO(b"C\r\nCC\n\xff"))
    for again in (b"C\r\nCC\n\xff", b""):
        assert spooled(out, io.BytesIO(again)) == path
        assert path.read_bytes() == b"C\r\nCC\n\xff"
    shards.shard_path(out, 0).touch()
    with pytest.raises(UserError, match=r"not what the run .* began"):
        spooled(out, io.BytesIO(b"C\n"))
    assert path.read_bytes() == b"C\r\nCC\n\xff"


def test_a_run_without_a_shard_binds_nobody_unless_it_is_at_work(tmp_path):
    path = spooled(tmp_path, io.BytesIO(b"C\n"))
    with locked(tmp_path), pytest.raises(UserError, match="in use"):
        spooled(tmp_path, io.BytesIO(b"CC\n"))
    assert path.read_bytes() == b"C\n"
    assert spooled(tmp_path, io.BytesIO(b"CC\n")).read_bytes() == b"CC\n"


def test_a_closed_standard_input_gives_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UserError, match="nothing came in"):
        spooled(tmp_path)


def test_nothing_came_in_or_nowhere_to_keep_it(tmp_path):
    with pytest.raises(UserError, match="nothing came in"):
        spooled(tmp_path / "a", io.BytesIO(b""))
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be kept"):
        spooled(tmp_path / "file", io.BytesIO(b"C\n"))


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path):
    left, in_use = tmp_path / ".stdin-17.tmp", tmp_path / ".stdin-18.tmp"
    left.write_bytes(b"C\n")
    with open(in_use, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        spooled(tmp_path, io.BytesIO(b"C\n"))
        assert sorted(p.name for p in tmp_path.iterdir()) == [in_use.name, "stdin"]
    spooled(tmp_path, io.BytesIO(b""))
    assert [p.name for p in tmp_path.iterdir()] == ["stdin"]

"""One writer a folder, and a lock that dies with its owner."""

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys

import pytest

from qm1b.errors import UserError
from qm1b.storage import lock
from qm1b.storage.lock import is_held, locked

OWNER = """
import sys, time
from pathlib import Path
from qm1b.storage.lock import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(600)
"""


def test_the_second_is_refused_until_the_first_is_killed(tmp_path):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert owner.stdout.readline() == "locked\n"
        with pytest.raises(UserError, match=f"in use by process {owner.pid}"), locked(tmp_path):
            pass
    finally:
        os.kill(owner.pid, signal.SIGKILL)
        owner.communicate()
    with locked(tmp_path), pytest.raises(UserError, match="in use"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_a_lock_that_cannot_be_closed_ends_nothing(tmp_path, monkeypatch):
    close = os.close

    def failing(descriptor):
        close(descriptor)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with locked(tmp_path):
        monkeypatch.setattr(os, "close", failing)
        assert is_held(tmp_path)
    monkeypatch.undo()
    assert not is_held(tmp_path)


def test_a_look_says_who_writes_and_leaves_no_trace(tmp_path):
    assert not is_held(tmp_path)
    assert not list(tmp_path.iterdir())
    with locked(tmp_path):
        assert is_held(tmp_path)
    assert not is_held(tmp_path)
    assert not is_held(tmp_path / "nowhere")


def test_a_look_does_not_keep_a_writer_out(tmp_path, monkeypatch):
    with locked(tmp_path):
        pass
    look = os.open(tmp_path / lock.NAME, os.O_RDONLY)
    fcntl.flock(look, fcntl.LOCK_SH)
    monkeypatch.setattr(lock.time, "sleep", lambda _: os.close(look))  # the look ends
    with locked(tmp_path):
        assert is_held(tmp_path)


def planted(kind, path, elsewhere):
    """Put something at a path that is no file of ours."""
    {
        "link": lambda: path.symlink_to(elsewhere),
        "hard link": lambda: (elsewhere.write_text("theirs"), os.link(elsewhere, path)),
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "socket": lambda: socket.socket(socket.AF_UNIX).bind(str(path)),
    }[kind]()


@pytest.mark.parametrize("kind", ["link", "hard link", "folder", "pipe", "socket"])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_is_no_file_of_ours_is_refused_and_stays_as_it_is(tmp_path, kind):
    folder, elsewhere = tmp_path / "f", tmp_path / "elsewhere"
    folder.mkdir()
    planted(kind, folder / lock.NAME, elsewhere)
    before = os.lstat(folder / lock.NAME)
    with pytest.raises(UserError, match=r"/\.lock is a link, a folder or a pipe"), locked(folder):
        pass
    is_held(folder)  # and does not wait for the other end of a pipe
    assert os.lstat(folder / lock.NAME) == before
    if kind == "hard link":
        assert elsewhere.read_text() == "theirs"
    else:
        assert not elsewhere.exists()


def test_a_lock_that_was_removed_while_it_was_taken_is_none(tmp_path, monkeypatch):
    flock = fcntl.flock

    def removed(descriptor, how):
        (tmp_path / lock.NAME).unlink(missing_ok=True)
        flock(descriptor, how)

    monkeypatch.setattr(lock.fcntl, "flock", removed)
    with pytest.raises(UserError, match="in use by another process"), locked(tmp_path):
        pass

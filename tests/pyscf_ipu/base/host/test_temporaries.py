"""Each writer has a file of its own, and what dead writers left does not pile up."""

import errno
import os
import signal
import stat
import subprocess
import sys
from contextlib import ExitStack

import pytest

from pyscf_ipu.base.host import temporaries
from pyscf_ipu.base.host.temporaries import replacing, temporary, write_text

WRITER = """
import sys, time
from pathlib import Path
from pyscf_ipu.base.host.temporaries import temporary
with temporary(Path(sys.argv[1])) as file:
    print(file.name, flush=True)
    time.sleep(600)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_writers_of_one_name_do_not_meet(tmp_path):
    path = tmp_path / "a"
    with replacing(path) as first:
        first.write(b"first" * 9)
        with replacing(path) as second:
            assert second.name != first.name
            second.write(b"second")
        assert path.read_bytes() == b"second"
        first.write(b".")
    assert path.read_bytes() == b"first" * 9 + b"."
    assert names(tmp_path) == ["a"]


def test_a_writer_that_fails_removes_its_own_file_alone(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with replacing(path) as other:
        with pytest.raises(ZeroDivisionError), replacing(path) as mine:
            mine.write(b"half" * (1 // 0))
        assert names(tmp_path) == [os.path.basename(other.name), "a"]
        other.write(b"new")
    assert path.read_text() == "new"


def test_what_killed_writers_left_is_removed_by_the_next(tmp_path):
    path, older = tmp_path / "a", tmp_path / ".a.tmp"
    older.write_text("by an earlier version")
    command = [sys.executable, "-c", WRITER, str(path)]
    killed = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    try:
        with temporary(path):
            assert len({one.stdout.readline() for one in killed}) == 3
            assert len(names(tmp_path)) == 4
    finally:
        for one in killed:
            one.send_signal(signal.SIGKILL)
            one.communicate()
    assert len(names(tmp_path)) == 3
    write_text(path, "new")
    assert names(tmp_path) == ["a"]


def test_any_number_of_writers(tmp_path):
    with ExitStack() as stack:
        n = 3 * temporaries.LOOKED_AT
        found = {stack.enter_context(temporary(tmp_path / "a")).name for _ in range(n)}
        assert len(found) == n
    assert names(tmp_path) == []


def test_nothing_that_was_planted_is_followed_or_removed(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    others, new = tmp_path / "others", tmp_path / "new"
    others.write_text("theirs")
    (folder / ".a.tmp").symlink_to(others)
    (folder / ".a.1.tmp").symlink_to(new)
    os.mkfifo(folder / ".a.2.tmp")
    (folder / ".a.3.tmp").mkdir()
    write_text(folder / "a", "ours")
    assert (folder / "a").read_text() == "ours"
    assert names(folder) == [".a.1.tmp", ".a.2.tmp", ".a.3.tmp", ".a.tmp", "a"]
    assert others.read_text() == "theirs"
    assert not new.exists()


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    """Then nobody can tell whether a writer lives: its file stays."""

    def flock(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(temporaries.fcntl, "flock", flock)
    (tmp_path / ".a.tmp").write_text("of somebody")
    write_text(tmp_path / "a", "ours")
    assert names(tmp_path) == [".a.tmp", "a"]


def test_a_file_that_is_removed_by_one_who_looks_is_made_again(tmp_path, monkeypatch):
    """Between the making of a file and its lock, others take it for abandoned."""
    looks = []
    flock = temporaries.fcntl.flock

    def after_a_look(descriptor, how):
        if not looks:
            looks.append(how)
            (tmp_path / ".a.tmp").unlink()
        flock(descriptor, how)

    monkeypatch.setattr(temporaries.fcntl, "flock", after_a_look)
    write_text(tmp_path / "a", "ours")
    assert (tmp_path / "a").read_text() == "ours"
    assert names(tmp_path) == ["a"]


def test_the_umask_applies(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "a", "x")
        with replacing(tmp_path / "b", 0o600):
            pass
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"]
    assert modes == [0o640, 0o600]


@pytest.mark.parametrize("letter", ["a", "é"])
def test_names_as_long_as_the_system_allows(tmp_path, letter):
    name = letter * (255 // len(letter.encode()))
    write_text(tmp_path / name, "x")
    assert names(tmp_path) == [name]
    with pytest.raises(OSError, match="too long"), replacing(tmp_path / (name + letter)):
        pytest.fail("refused before anything is written")


def test_a_pipe_is_written_and_stays(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_text(path, "x")
    assert os.read(reader, 9) == b"x"
    os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert names(tmp_path) == ["pipe"]


def test_standard_output_is_no_file_that_another_could_replace(tmp_path):
    script = f"import {temporaries.__name__} as t; t.write_text('/dev/stdout', 'x')"
    with open(tmp_path / "out", "w") as out:
        subprocess.run([sys.executable, "-c", script], stdout=out, check=True)
        assert os.fstat(out.fileno()).st_size == 1
    assert names(tmp_path) == ["out"]

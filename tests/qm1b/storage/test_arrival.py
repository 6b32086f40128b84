"""Files arrive together, whatever ends the process on the way."""

import subprocess
import sys

import pytest

from qm1b.errors import UserError
from qm1b.storage import arrival

KILLED = """
import os, sys
from pathlib import Path
from qm1b.storage.arrival import arriving
from qm1b.storage.files import write_text

out = Path(sys.argv[1])
changes = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "open")
left = -1

def kill(event, arguments):
    global left
    if left >= 0 and event in changes and str(out) in str(arguments[0]):
        left -= 1
        if left < 0:
            os._exit(9)

sys.addaudithook(kill)

def fill(change):
    "Fill the folder in another process, which ends before this change."
    global left
    pid = os.fork()
    if not pid:
        left = change
        with arriving(out, "last") as folder:
            for name in ("one", "last", "two"):
                write_text(folder / name, name)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

kills = 0
while fill(kills) == 9:
    for again in (kills % 7, -1):  # and once more on the way back
        code = fill(again)
    assert code == 0, (kills, os.listdir(out))
    assert sorted(os.listdir(out)) == [".lock", "last", "one", "two"], (kills, os.listdir(out))
    for name in ("one", "last", "two"):
        assert (out / name).read_text() == name
    for path in out.iterdir():
        path.unlink()
    kills += 1
print(kills, *sorted(os.listdir(out)))
"""


def test_a_kill_at_any_moment_costs_time_alone(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path / "out"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kills, *names = done.stdout.split()
    assert int(kills) > 30
    assert names == [".lock", "last", "one", "two"]


@pytest.mark.parametrize("text", ["{", "[1]", "7"])
def test_a_list_that_somebody_else_wrote_removes_nothing(tmp_path, text):
    (tmp_path / arrival.LIST).write_text(text)
    with (
        pytest.raises(UserError, match="is not an empty folder"),
        arrival.arriving(tmp_path, "last"),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [arrival.LIST]

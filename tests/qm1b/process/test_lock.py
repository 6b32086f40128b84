"""One writer a folder, and a lock that dies with its owner."""

import os
import signal
import subprocess
import sys

import pytest

from qm1b.errors import UserError
from qm1b.process.lock import locked

OWNER = """
import sys, time
from pathlib import Path
from qm1b.process.lock import locked
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

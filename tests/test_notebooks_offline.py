"""What `notebooks/run.py` starts has no network, and says so at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "notebooks" / "offline"
ELSEWHERE = "192.0.2.1"  # for documentation (RFC 5737): nobody answers there
BEGIN = "import socket; s = socket.socket(); s.settimeout(5);"


def python(code):
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(FOLDER)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "code",
    [
        f"{BEGIN} s.connect(('{ELSEWHERE}', 80))",
        "import urllib.request; urllib.request.urlopen('http://example.org', timeout=5)",
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BEGIN!r}"
        f" + 's.connect((\"{ELSEWHERE}\", 80))'], check=True)",
    ],
    ids=["address", "name", "a child of it"],
)
def test_nothing_leaves_this_computer(code):
    done = python(code)
    assert done.returncode == 1
    assert "notebooks run without a network" in done.stderr


def test_this_computer_can_talk_to_itself():
    done = python(
        "import socket; server = socket.create_server(('127.0.0.1', 0));"
        "socket.create_connection(('localhost', server.getsockname()[1]));"
        "print('connected')"
    )
    assert (done.returncode, done.stdout) == (0, "connected\n"), done.stderr

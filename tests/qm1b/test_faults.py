"""A few of the random trials of benchmarks/faults.py: SIGKILL, damage, as root a full disk."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "faults.py"


def test_a_few_random_faults(tmp_path):
    done = subprocess.run(
        [sys.executable, SCRIPT, "--trials", "3", "--seed", "3", "--out", tmp_path / "a.json"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 trials, 0 differences" in done.stdout

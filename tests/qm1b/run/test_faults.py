"""A few trials of benchmarks.robustness.faults: SIGKILL, damage, as root a full disk."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SCRIPT = "benchmarks.robustness.faults"


def test_a_few_random_faults(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", SCRIPT, "--trials", "3", "--seed", "3", "--out", tmp_path / "a"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 trials, 0 differences" in done.stdout

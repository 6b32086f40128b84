"""A few trials of benchmarks.robustness.faults: kills, damage, as root a full disk, no folder."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = "benchmarks.robustness.faults"


UNDER_WAY = ("--only", "embed killed", "folder deleted")


@pytest.mark.long
@pytest.mark.parametrize(
    ("n", "flags"),
    [(3, ("--seed", "3")), (2, UNDER_WAY)],
)
def test_a_few_random_faults(n, flags, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", SCRIPT, "--trials", str(n), *flags, "--out", tmp_path / "a"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{n} trials, 0 differences" in done.stdout

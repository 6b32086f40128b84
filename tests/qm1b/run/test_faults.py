"""A few trials of benchmarks.robustness: random damage, and faults at single file operations."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UNDER_WAY = ("--only", "embed killed", "folder deleted")
STRUCK = ("--only", "qm1b select", "qm1b export hub", "--nth", "1", "--fault", "EIO")


def run(script, out, *flags):
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.robustness.{script}", *flags, "--out", out],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.parametrize(("n", "flags"), [(3, ()), (2, UNDER_WAY)])
def test_random_damage(n, flags, tmp_path):
    said = run("damage", tmp_path / "a.json", "--trials", str(n), *flags)
    assert f"{n} trials, 0 differences" in said


@pytest.mark.long
def test_commands_that_are_struck(tmp_path):
    assert "no bound missed" in run("faults", tmp_path / "a.json", *STRUCK)

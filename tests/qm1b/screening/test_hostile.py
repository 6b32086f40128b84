"""Hostile records of benchmarks.robustness.hostile: each is a candidate or has a reason."""

import subprocess
import sys
from pathlib import Path

import pytest
from fake_engine import Solver
from fake_runs import settings

from benchmarks.robustness import hostile
from qm1b import inputs
from qm1b.rows.schema import DROP_REASONS, Drop
from qm1b.screening.limits import Limits
from qm1b.screening.screen import Screen

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def made():
    return hostile.made(2000, seed=1)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("lines.smi", 2000),
        ("utf16.smi", 200),
        ("table.csv", 200),
        ("archive.tgz", 200),
        ("damaged.sdf", 100),
        ("damaged.xyz", 200),
    ],
)
def test_every_hostile_record_is_kept_or_has_a_reason(made, tmp_path, name, least):
    path = tmp_path / name
    path.write_bytes(made[name])
    screen = Screen(Limits(Solver(basis="sto-3g", precision="float32").n_ao, 128, True))
    found = [screen(record) for record in inputs.read(path, settings())]
    assert len(found) == inputs.summarise(path, settings()).n_lines >= least
    reasons = {each.reason for each in found if isinstance(each, Drop)}
    assert reasons <= set(DROP_REASONS)
    assert len(reasons) > 3
    assert any(not isinstance(each, Drop) for each in found)
    assert [each.line for each in found] == list(range(1, len(found) + 1))


@pytest.mark.long
def test_the_command_survives_a_hostile_table(tmp_path):
    flags = ["--lines", "300", "--only", "table.csv", "--out", tmp_path / "a.json"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.robustness.hostile", *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 problems" in done.stdout

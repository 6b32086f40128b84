"""Work units on a real Ray cluster, one node of which is killed: the rows of a local run."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from fake_runs import MANY

from qm1b import identical
from qm1b.cli import main

SCRIPT = Path(__file__).with_name("cluster_run.py")


def test_a_lost_node_changes_nothing(whole, tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'pyscf-ipu[cluster]'")
    source, out = tmp_path / "input.smi", tmp_path / "out"
    source.write_text(MANY)
    done = subprocess.run(
        [sys.executable, SCRIPT, source, out], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed a node after" in done.stdout
    assert "10 units, 2 nodes left" in done.stdout
    assert identical.differences(whole, out) == []


@pytest.mark.parametrize(
    ("ray", "words"),
    [(None, "--cluster needs Ray"), (ModuleType("ray"), "no Ray cluster at 127.0.0.1:1 ")],
)
def test_without_ray_or_cluster_it_is_one_sentence(tmp_path, capsys, monkeypatch, ray, words):
    monkeypatch.setitem(sys.modules, "ray", ray)
    source = tmp_path / "input.smi"
    source.write_text("C\n")
    arguments = ["--out", str(tmp_path / "out"), "--cluster", "127.0.0.1:1"]
    assert main(["generate", str(source), *arguments]) == 2
    message = capsys.readouterr().err
    assert words in message
    assert message.count("\n") == 1

"""Work units on a real Ray cluster, one node of which is killed: the rows of a local run."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from fake_runs import MANY, fake_run, settings

from qm1b.cli import main
from qm1b.errors import UserError
from qm1b.folder import same, shards
from qm1b.run import cluster
from qm1b.run.generate import Run, generate

SCRIPT = Path(__file__).parents[1] / "cluster_run.py"


@pytest.mark.long
@pytest.mark.slow
def test_a_lost_node_changes_nothing(tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: pip install '.[cluster]'")
    source, out = tmp_path / "input.smi", tmp_path / "out"
    source.write_text(MANY)
    done = subprocess.run(
        [sys.executable, SCRIPT, source, out], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed a node after" in done.stdout
    assert "10 units, 2 nodes left" in done.stdout
    (tmp_path / "local").mkdir()
    local, _ = fake_run(tmp_path / "local", MANY, forces=True)
    assert same.differences(local, out) == []


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


def fake_ray(error):
    """A Ray on which every task ends with an error."""
    names = ("RayError", "RayTaskError", "WorkerCrashedError", "NodeDiedError")
    ray_error = type("RayError", (Exception,), {})
    classes = {name: type(name, (ray_error,), {}) for name in names[1:]}

    def get(_):
        raise classes[error]("node 10.0.0.7\n was lost")

    return SimpleNamespace(
        exceptions=SimpleNamespace(RayError=ray_error, **classes),
        cluster_resources=lambda: {"CPU": 1},
        remote=lambda **_: lambda _: SimpleNamespace(remote=lambda task: task),
        wait=lambda running, **_: (running[:1], running[1:]),
        get=get,
        shutdown=lambda: None,
    )


def test_a_failing_cluster_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "_connected", lambda _: fake_ray("NodeDiedError"))
    source = tmp_path / "input.smi"
    source.write_text("C\nCC\n")
    run = Run(source, tmp_path / "out", settings(), 1, "fake_engine:Solver", cluster="auto")
    with pytest.raises(
        UserError, match=r"NodeDiedError: node 10.0.0.7 was lost\); .* again to resume"
    ) as e:
        generate(run)
    assert "\n" not in str(e.value)
    record = shards.read_manifest(run.out)
    assert record.status == "failed"
    assert record.runs[0]["workers"] is None
    assert record.runs[0]["cluster"] == "auto"

"""Work units on a real Ray cluster, one node of which is killed: the rows of a local run."""

import os
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
def test_a_lost_node_changes_nothing(tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: pip install '.[cluster]'")
    source, out = tmp_path / "input.smi", tmp_path / "out"
    source.write_text(MANY)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = subprocess.run(
        [sys.executable, SCRIPT, source, out],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"TMPDIR": str(scratch), "RAY_TMPDIR": "/tmp"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed a node after" in done.stdout
    assert "10 units, 2 nodes left" in done.stdout
    (tmp_path / "local").mkdir()
    local, _ = fake_run(tmp_path / "local", MANY, forces=True)
    assert same.differences(local, out) == []
    assert "asks for no token" in done.stderr
    left = [path for path in scratch.iterdir() if "qm1b" in path.name]
    assert len(left) <= 3, "Ray kills its workers; the next ones take their logs away"
    assert all(path.is_file() for path in left)


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


@pytest.mark.parametrize(
    ("address", "mode", "is_open"),
    [
        ("192.0.2.7:6379", None, True),
        ("192.0.2.7:6379", "disabled", True),
        ("192.0.2.7:6379", "TOKEN", False),
        ("head.example:6379", None, True),
        ("127.0.0.1:6379", None, False),
        ("[::1]:6379", None, False),
        ("[2001:db8::7]:6379", None, True),
    ],
)
def test_an_open_cluster_is_said(monkeypatch, capsys, address, mode, is_open):
    monkeypatch.setenv("RAY_AUTH_MODE", mode or "disabled")
    if mode is None:
        monkeypatch.delenv("RAY_AUTH_MODE")
    context = SimpleNamespace(gcs_address=address)
    fake = SimpleNamespace(init=lambda **_: None, get_runtime_context=lambda: context)
    monkeypatch.setitem(sys.modules, "ray", fake)
    assert cluster._connected("auto") is fake
    assert ("asks for no token" in capsys.readouterr().err) == is_open


WORKER = """
import os, signal, sys, tempfile
from fake_runs import settings
from pathlib import Path
from qm1b.run import cluster
station = cluster._station("fake_engine:Solver", settings())
print(*(path.read_text() for path in Path(tempfile.gettempdir()).iterdir()), sep="", flush=True)
if sys.argv[1:]:
    os.kill(os.getpid(), signal.SIGKILL)
station.pools.stop()
"""


@pytest.mark.long
def test_a_worker_leaves_no_log_behind(tmp_path):
    """One that was killed leaves it to the next one."""
    place = {"TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    for arguments, left in (["killed"], 1), (["killed"], 1), ([], 0):
        command = [sys.executable, "-c", WORKER, *arguments]
        subprocess.run(command, env=os.environ | place, check=not arguments)
        assert len([*tmp_path.iterdir()]) == left

"""Trainings in processes of their own: killed ones, and several that train together."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from schnet_commands import BASE, train, weights_of

from schnet.cli import main
from schnet.runs import logs


def command(*arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", "schnet.cli", *arguments],
        # XLA's notes on kept programs would fill the pipe, which is read at the end.
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"} | environment,
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
def test_a_killed_training_resumes_bit_for_bit(tmp_path):
    options = [*BASE, "--max-epochs", "60", "--checkpoint-minutes", "0.001", "--quiet"]
    assert main(["train", *options, "--out", str(tmp_path / "whole")]) == 0
    out = tmp_path / "killed"
    for _ in range(2):
        process = command("train", *options, "--out", str(out))
        done = len(logs.read(out / "log.csv"))
        while len(logs.read(out / "log.csv")) < done + 3:
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert 3 <= len(logs.read(out / "log.csv")) < 60
    assert main(["train", *options, "--out", str(out)]) == 0
    for ours, theirs in zip(weights_of(tmp_path / "whole"), weights_of(out), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    columns = ("epoch", "updates", "train_mae", "valid_mae", "gradient_norm")
    whole, killed = (
        [tuple(getattr(line, c) for c in columns) for line in logs.read(path / "log.csv")]
        for path in (tmp_path / "whole", out)
    )
    assert whole == killed


@pytest.mark.long
def test_devices_and_processes_share_an_update(tmp_path):
    """Two devices of one process, and two processes of one device, against one that adds up."""
    few = ["--max-epochs", "2", "--learning-rate", "1e-3"]
    assert train(tmp_path / "one", *few, "--accumulation", "2") == 0
    two = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    process = command("train", *BASE, *few, "--quiet", "--out", str(tmp_path / "two"), **two)
    said = process.communicate(timeout=200)
    assert process.returncode == 0, said
    port = 20_000 + os.getpid() % 20_000
    shared = ["--quiet", "--coordinator", f"localhost:{port}", "--processes", "2"]
    pair = [
        command("train", *BASE, *few, "--out", str(tmp_path / "pair"), *shared, "--process", str(i))
        for i in (0, 1)
    ]
    for process in pair:
        said = process.communicate(timeout=200)
        assert process.returncode == 0, said
    reference = logs.read(tmp_path / "one" / "log.csv")
    for name in ("two", "pair"):
        lines = logs.read(tmp_path / name / "log.csv")
        assert [line.updates for line in lines] == [line.updates for line in reference]
        for line, expected in zip(lines, reference, strict=True):
            assert line.train_mae == pytest.approx(expected.train_mae, rel=1e-4)
            assert line.valid_mae == pytest.approx(expected.valid_mae, rel=1e-3)

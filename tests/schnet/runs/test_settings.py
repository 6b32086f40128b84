from itertools import pairwise
from pathlib import Path

import jax
import numpy as np
import pytest
from packs import TINY, network

from schnet.errors import UserError
from schnet.network.config import ModelConfig, Optimizer, Schedule
from schnet.network.model import SchNet
from schnet.runs import checkpoint, logs
from schnet.runs.settings import Data, TrainSettings, read_yaml, to_dict, write_yaml

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join(['*' + a] * 9)}]\n" for a, b in pairwise("abcdefghijkl")
)
"""Half a kilobyte that stands for 9^12 texts."""

SETTINGS = TrainSettings(
    Data(data=(Path("a.parquet"),), target="energy", limit=7),
    TINY,
    Optimizer(learning_rate=1e-3),
    Schedule(max_epochs=3),
    seed=5,
)


def test_settings_come_back_from_yaml(tmp_path):
    path = tmp_path / "config.yaml"
    write_yaml(path, SETTINGS)
    assert read_yaml(path, TrainSettings) == SETTINGS


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("optimiser: {}", "has no setting 'optimiser'; allowed are rows, model, optimizer"),
        ("model: {widht: 3}", "config.yaml: model has no setting 'widht'; allowed are width"),
        ("model: 3", "model must be a mapping"),
        ("seed: many", "seed is 'many', which is not a whole number"),
        ("seed: true", "seed is True, which is not a whole number"),
        ("model: {width: 1.5}", "model.width is 1.5, which is not a whole number"),
        ("model: {1: 2, a: 3}", "model has no setting 1, 'a'; allowed are width"),
        ("{seed: a, rows: {unit: 3}}", "rows.unit is 3, .*\n.*config.yaml: seed is 'a', which"),
        ("seed: [", "is not YAML"),
        ("optimizer: {loss: l3}", "loss is 'l3'; allowed are l1, huber, mse"),
        ("model: {readout: 3}", "readout is 3; allowed are sum, mean, dipole"),
        ("seed: 2020-99-99", "is not YAML: month must be"),
        ("seed: " + "9" * 5000, "is not YAML: .*4300"),
        ("seed: " + "9" * 100_000, "longer than 65536 bytes"),
        ("seed: 0x" + "f" * 60_000, "seed is too long a number, which is not a whole number of 64"),
        (
            "optimizer: {clip: 0x" + "f" * 3000 + "}",
            r"clip is [0-9]{37}\.\.\., which is not a number",
        ),
        ("seed: " + "[" * 60_000, "within one another beyond 16"),
        ("seed: " + "{a: " * 16_000, "within one another beyond 16"),
        (BOMB, "has aliases"),
        ("seed: 1\0", "is not YAML"),
        ("seed: \ud800", "is not YAML"),
        ("", ""),
    ],
    ids=lambda text: text[:30],
)
def test_wrong_yaml_is_refused(tmp_path, text, says):
    path = tmp_path / "config.yaml"
    path.write_text(text, errors="surrogatepass")
    if not says:
        assert read_yaml(path, TrainSettings) == TrainSettings()
        return
    with pytest.raises(UserError, match=says):
        read_yaml(path, TrainSettings)


def test_numbers_of_yaml_may_be_written_any_way(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("optimizer: {learning_rate: 1e-4, clip: 2}\nrows: {data: one.parquet}\n")
    found = read_yaml(path, TrainSettings)
    assert found.optimizer.learning_rate == 1e-4  # YAML reads 1e-4 as text
    assert found.optimizer.clip == 2.0
    assert found.rows.data == (Path("one.parquet"),)


@pytest.mark.parametrize(
    "wrong",
    [
        ModelConfig(width=1),
        ModelConfig(filters=0),
        ModelConfig(cutoff_bohr=0.0),
        Optimizer(learning_rate=0.0),
        Optimizer(ema=1.0),
        Optimizer(final_fraction=2.0),
        Schedule(max_epochs=0),
        Schedule(accumulation=0),
        Schedule(max_minutes=-1.0),
        TrainSettings(Data((Path("a"),)), seed=-1),
        TrainSettings(Data((Path("a"),), split_seed=-1)),
    ],
)
def test_settings_without_a_meaning_are_refused(wrong):
    with pytest.raises(UserError, match="--"):
        wrong.check()


def test_limits_of_time_may_change_when_a_run_resumes():
    decisive = SETTINGS.decisive()
    assert decisive["rows.target"] == "energy"
    assert not any("minutes" in name for name in decisive)
    assert to_dict(SETTINGS)["schedule"]["max_minutes"] == 0.0


def test_a_checkpoint_comes_back(tmp_path):
    path, model = tmp_path / "last.ckpt", network()
    checkpoint.save(path, model, {"epoch": 3})
    found, note = checkpoint.load(path, network(seed=1))
    assert note == {"epoch": 3}
    np.testing.assert_array_equal(found.embedding, model.embedding)


def test_a_damaged_checkpoint_is_found(tmp_path):
    path = tmp_path / "last.ckpt"
    checkpoint.save(path, network(), {})
    data = bytearray(path.read_bytes())
    for place in (5, len(data) // 2, len(data) - 1):
        broken = bytearray(data)
        broken[place] ^= 4
        path.write_bytes(broken)
        with pytest.raises(UserError, match="is damaged"):
            checkpoint.load(path, network())
    path.write_bytes(data[:100])
    with pytest.raises(UserError, match="is damaged"):
        checkpoint.load(path, network())
    with pytest.raises(UserError, match="cannot be read"):
        checkpoint.load(tmp_path / "none.ckpt", network())


def test_a_checkpoint_of_another_network_is_refused(tmp_path):
    path = tmp_path / "best.ckpt"
    checkpoint.save(path, network(), {})
    wider = SchNet(ModelConfig(width=16, filters=6, interactions=2, gaussians=7), jax.random.key(0))
    with pytest.raises(UserError, match="another network"):
        checkpoint.load(path, wider)


def test_a_log_is_cut_back_to_the_checkpoint(tmp_path):
    path = tmp_path / "log.csv"
    log = logs.CsvLog(path, 0)
    for epoch in (1, 2, 3):
        log.add(logs.EpochLine(epoch, 10 * epoch, 1e-3, 0.5, 100.0, 90.0, 1.0, 500.0, 1.5))
    assert [line.epoch for line in logs.CsvLog(path, 2).lines] == [1, 2]
    assert [line.epoch for line in logs.read(path)] == [1, 2]
    assert logs.read(path)[0].updates == 10
    path.write_text(path.read_text()[:-20])
    with pytest.raises(UserError, match="is damaged at line 3"):
        logs.read(path)

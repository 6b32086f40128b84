"""The real command, from a file to predictions: a small training and what is done with it."""

import csv
import gzip
import io
import json
import os
from contextlib import redirect_stdout
from dataclasses import replace

import numpy as np
import pytest
from packs import QM9, qm9
from schnet_commands import BASE, RUN, train, weights_of

from qm1b.storage.lock import locked
from schnet.cli import main
from schnet.commands.train import from_command_line
from schnet.network.config import ModelConfig
from schnet.network.predictor import Predictor
from schnet.runs import logs, results
from schnet.runs.run_folder import RunFolder

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a few epochs, which a full disk under its log does not disturb."""
    out = tmp_path_factory.mktemp("runs") / "gap"
    with open("/dev/full", "w") as full, redirect_stdout(full):
        assert train(out, *RUN) == 0
    return out


def test_a_run_leaves_all_its_files(run):
    files = "config.yaml run.json last.ckpt best.ckpt log.csv tensorboard learning_curve.png"
    pictures = ".lock parity.png test_predictions.csv results.json"
    assert {path.name for path in run.iterdir()} == {*files.split(), *pictures.split()}
    found = json.loads((run / "run.json").read_text())
    assert found["train_rows"] == 40
    assert found["target_unit"] == "hartree"
    assert found["data"]["train"]["units"]
    assert found["versions"]["jax"]
    assert (run / "parity.png").read_bytes()[:4] == b"\x89PNG"
    lines = logs.read(run / "log.csv")
    assert [line.epoch for line in lines] == [1, 2, 3]
    assert np.isfinite([line.valid_mae for line in lines]).tolist() == [False, True, True]
    assert any((run / "tensorboard").iterdir())


def test_the_last_line_of_an_evaluation(run, capsys):
    assert main(["evaluate", str(run)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    words = last.split()
    assert last.startswith("test MAE ")
    assert last.endswith(" meV")
    assert "meV over 10 rows; mean predictor" in last
    with open(run / "test_predictions.csv") as stream:
        rows = list(csv.DictReader(stream))
    errors = [abs(float(r["gap_ev"]) - float(r["gap_in_file_ev"])) for r in rows]
    assert 1e3 * np.mean(errors) == pytest.approx(float(words[2]), abs=0.02)


def test_a_full_disk_ends_an_evaluation_and_not_an_export(run, tmp_path, capsys):
    table, weights = tmp_path / "a.csv", tmp_path / "a.npz"
    for code, words in (
        (1, ["evaluate", run]),
        (1, ["predict", run, QM9]),
        (0, ["predict", run, QM9, "--out", table]),
        (0, ["export", run, "--pyg", weights]),
    ):
        with open("/dev/full", "w") as full, redirect_stdout(full):
            assert main(list(map(str, words))) == code
        err = capsys.readouterr().err
        assert err.count("nothing can be printed") == err.count("\n") == 1
    assert table.read_text().count("\n") > 40
    assert weights.exists()


def test_other_data_can_be_evaluated(run, capsys):
    assert main(["evaluate", str(run), "--data", str(QM9)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"{QM9.name} MAE ")
    assert "over 60 rows" in last
    for contradiction in (["--data", str(QM9), "--side", "test"], ["--unit", "ev"]):
        assert main(["evaluate", str(run), *contradiction]) == 2
        assert "--data" in capsys.readouterr().err


def test_parts_of_a_file_share_a_compiled_program(run):
    """Each part has its own sizes; the program for the larger ones serves the smaller ones."""
    predictor, samples = RunFolder(run).predictor(), qm9()
    parts = [samples.take(np.arange(i, i + 12)) for i in range(0, 60, 12)]
    one = [line.split(",") for line in results.lines(predictor, [samples], truth=True)]
    several = [line.split(",") for line in results.lines(predictor, parts, truth=True)]
    assert [row[:2] for row in one] == [row[:2] for row in several]
    assert one[0] == ["row", "smiles", "gap_ev", "gap_in_file_ev\n"]
    for a, b in zip(one[1:], several[1:], strict=True):
        assert float(a[2]) == pytest.approx(float(b[2]), abs=1e-4)
        assert a[3] == b[3]
    assert next(results.lines(predictor, [], truth=False)) == "row,smiles,gap_ev,reason,id\n"


def test_the_same_command_again_trains_no_more(run, capsys):
    before = (run / "last.ckpt").read_bytes()
    assert train(run, *RUN) == 0
    assert (run / "last.ckpt").read_bytes() == before
    assert "test MAE" in capsys.readouterr().out


def test_more_epochs_of_a_planned_rate_name_the_command_that_does_it(run, tmp_path, capsys):
    assert train(run, "--max-epochs", "5", *RUN[2:]) == 2
    said = capsys.readouterr().err
    assert "--max-epochs: there 3, here 5" in said
    assert f"resume it as it is: `schnet train --out {run}`." in said
    command = said.split("`")[-2].split()[1:]
    command[command.index("--out") + 1] = str(tmp_path / "more")
    assert main([*command, "--quiet"]) == 0
    assert len(logs.read(tmp_path / "more" / "log.csv")) == 5
    assert train(run, "--max-epochs", "2", *RUN[2:]) == 2
    assert "--init" in capsys.readouterr().err
    assert main(["train", "--out", str(run)]) == 0
    assert (
        f"{run} is complete; to train on from its weights: --init {run}" in capsys.readouterr().err
    )


@pytest.mark.slow
def test_more_epochs_of_a_rate_without_a_plan_go_on_bit_for_bit(tmp_path, capsys):
    options = ["--schedule", "constant", "--warmup-updates", "2", "--valid-every", "1"]
    for out, epochs in (("a", 2), ("b", 1), ("b", 2)):
        assert train(tmp_path / out, *options, "--max-epochs", str(epochs)) == 0
    for one, other in zip(*(weights_of(tmp_path / out) for out in "ab"), strict=True):
        np.testing.assert_array_equal(one, other)
    assert "max_epochs: 2" in (tmp_path / "b" / "config.yaml").read_text()
    assert train(tmp_path / "b", *options, "--max-epochs", "1") == 0  # fewer change nothing
    assert len(logs.read(tmp_path / "b" / "log.csv")) == 2


def test_a_folder_has_one_training_at_a_time(run, capsys):
    with locked(run):
        assert train(run, *RUN) == 2
    assert f"folder {run} is in use by process {os.getpid()}" in capsys.readouterr().err


def test_other_settings_are_refused_and_shown(run, capsys):
    assert train(run, *RUN[:-1], "0.02") == 2
    said = capsys.readouterr().err
    assert "--learning-rate: there 0.01, here 0.02" in said
    assert train(run, *RUN, "--split", "30,10,10", "--target", "energy") == 2
    said = capsys.readouterr().err.splitlines()
    assert said[1:-1] == [
        "  --target: there 'gap', here 'energy'",
        "  --split: there '40,10,10', here '30,10,10'",
    ]
    assert said[-1].endswith(f"resume it as it is: `schnet train --out {run}`.")


def test_a_run_resumes_from_its_own_settings(run, capsys):
    assert main(["train", "--out", str(run), "--quiet"]) == 0
    assert "test MAE" in capsys.readouterr().out


def test_fine_tuning_starts_from_the_other_weights(run, tmp_path):
    out = tmp_path / "tuned"
    few = ["--max-epochs", "1", "--learning-rate", "1e-9", "--quiet"]
    rows = ["--data", str(QM9), "--split", "20,10,10"]
    assert main(["train", *rows, *few, "--out", str(out), "--init", str(run)]) == 0
    old, new = RunFolder(run).predictor(), RunFolder(out).predictor()
    assert new.config == old.config
    np.testing.assert_allclose(new.model.embedding, old.model.embedding, atol=1e-6)


def settings_of(*words):
    """The settings of a command line, without training."""
    return from_command_line(words).settings()


def test_the_network_is_that_of_the_options_the_file_or_the_first_weights(run, tmp_path):
    out = ["--out", str(tmp_path / "new")]
    data = f"--data={QM9}"
    assert settings_of(data, *out).model == ModelConfig(readout="mean")
    assert settings_of(data, *out, "--target", "energy").model.readout == "sum"
    # Other weights give their sizes; the new target decides about the readout.
    init = [data, *out, "--init", str(run)]
    old = RunFolder(run).predictor().config
    assert settings_of(*init).model == old
    assert settings_of(*init, "--target", "homo").model == old
    assert settings_of(*init, "--target", "energy").model == replace(old, readout="sum")
    assert settings_of(*init, "--target", "dipole_norm").model.readout == "dipole"
    assert settings_of(*init, "--width", "99").model.width == 99  # and not silently the old one
    # A file replaces the defaults.
    file = tmp_path / "c.yaml"
    file.write_text(f"rows: {{data: {QM9}, target: energy}}\nmodel: {{width: 32}}\n")
    given = ["--config", str(file), *out]
    assert settings_of(*given).model == ModelConfig(width=32, readout="sum")
    assert settings_of(*given, "--preset", "schnet-9m").model.width == 1024
    file.write_text(f"rows: {{data: {QM9}}}\nmodel: {{readout: sum}}\n")
    assert settings_of(*given).model.readout == "sum"
    assert settings_of(*given, "--target", "dipole_norm").model.readout == "dipole"


def test_smiles_and_geometries_are_predicted(run, tmp_path, capsys):
    smiles = tmp_path / "mine.smi"
    smiles.write_text("CCO\nCC(=O)N\n")
    assert main(["predict", str(run), str(smiles)]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["smiles"] for row in rows] == ["CCO", "CC(=O)N"]
    assert all(0.0 < float(row["gap_ev"]) < 20.0 for row in rows)
    out = tmp_path / "out.csv"
    assert main(["predict", str(run), str(QM9), "--out", str(out)]) == 0
    with open(out) as stream:
        values = [float(row["gap_ev"]) for row in csv.DictReader(stream)]
    predictor = RunFolder(run).predictor()
    assert isinstance(predictor, Predictor)
    np.testing.assert_allclose(values, predictor(qm9()) * 27.211386, rtol=1e-5)


def test_standard_input_is_predicted(run, capsys, monkeypatch):
    """SMILES, and frames, which are read more than once; nothing at all is a mistake."""
    texts = {
        "CCO =SUM(A1)\nC[NH3+] ion\n": [
            ("line 1", "'=SUM(A1)", ""),  # no spreadsheet runs it
            ("line 2", "ion", "has charge +1"),
        ],
        "3\nid=w\nO 0 0 0.1\nH 0 0.76 -0.47\nH 0 -0.76 -0.47\n": [("frame 1", "w", "")],
    }
    for text, expected in texts.items():
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert main(["predict", str(run), "-"]) == 0
        said = capsys.readouterr()
        rows = list(csv.DictReader(said.out.splitlines()))
        assert [(row["row"], row["id"], row["reason"][:13]) for row in rows] == expected
        assert all(row["gap_ev"] for row in rows)
        assert ("1 of 2 rows in doubt" in said.err) == ("ion" in text)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    assert main(["predict", str(run), "-"]) == 2
    assert "nothing came in on standard input" in capsys.readouterr().err


def test_a_row_with_a_new_element_is_left_out_and_said(run, tmp_path, capsys):
    strange = tmp_path / "two.smi"
    strange.write_text("CCO\nCS\n")
    assert main(["predict", str(run), str(strange)]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert float(rows[0]["gap_ev"]) > 0.0
    assert rows[1]["gap_ev"] == ""
    assert rows[0]["reason"] == ""
    assert rows[1]["reason"].startswith("has S, which no training row had; the model is for H, C, ")
    with gzip.open(QM9, "rt") as stream:
        frames = stream.read().replace("\nN ", "\nS ", 1)
    data = tmp_path / "sulfur.extxyz"
    data.write_text(frames)
    assert main(["evaluate", str(run), "--data", str(data)]) == 0
    said = capsys.readouterr().out
    assert "left out 1 row with an element" in said
    assert "over 59 rows" in said


def test_every_row_has_a_prediction_or_a_reason(run, tmp_path, capsys):
    """A molecule that cannot be predicted costs nobody else's prediction."""
    smiles = tmp_path / "mine.smi"
    smiles.write_text("CCBr\nCCO\nCC(\nCS\n[CH3]\n")
    out = tmp_path / "out.csv"
    assert main(["predict", str(run), str(smiles), "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert f"{out}: 1 prediction of gap" in said.out
    assert "4 of 5 rows without a prediction; the column reason says why" in said.err
    with open(out) as stream:
        rows = list(csv.DictReader(stream))
    assert [row["row"] for row in rows] == [f"line {i}" for i in range(1, 6)]
    assert [row["smiles"] for row in rows] == ["CCBr", "CCO", "CC(", "CS", "[CH3]"]
    assert [bool(row["gap_ev"]) for row in rows] == [False, True, False, False, False]
    assert [bool(row["reason"]) for row in rows] == [True, False, True, True, True]
    assert "Br" in rows[0]["reason"]

    frames = tmp_path / "mine.xyz"
    carbon = "3\n{}\nO 0 0 0.1\nH 0 0.76 -0.47\nH 0 -0.76 -0.47\n".format
    bad = ["multiplicity=3", 'pbc="T T T"', "units=nm"]
    text = "".join(map(carbon, ["", *bad])) + carbon("").replace("O ", "Q ")
    frames.write_text(text + carbon("").replace("0.76", "nan", 1) + carbon("charge=0"))
    assert main(["predict", str(run), str(frames)]) == 0
    said = capsys.readouterr()
    rows = list(csv.DictReader(said.out.splitlines()))
    assert "5 of 7 rows without a prediction" in said.err
    wanted = ["", "open shell", "periodic", "units='nm'", "atom 1 is 'Q", "not finite", ""]
    for row, words in zip(rows, wanted, strict=True):
        assert words in row["reason"]
        assert bool(row["gap_ev"]) == (not words)


def test_a_run_is_exported(run, tmp_path, capsys):
    assert main(["export", str(run)]) == 2
    assert "nothing to write" in capsys.readouterr().err
    nowhere = tmp_path / "none" / "net.npz"
    for words in (["export", str(run), "--pyg"], ["predict", str(run), str(QM9), "--out"]):
        assert main([*words, str(nowhere)]) == 2
        assert f"there is no folder {nowhere.parent}; make it first" in capsys.readouterr().err
    npz, onnx = tmp_path / "net.npz", tmp_path / "net.onnx"
    assert main(["export", str(run), "--pyg", str(npz)]) == 0
    assert "gap in ev, lengths in Angstrom" in capsys.readouterr().out
    pytest.importorskip("onnx", reason="the extra onnx is not installed")
    assert main(["export", str(run), "--onnx", str(onnx)]) == 0
    assert onnx.stat().st_size > 1000


class TestPrice:
    @pytest.mark.slow
    def test_a_training_writes_the_price_of_its_own_update(self, tmp_path, capsys):
        out = tmp_path / "priced"
        how = ["--accumulation", "2", "--precision", "float16", "--price", "bow-pod4"]
        base = [*BASE, "--out", str(out), *RUN[:2]]
        assert main(["train", *base, *how]) == 0
        assert "simulated bow-pod4: " in capsys.readouterr().err
        price = json.loads((out / "price.json").read_text())
        assert price["target"] == "bow-pod4"
        assert price["cycles"]["backward"] > 0
        assert price["unknown_ops"] == {}
        assert "price" not in (out / "config.yaml").read_text()
        (out / "price.json").unlink()
        assert main(["train", *base, *how[:4]]) == 0  # not asked for, not written
        assert not (out / "price.json").exists()
        assert main(["train", *base, *how]) == 0
        assert json.loads((out / "price.json").read_text()) == price

    def test_an_unknown_system_is_refused_before_anything_is_made(self, tmp_path, capsys):
        assert train(tmp_path / "none", *RUN, "--price", "pod17") == 2
        assert "bow-pod16" in capsys.readouterr().err
        assert not (tmp_path / "none").exists()

    def test_what_has_no_price_is_trained_all_the_same(self, tmp_path, capsys):
        out = tmp_path / "bfloat"
        how = ["--max-epochs", "1", "--precision", "bfloat16", "--price", "bow-pod16"]
        assert train(out, *how) == 0
        assert capsys.readouterr().err.count("no price on bow-pod16: ") == 1
        assert not (out / "price.json").exists()
        assert (out / "best.ckpt").exists()

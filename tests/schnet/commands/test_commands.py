"""The real command, from a file to predictions."""

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from packs import QM9, pyg_weights, qm9
from toy_forces import toy, written

from pyscf_ipu.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV
from schnet.cli import main
from schnet.commands.train import from_command_line
from schnet.network.config import PAPER_OPTIMIZER, PAPER_SCHEDULE, PRESETS, ModelConfig
from schnet.network.predictor import Predictor
from schnet.runs import logs, results
from schnet.runs.run_folder import RunFolder
from schnet.sources import open_source

SIZE = ["--width", "8", "--filters", "8", "--interactions", "1", "--gaussians", "8"]
BASE = ["--data", str(QM9), "--split", "40,10,10", *SIZE, "--pack-molecules", "8"]

RUN = ["--max-epochs", "3", "--valid-every", "2", "--learning-rate", "0.01"]


def train(out, *more):
    return main(["train", *BASE, "--out", str(out), "--quiet", *more])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a few epochs."""
    out = tmp_path_factory.mktemp("runs") / "gap"
    assert train(out, *RUN) == 0
    return out


def test_a_run_leaves_all_its_files(run):
    files = "config.yaml run.json last.ckpt best.ckpt log.csv tensorboard learning_curve.png"
    pictures = "parity.png test_predictions.csv results.json"
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


def test_other_data_can_be_evaluated(run, capsys):
    assert main(["evaluate", str(run), "--data", str(QM9)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("test MAE ")
    assert "over 60 rows" in last
    for contradiction in (["--data", str(QM9), "--side", "test"], ["--unit", "ev"]):
        assert main(["evaluate", str(run), *contradiction]) == 2
        assert "--data" in capsys.readouterr().err


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
    assert next(results.lines(predictor, [], truth=False)) == "row,smiles,gap_ev,reason\n"


def test_the_same_command_again_trains_no_more(run, capsys):
    before = (run / "last.ckpt").read_bytes()
    assert train(run, *RUN) == 0
    assert (run / "last.ckpt").read_bytes() == before
    assert "test MAE" in capsys.readouterr().out


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


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--target", "colour"], "--target is 'colour'"),
        (["--split", "1,2"], "--split is '1,2'"),
        (["--split", "400,1,1"], "asks for 400"),
        (["--unit", "ev"], "gap_au"),
        (["--devices", "99"], "--devices is 99"),
        (["--learning-rate", "0"], "--learning-rate"),
        (["--data", "nothing.parquet"], "nothing.parquet does not exist"),
        (["--config", "nothing.yaml"], "nothing.yaml cannot be read"),
        (["--init", "nowhere"], "is not a run of schnet"),
        (["--processes", "2"], "--coordinator"),
        (["--limit", "1000"], "--limit is 1000"),
        (["--seed", "-1"], "--seed -1"),
    ],
)
def test_what_cannot_be_trained_is_one_sentence(tmp_path, capsys, options, says):
    assert train(tmp_path / "run", *options) == 2
    said = capsys.readouterr().err
    assert says in said
    assert "Traceback" not in said
    assert not (tmp_path / "run").exists()


def test_a_loss_that_is_no_number_stops_and_keeps_the_last_good_weights(tmp_path, capsys):
    out = tmp_path / "run"
    assert train(out, "--max-epochs", "2", "--learning-rate", "1e30", "--clip", "1e30") == 2
    assert "last.ckpt" in capsys.readouterr().err
    predictor = RunFolder(out).predictor
    assert np.isfinite(predictor(out / "last.ckpt").model.embedding).all()


def test_dipoles_and_energies_are_learned(tmp_path, capsys):
    """`dipole_debye` and `U0_au` of the same file, each with its own readout and unit."""
    for target, unit in (("energy", "meV"), ("dipole_norm", "mdebye")):
        out = tmp_path / target
        assert train(out, "--target", target, "--max-epochs", "1") == 0
        said = capsys.readouterr().out
        assert f" {unit} over 10 rows" in said
        found = json.loads((out / "results.json").read_text())
        assert ("atom references alone" in said) == ("atom_references_alone" in found)
        assert ("mean predictor" in said) == (target != "energy") == ("mean_predictor" in found)
        if target == "dipole_norm":
            with open(out / "test_predictions.csv") as stream:
                truth = [float(r["dipole_norm_in_file_debye"]) for r in csv.DictReader(stream)]
            mean = 1e3 * np.abs(np.array(truth) - np.mean(truth)).mean()
            assert float(said.split("mean predictor ")[1].split()[0]) == pytest.approx(mean, abs=1)
        predicted = RunFolder(out).predictor()(qm9())
        assert np.isfinite(predicted).all()
        if target == "dipole_norm":
            assert (predicted >= 0).all()


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


def test_weights_of_pytorch_geometric_become_a_run(tmp_path, capsys):
    arrays, found = pyg_weights()
    weights = tmp_path / "weights.npz"
    np.savez(weights, **arrays)
    out = tmp_path / "run"
    arguments = ["import-pyg", str(weights), "--out", str(out), "--target", "gap", "--unit", "ev"]
    assert main(arguments) == 0
    assert "width 32" in capsys.readouterr().out
    predicted = RunFolder(out).predictor()(qm9()) * 27.211386245988
    np.testing.assert_allclose(predicted, found["output_add"], rtol=1e-5)
    assert main(arguments) == 2  # there is a run now
    assert main(["evaluate", str(out)]) == 2
    assert "--data" in capsys.readouterr().err


def test_the_calculator_moves_a_molecule_downhill(tmp_path):
    from ase import Atoms

    from schnet.calculator import SchNetCalculator

    out = tmp_path / "run"
    assert train(out, "--target", "energy", "--max-epochs", "1") == 0
    row = qm9()[3]
    atoms = Atoms(row.numbers, row.positions_bohr * 0.529177210903)
    atoms.calc = SchNetCalculator(out)
    energy, forces = atoms.get_potential_energy(), atoms.get_forces()
    predicted = RunFolder(out).predictor()(qm9([3]))[0] * 27.211386245988
    assert energy == pytest.approx(predicted, rel=1e-6)
    np.testing.assert_allclose(forces.sum(axis=0), 0.0, atol=1e-3)
    step = 1e-2
    slope = []
    for sign in (1, -1):
        moved = atoms.copy()
        moved.positions += sign * step * forces / np.linalg.norm(forces)
        moved.calc = atoms.calc
        slope.append(moved.get_potential_energy())
    assert (slope[1] - slope[0]) / (2 * step) == pytest.approx(np.linalg.norm(forces), rel=0.05)


@pytest.fixture(scope="module")
def forces_run(tmp_path_factory):
    """A run of energies and forces, and its data."""
    folder = tmp_path_factory.mktemp("forces")
    data, out = written(folder / "toy.extxyz", toy()), folder / "run"
    options = ["--split", "40,10,10", *SIZE, "--pack-molecules", "8", *RUN, "--quiet"]
    options += ["--target", "energy+forces", "--out", str(out)]
    assert main(["train", "--data", str(data), *options]) == 0
    return out, data, options


def test_forces_are_learned_and_every_file_has_them(forces_run, capsys):
    out, data, options = forces_run
    assert main(["evaluate", str(out)]) == 0
    rmse, last = capsys.readouterr().out.splitlines()[-2:]
    found = json.loads((out / "results.json").read_text())
    forces = found["forces"]
    assert forces["unit"] == "meV/Angstrom"
    assert f"forces {forces['mae']:.2f} meV/Angstrom, no forces" in last
    assert f"forces {forces['rmse']:.2f} meV/Angstrom" in rmse
    with open(out / "test_predictions.csv") as stream:
        rows = list(csv.DictReader(stream))
    columns = ("forces_ev_angstrom", "forces_in_file_ev_angstrom")
    values, truth = (np.concatenate([np.array(r[c].split(), float) for r in rows]) for c in columns)
    assert 1e3 * np.abs(values - truth).mean() == pytest.approx(forces["mae"], rel=1e-4)
    assert 1e3 * np.abs(truth).mean() == pytest.approx(forces["zero_forces"], rel=1e-4)
    lines = logs.read(out / "log.csv")
    assert lines[-1].train_forces_mae < lines[0].train_forces_mae
    valid = np.isfinite([line.valid_forces_mae for line in lines])
    assert valid.tolist() == [False, True, True]
    # The other name of the target is the same training, which is complete.
    options = ["forces+energy" if word == "energy+forces" else word for word in options]
    assert main(["train", "--data", str(data), *options]) == 0


def test_forces_are_predicted(forces_run, tmp_path, capsys):
    out, _, _ = forces_run
    smiles = tmp_path / "mine.smi"
    smiles.write_text("CCO\nCS\n")
    assert main(["predict", str(out), str(smiles)]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    forces = np.array(rows[0]["forces_ev_angstrom"].split(), float).reshape(-1, 3)
    assert len(forces) == 9
    np.testing.assert_allclose(forces.sum(axis=0), 0.0, atol=1e-4)
    assert rows[1]["forces_ev_angstrom"] == ""
    assert rows[1]["reason"].startswith("has S")
    from ase import Atoms

    from schnet.calculator import SchNetCalculator

    samples = next(open_source(smiles, None).parts())
    atoms = Atoms(samples[0].numbers, samples[0].positions_bohr * BOHR_TO_ANGSTROM)
    atoms.calc = SchNetCalculator(out)
    np.testing.assert_allclose(atoms.get_forces(), forces, atol=1e-4 * np.abs(forces).max())
    assert atoms.get_potential_energy() == pytest.approx(float(rows[0]["energy_ev"]), rel=1e-6)


def test_a_training_of_forces_that_was_stopped_resumes_bit_for_bit(forces_run, tmp_path):
    whole, data, options = forces_run
    out = tmp_path / "stopped"
    options = ["train", "--data", str(data), *options[:-1], str(out)]
    assert main([*options, "--max-minutes", "1e-6"]) == 0  # one call of the step
    assert not (out / "best.ckpt").exists()
    assert main(options) == 0
    for one, other in zip(weights_of(out), weights_of(whole), strict=True):
        np.testing.assert_array_equal(one, other)
    lines = zip(logs.read(out / "log.csv"), logs.read(whole / "log.csv"), strict=True)
    for one, other in lines:
        same = one._replace(seconds=0.0, graphs_per_s=0.0, valid_mae=0.0, valid_forces_mae=0.0)
        assert same == other._replace(
            seconds=0.0, graphs_per_s=0.0, valid_mae=0.0, valid_forces_mae=0.0
        )


def test_data_without_forces_are_refused(tmp_path, capsys):
    assert train(tmp_path / "run", "--target", "forces+energy") == 2
    assert "`qm1b generate --forces`" in capsys.readouterr().err
    for target, more in (("gap", []), ("energy", ["--target=energy"])):
        assert train(tmp_path / "run", "--forces_weight=3", *more) == 2
        assert f"--target {target} learns no forces" in capsys.readouterr().err
    forces = ["--target", "forces+energy"]
    assert train(tmp_path / "run", *forces, "--forces-weight", "-1") == 2
    assert "--forces-weight -1.0: give 0 or more" in capsys.readouterr().err


def test_few_rows_without_validation(tmp_path, capsys):
    """Three molecules of five elements determine no references, and nothing is NaN."""
    data = written(tmp_path / "a.extxyz", toy([0, 3, 5]))
    rows = ["--data", str(data), "--target", "forces+energy", "--split", "3,0,0"]
    few = ["--max-epochs", "1", "--out", str(tmp_path / "run")]
    assert main(["train", *rows, *SIZE, *few]) == 0
    said = capsys.readouterr().err
    assert "3 training rows of" in said
    assert "do not determine the references of the elements" in said
    assert "there are no validation rows" in said
    assert "nan" not in said.lower()
    references = RunFolder(tmp_path / "run").predictor().references
    assert references.scale == pytest.approx(1 / HARTREE_TO_EV)
    smiles = tmp_path / "mine.csv"
    smiles.write_bytes(b"name,smiles\nx,C\ny,C\xff\n")
    assert main(["predict", str(tmp_path / "run"), str(smiles)]) == 0
    methane, bad = csv.DictReader(capsys.readouterr().out.splitlines())
    assert methane["atoms"] == "C H H H H"
    shape = np.array(methane["forces_ev_angstrom"].split(), float).reshape(-1, 3).shape
    positions = np.array(methane["positions_angstrom"].split(), float).reshape(-1, 3)
    assert shape == positions.shape == (5, 3)
    np.testing.assert_allclose(np.linalg.norm(positions[1:] - positions[0], axis=1), 1.09, atol=0.1)
    assert bad["reason"] == "holds bytes that are not SMILES text"
    assert bad["atoms"] == bad["energy_ev"] == ""


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


def weights_of(path):
    model = RunFolder(path).predictor(RunFolder(path).best).model
    return np.asarray(model.embedding), np.asarray(model.out_2.weight)


@pytest.mark.long
@pytest.mark.slow
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
@pytest.mark.slow
def test_devices_and_processes_share_an_update(tmp_path):
    """Two devices of one process, and two processes of one device, against one that adds up."""
    few = ["--max-epochs", "2", "--quiet", "--learning-rate", "1e-3"]
    assert train(tmp_path / "one", *few, "--accumulation", "2") == 0
    two = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    process = command("train", *BASE, *few, "--out", str(tmp_path / "two"), **two)
    said = process.communicate(timeout=200)
    assert process.returncode == 0, said
    port = 20_000 + os.getpid() % 20_000
    shared = ["--coordinator", f"localhost:{port}", "--processes", "2"]
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


def test_the_papers_preset_sets_everything_and_options_override_it(tmp_path):
    base = ["--data", str(QM9), "--out", str(tmp_path), "--preset", "qm1b-paper"]
    found = from_command_line(base).settings()
    assert (found.optimizer, found.schedule) == (PAPER_OPTIMIZER, PAPER_SCHEDULE)
    assert found.model == PRESETS["qm1b-paper"]
    assert (found.model.readout, found.rows.scaling) == ("sum", "none")
    assert found.schedule.pack_molecules * found.schedule.accumulation == 7 * 16
    more = ["--clip", "2", "--max-examples", "90", "--scaling", "fitted", "--width", "8"]
    found = from_command_line([*base, *more]).settings()
    assert (found.optimizer.clip, found.schedule.max_examples) == (2.0, 90)
    assert (found.rows.scaling, found.model.width, found.model.filters) == ("fitted", 8, 256)
    assert found.optimizer.schedule == "exponential"


def test_a_number_of_examples_ends_a_training(tmp_path, capsys):
    out = tmp_path / "run"
    flags = ["--max-examples", "100", "--scaling", "none", "--schedule", "constant"]
    assert train(out, *flags, "--clip", "0", "--valid-every", "50") == 0
    lines = logs.read(out / "log.csv")
    assert len(lines) == 3  # of 40 rows each, the last one in part
    assert np.isfinite(lines[-1].valid_mae)
    references = json.loads((out / "run.json").read_text())["references"]
    assert references["scale"] == pytest.approx(1 / HARTREE_TO_EV)
    assert (references["constant"], set(references["values"])) == (0.0, {0.0})
    before = (out / "log.csv").read_text()
    assert train(out, *flags, "--clip", "0", "--valid-every", "50") == 0  # nothing is left to do
    assert (out / "log.csv").read_text() == before


def test_a_run_is_exported(run, tmp_path, capsys):
    assert main(["export", str(run)]) == 2
    assert "nothing to write" in capsys.readouterr().err
    npz, onnx = tmp_path / "net.npz", tmp_path / "net.onnx"
    assert main(["export", str(run), "--pyg", str(npz)]) == 0
    assert "gap in ev, lengths in Angstrom" in capsys.readouterr().out
    pytest.importorskip("onnx", reason="the extra onnx is not installed")
    assert main(["export", str(run), "--onnx", str(onnx)]) == 0
    assert onnx.stat().st_size > 1000

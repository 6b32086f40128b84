"""Trainings of energies and forces by the real command."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from fake_runs import fake_run
from schnet_commands import RUN, SIZE, train, weights_of
from toy_forces import toy, written

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV
from schnet.cli import main
from schnet.runs import logs
from schnet.runs.run_folder import RunFolder
from schnet.sources import open_source

pytestmark = pytest.mark.slow


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
    # The other name of the target is the same training, which is complete; it has a price.
    options = ["forces+energy" if word == "energy+forces" else word for word in options]
    assert main(["train", "--data", str(data), *options, "--price", "bow"]) == 0
    price = json.loads((out / "price.json").read_text())
    assert price["unknown_ops"] == {}
    assert min(price["cycles"][part] for part in ("forward", "backward", "update")) > 0


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

    from schnet.runs.calculator import SchNetCalculator

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


def test_forces_are_learned_with_the_atomisation_energy(tmp_path, capsys):
    """From start to prediction and export: the forces are the slope of the atomisation energy."""
    run, _ = fake_run(tmp_path, "O\nCCO\nCC\nCN\nCCC\nCOC\n", forces=True)
    out, smiles = tmp_path / "run", tmp_path / "mine.smi"
    rows = ["--data", str(run), "--target", "forces+atomisation_energy", "--split", "4,1,1"]
    few = ["--max-epochs", "2", "--forces-weight", "3", "--quiet", "--out", str(out)]
    assert main(["train", *rows, *SIZE, *few]) == 0
    smiles.write_text("CCO\n")
    assert main(["evaluate", str(out)]) == 0
    assert "atom references alone" in capsys.readouterr().out
    assert json.loads((out / "results.json").read_text())["forces"]["unit"] == "meV/Angstrom"
    assert main(["predict", str(out), str(smiles)]) == 0
    row = next(csv.DictReader(capsys.readouterr().out.splitlines()))
    force = np.array(row["forces_ev_angstrom"].split(), float)[0]
    samples = next(open_source(smiles, None).parts())
    predictor = RunFolder(out).predictor()
    ends = []
    for step in (-0.01, 0.01):
        moved = samples.positions_bohr.copy()
        moved[0, 0] += step / BOHR_TO_ANGSTROM
        ends += [predictor.with_forces(replace(samples, positions_bohr=moved)).values[0]]
    slope = (ends[1] - ends[0]) * HARTREE_TO_EV / 0.02
    assert force == pytest.approx(-slope, rel=2e-2, abs=2e-3)
    assert float(row["atomisation_energy_ev"]) == pytest.approx(
        predictor(samples)[0] * HARTREE_TO_EV, abs=1e-3
    )
    assert main(["export", str(out), "--pyg", str(tmp_path / "net.npz")]) == 0
    assert "did not determine the references of H, C, N, O" in capsys.readouterr().out


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
    assert "do not determine the references of H, C, " in said
    assert "other compositions get no prediction" in said
    assert "there are no validation rows" in said
    assert "nan" not in said.lower()
    references = RunFolder(tmp_path / "run").predictor().references
    assert references.scale == pytest.approx(1 / HARTREE_TO_EV)
    smiles = tmp_path / "mine.csv"
    smiles.write_bytes(b"name,smiles\nx,CO\ny,C\xff\nz,C\n")
    assert main(["predict", str(tmp_path / "run"), str(smiles)]) == 0
    methanol, bad, methane = csv.DictReader(capsys.readouterr().out.splitlines())
    assert methanol["atoms"] == "C O H H H H"
    shape = np.array(methanol["forces_ev_angstrom"].split(), float).reshape(-1, 3).shape
    positions = np.array(methanol["positions_angstrom"].split(), float).reshape(-1, 3)
    assert shape == positions.shape == (6, 3)
    lengths = np.linalg.norm(positions[2:5] - positions[0], axis=1)
    np.testing.assert_allclose(lengths, 1.09, atol=0.1)
    assert methane["energy_ev"] == methane["forces_ev_angstrom"] == ""
    assert methane["reason"].startswith("has H, C whose reference the training rows do not")
    assert bad["reason"] == "unparsable: holds bytes that are not SMILES text"
    assert bad["atoms"] == bad["energy_ev"] == ""

"""Options of `schnet train`: other targets, other weights, what is refused, and the end."""

import csv
import json

import numpy as np
import pytest
from packs import QM9, pyg_weights, qm9
from schnet_commands import train

from pyscf_ipu.base.units import HARTREE_TO_EV
from schnet.cli import main
from schnet.commands.train import from_command_line
from schnet.network.config import PAPER_OPTIMIZER, PAPER_SCHEDULE, PRESETS
from schnet.runs import logs
from schnet.runs.run_folder import RunFolder

pytestmark = pytest.mark.slow


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


@pytest.mark.slow
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

    from schnet.runs.calculator import SchNetCalculator

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

"""`--machine`: rows that the program of a simulated IPU computes, with their price."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from fake_runs import MANY, conformer, fake_run, row
from optional_columns import check_merged, check_repaired, check_resumed_with_the_same_choice_only

import pyscf_ipu as pi
from pyscf_ipu.ipu import BOW
from pyscf_ipu.ipu.engine.command import price_rks
from qm1b import load
from qm1b.cli import main
from qm1b.commands.generate import Generate, run_settings
from qm1b.engine.ladder import ladder_for
from qm1b.folder import shards
from qm1b.folder.manifest.work_units import WorkPlan
from qm1b.report.card.facts import Statements
from qm1b.report.card.write import write as write_card
from qm1b.rows.batch import conformer_of
from qm1b.rows.schema import TOO_LARGE, Drop
from qm1b.run.generate import Run, generate
from qm1b.run.ledger import Ledger
from qm1b.run.progress.progress import Stats
from qm1b.settings import PRESETS, RunSettings

pytestmark = pytest.mark.usefixtures("blank_pictures")

HERE = {"machine": "bow"}
NAMES = ("ipu_cycles_low", "ipu_cycles_high", "ipu_fullest_tile_bytes")


@pytest.fixture(scope="module")
def priced(tmp_path_factory):
    """A run on a simulated chip that is too small for a shape of 64 AOs."""
    return fake_run(tmp_path_factory.mktemp("priced"), MANY, padding="coarse", **HERE)


def test_rows_have_the_price_of_their_own_cycles(priced, whole):
    for one in load(priced[0]):
        if one["status"].startswith("error"):
            assert np.isnan(one["ipu_cycles_low"])
            assert one["ipu_fullest_tile_bytes"] == -1
        else:
            assert one["ipu_cycles_low"] == 1000.5 * one["cycles"]
            assert one["ipu_cycles_high"] == 4000.5 * one["cycles"]
            assert one["ipu_fullest_tile_bytes"] == 2000
    columns = shards.read_shard(shards.shards(whole)[0]).columns
    assert not [name for name in columns if name.startswith("ipu")]


def test_a_shape_too_large_for_the_chip_is_a_drop_once_a_line(priced, whole):
    out, summary = priced
    with (out / "dropped.csv").open() as file:
        drops = [row for row in csv.DictReader(file) if "simulated" in row["detail"]]
    assert {row["reason"] for row in drops} == {TOO_LARGE}
    assert {row["detail"] for row in drops} == {"too large for a simulated chip: 700000 bytes"}
    lines = [int(row["line"]) for row in drops]
    assert len(lines) == len(set(lines)) > 2
    assert not set(lines) & {row["line"] for row in load(out)}
    there = {row["line"] for row in load(whole) if 32 < row["n_ao"] <= 64}
    assert set(lines) == there
    counts = json.loads((out / "manifest.json").read_text())["counts"]
    assert counts["dropped"] == dict(summary.stats.drops)
    assert counts["rows"] == len(load(out)) == summary.stats.rows
    assert counts["molecules"] == summary.stats.kept_lines


def test_a_run_is_resumed_only_on_the_same_machine(priced, tmp_path):
    check_resumed_with_the_same_choice_only(priced[0], tmp_path, "machine +bow +-", **HERE)


def test_a_damaged_shard_comes_back_with_its_prices(priced, tmp_path):
    check_repaired(priced[0], tmp_path, **HERE)


def test_shares_become_one(priced, whole, tmp_path):
    chosen = {"padding": "coarse", **HERE}
    check_merged(priced[0], whole, tmp_path, "machine", "ipu_cycles_low", **chosen)


def test_the_manifest_and_the_card_say_what_computed(priced, tmp_path):
    manifest = json.loads((priced[0] / "manifest.json").read_text())
    assert manifest["settings"]["machine"] == "bow"
    assert manifest["versions"]["machine"].startswith("ipu21: tiles_per_ipu=1472, ")
    write_card(priced[0], tmp_path / "card", Statements("a dataset"))
    card = (tmp_path / "card" / "README.md").read_text()
    assert "| computed by | the program of a simulated IPU, bow |" in card


@pytest.mark.parametrize("ending", ["parquet", "extxyz", "aselmdb", "db"])
def test_exports_have_the_prices(priced, ending, tmp_path):
    file = tmp_path / f"a.{ending}"
    assert main(["export", str(priced[0]), str(file)]) == 0
    first = load(priced[0])[0]["ipu_cycles_low"]
    if ending == "parquet":
        assert load(file)[0]["ipu_cycles_low"] == first
    elif ending == "extxyz":
        assert f"ipu_cycles_low={first}" in file.read_text()


def test_a_line_that_lost_conformers_before_has_one_drop():
    ledger, stats = Ledger(WorkPlan(1, 8)), Stats(n_lines=1, conformers=3, kept_lines=1)
    ledger.opened(1)
    fewer = Drop(1, "[He]", "fewer_conformers")
    stats.count_drop(fewer)
    ledger.embedded(1, 2, fewer)
    for number in range(2):
        one = row(conformer(1, conformer=number), status=f"{TOO_LARGE}: 9 bytes")
        stats.count_refused(one, ledger.refused(one))
    (unit,) = ledger.closed(at_end=True)
    assert [(drop.reason, drop.detail) for drop in unit.drops] == [(TOO_LARGE, "9 bytes")]
    assert stats.drops == {TOO_LARGE: 1}
    assert (stats.kept_lines, unit.rows) == (0, [])


def test_what_needs_float64_is_not_tried():
    names = [rung.name for rung in ladder_for(RunSettings(PRESETS["qm1b"], 1, machine="bow"))]
    assert names == ["damped", "shifted"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--forces"], "not for forces or stability"),
        (["--stability", "all"], "^qm1b: stability: "),
        (["--preset", "qm9", "--no-forces"], "float64, which an IPU|computes in float32"),
        (["--jk", "ri"], "float64, which an IPU"),
        (["--basis", "cc-pvtz"], "f functions"),
        (["--machine", "gpu"], "rows are computed on cpu"),
        (["--machine", "bow-pod16"], "a molecule is computed on one"),
        (["--machine", "moon"], "unknown machine 'moon'"),
        (["--machine", "cpu", "--run-vertices"], "give --machine bow, too"),
    ],
)
def test_what_the_chip_does_not_compute_is_refused_at_once(given, words, tmp_path, capsys):
    (tmp_path / "a.smi").write_text("O\n")
    line = ["generate", str(tmp_path / "a.smi"), "--out", str(tmp_path / "out")]
    on_bow = [] if "--machine" in given else ["--machine", "bow"]
    assert main([*line, *on_bow, *given]) != 0
    assert re.search(words, capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


def test_upper_case_names_the_same_machine(tmp_path):
    (tmp_path / "a.smi").write_text("O\n")
    command = Generate(source=tmp_path / "a.smi", machine="BOW")
    assert run_settings(command) == run_settings(replace(command, machine="bow"))


@pytest.mark.long
def test_a_whole_small_dataset_is_made_by_the_vertices(tmp_path):
    """Each row is the CPU's within float32, and has the price that its molecule has by itself."""
    source = tmp_path / "a.smi"
    source.write_text("O\nN\nC\nF\n")
    level = PRESETS["qm1b"]
    how = RunSettings(level, 3, padding="coarse", audit=1.0, machine="bow", run_vertices=True)
    summary = generate(Run(source, tmp_path / "out", how, 1))
    assert (summary.stats.rows, summary.stats.not_converged) == (12, 0)
    rows = [*load(tmp_path / "out")]
    molecules = [
        pi.Molecule(c.numbers, c.positions, c.charge) for c in map(conformer_of, map(dict, rows))
    ]
    energies = pi.rks(molecules, solver=pi.Solver(level)).energy
    np.testing.assert_allclose([row["energy"] for row in rows], energies, atol=2e-5)
    assert max(abs(row["energy"] - row["reference_energy"]) for row in rows) < 2e-5
    price = price_rks(molecules[0], level, BOW, coarse=True)
    np.testing.assert_allclose(rows[0]["ipu_cycles_high"], price.cycles.high, rtol=1e-7)
    assert main(["verify", str(tmp_path / "out"), "--sample", "2"]) == 0


@pytest.mark.long
def test_hundreds_of_conformers_are_within_the_bounds_of_float32(tmp_path):
    """200 rows, each checked by PySCF: a mean of 0.3 meV at most."""
    source = tmp_path / "a.smi"
    source.write_text("CCO\nCC=O\nCCN\nC1CC1\nCC#N\nCOC\nNC=O\nCCC\nC=CC\nOCO\n")
    how = RunSettings(PRESETS["qm1b"], 20, padding="coarse", audit=1.0, machine="bow")
    generate(Run(source, tmp_path / "out", how))
    rows = [*load(tmp_path / "out")]
    assert len(rows) == 200
    errors = [abs(row["energy"] - row["reference_energy"]) * 27211.386 for row in rows]
    assert np.mean(errors) < 0.3

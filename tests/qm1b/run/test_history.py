"""`--history`: every SCF cycle in the rows, from the engine to every file and command."""

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from fake_runs import MANY, conformer, fake_run, settings
from optional_columns import (
    check_merged,
    check_repaired,
    check_resumed_with_the_same_choice_only,
)

import pyscf_ipu as pi
from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.molecule.molecule import Molecule
from qm1b import load
from qm1b.audit.invariants import ROW_CHECKS
from qm1b.cli import main
from qm1b.convert.export import export
from qm1b.convert.importing import import_file
from qm1b.engine.factory import DEFAULT, at_precisions
from qm1b.engine.ladder import LADDER, run_of
from qm1b.folder import same, shards
from qm1b.report.card.facts import Statements
from qm1b.report.card.write import write as write_card
from qm1b.report.info import describe
from qm1b.rows.batch import Batch
from qm1b.rows.schema import VERSION
from qm1b.settings import PRESETS

pytestmark = pytest.mark.usefixtures("blank_pictures")

LEVEL = replace(PRESETS["qm1b"], history=True)
NAMES = ("cycle_energy", "cycle_commutator_norm", "cycle_gap")


@pytest.fixture(scope="module")
def with_cycles(tmp_path_factory):
    """A run with every cycle, in which some rows did not converge or failed."""
    return fake_run(tmp_path_factory.mktemp("cycles"), MANY, level=LEVEL)[0]


def test_rows_have_as_many_entries_as_cycles_and_failed_ones_none(with_cycles):
    seen = set()
    for row in load(with_cycles):
        status = row["status"].split(":")[0]
        for name in NAMES:
            assert row[name].dtype == np.float64
            assert row[name].shape == (0 if status == "error" else row["cycles"],)
        if status != "error":
            error = 10.0 ** -np.arange(row["cycles"])
            np.testing.assert_allclose(row["cycle_energy"] - row["energy"], error, atol=1e-12)
            np.testing.assert_allclose(row["cycle_commutator_norm"], 2 * error)
            np.testing.assert_allclose(row["cycle_gap"], 0.5 + 3 * error)
        seen.add((status, len(row["cycle_gap"])))
    assert seen == {("converged", 9), ("not_converged", 50), ("error", 0)}
    assert {load(with_cycles).units[name] for name in NAMES} == {"hartree"}


def test_without_the_option_there_is_no_column(whole, with_cycles):
    columns = shards.read_shard(shards.shards(whole)[0]).columns
    assert not [name for name in columns if "cycle_" in name]
    attributes = shards.read_attributes(shards.shards(with_cycles)[0])
    assert (attributes["history"], attributes["schema_version"]) == (True, VERSION)


def test_a_run_is_resumed_only_with_the_same_choice(with_cycles, tmp_path):
    check_resumed_with_the_same_choice_only(with_cycles, tmp_path, "history +true +-", level=LEVEL)


def test_a_damaged_shard_comes_back_with_its_cycles(with_cycles, tmp_path):
    check_repaired(with_cycles, tmp_path, level=LEVEL)


def test_shares_become_one(with_cycles, whole, tmp_path):
    check_merged(with_cycles, whole, tmp_path, "history", "cycle_gap", level=LEVEL)


def test_every_command_knows_them(whole, with_cycles, tmp_path, capsys):
    for folder, words in ((whole, "not kept"), (with_cycles, "of every row")):
        assert f"\n  cycles       {words}\n" in describe(folder)
    assert main(["head", str(with_cycles)]) == 0
    shown = capsys.readouterr().out
    assert "last step [eV]" in shown
    assert "-2.4e-06" in shown  # from 1e-7 to 1e-8 Hartree above the end
    assert main(["stats", str(with_cycles), "--json"]) == 0
    cycles = json.loads(capsys.readouterr().out)["distributions"]["cycles_to_1_mev"]
    assert (cycles["min"], cycles["max"]) == (6, 6)  # 1e-5 Hartree is 0.3 meV
    card = write_card(with_cycles, tmp_path / "card", Statements("d"))[0].read_text()
    assert "| `cycle_energy` | hartree |" in card
    assert "up to four starts; energy, commutator and gap of each are kept |" in card
    card = write_card(whole, tmp_path / "other", Statements("d"))[0].read_text()
    assert "| SCF cycles | at most 50 per start, and as many with a level shift;" in card


@pytest.mark.parametrize("name", ["a.parquet", "a.extxyz.gz"])
def test_exports_lose_nothing(with_cycles, tmp_path, name):
    export(with_cycles, tmp_path / name)
    good = [row for row in load(with_cycles) if row["status"] == "converged"]
    for ours, theirs in zip(good, load(tmp_path / name), strict=True):
        for field in NAMES:
            np.testing.assert_allclose(theirs[field], ours[field], rtol=1e-7)
    if name.endswith(".parquet"):
        schema = pq.read_schema(tmp_path / name)
        assert [schema.field(n).metadata[b"unit"] for n in NAMES] == [b"eV", b"hartree", b"eV"]
        cell = pq.read_table(tmp_path / name)["cycle_energy"][2].as_py()
        np.testing.assert_allclose(cell, good[2]["cycle_energy"] * HARTREE_TO_EV)
    export(with_cycles, tmp_path / name, everything=True)
    import_file(tmp_path / name, tmp_path / "back")
    assert same.differences(with_cycles, tmp_path / "back") == []


def test_an_export_without_cycles_has_no_column(whole, tmp_path):
    export(whole, tmp_path / "a.parquet", everything=True)
    assert not [n for n in pq.read_schema(tmp_path / "a.parquet").names if "cycle_" in n]


def test_verify_notices_records_that_do_not_fit(with_cycles):
    batch = shards.read_shard(shards.shards(with_cycles)[0])
    check = ROW_CHECKS["cycles_inconsistent"]
    assert batch["cycle_offset"][-1] > 0
    assert not check(batch).any()
    good = batch["status"] == "converged"
    for name, change in (("cycles", 1), ("energy_std", 1e-3), ("cycle_energy", np.inf)):
        damaged = Batch(batch.columns | {name: batch[name] + change})
        assert check(damaged)[good].all(), name


def test_verify_knows_that_another_start_may_count(with_cycles):
    """The record has the cycles of all starts; `energy_std` is that of the first one here."""
    batch = shards.read_shard(shards.shards(with_cycles)[0])
    energies, offsets, more = batch["cycle_energy"], batch["cycle_offset"], [-1.0, -3.0, 2.0]
    rows = np.split(energies, offsets[1:-1])
    longer = {
        "cycle_energy": np.concatenate([np.append(row, more if len(row) else []) for row in rows]),
        "cycle_offset": offsets + 3 * np.append(0, np.cumsum(np.diff(offsets) > 0)),
        "cycles": batch["cycles"] + 3,
    }
    assert not ROW_CHECKS["cycles_inconsistent"](Batch(batch.columns | longer)).any()


def test_a_row_that_was_looked_at_for_stability_has_none(tmp_path):
    out, _ = fake_run(tmp_path, "C\nCB(C)C\n", stability="suspect", level=LEVEL)
    batch = shards.read_shard(shards.shards(out)[0])
    lengths = np.diff(batch["cycle_offset"])
    assert sorted(zip(batch["stable"], lengths, strict=True)) == [(-1, 9), (-1, 9), (1, 0), (1, 0)]
    assert not ROW_CHECKS["cycles_inconsistent"](batch).any()


@pytest.mark.parametrize(
    "flags",
    [
        ["--history", "--stability", "all"],
        ["--fixed-cycles", "5", "--stability", "0.5"],
        ["--fixed-cycles", "5", "--stability", "suspect"],
    ],
)
def test_flags_of_one_scf_and_of_several_are_refused(tmp_path, capsys, flags):
    assert main(["generate", *flags, "--out", str(tmp_path / "no")]) == 2
    assert "leave one out" in capsys.readouterr().err


@pytest.mark.long
def test_the_cycles_are_those_of_rks_and_the_last_rung_has_none():
    level = replace(LEVEL, xc="hf")
    engine_at = at_precisions(DEFAULT, settings(level=level))
    hydrogen = Molecule([1, 1], [[0.1, 0.0, 0.2], [0.3, 1.2, -0.6]])
    run = run_of(engine_at(None).shape(hydrogen), engine_at)
    who = conformer(1, hydrogen.numbers, hydrogen.positions)
    first = run([who], None)[0]
    theirs = pi.rks(hydrogen, solver=pi.Solver(level)).history
    assert len(first.cycle_energy) == first.cycles
    np.testing.assert_array_equal(first.cycle_energy, theirs["energy"])
    np.testing.assert_array_equal(first.cycle_gap, theirs["gap"])
    assert np.std(first.cycle_energy[-5:]) == pytest.approx(first.energy_std, abs=1e-12)
    assert run([who], LADDER[-1])[0].cycle_energy == ()

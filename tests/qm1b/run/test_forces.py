"""`--forces`: a column like the others, from the engine to every file and command."""

import json

import ase
import ase.io
import numpy as np
import pyarrow.parquet as pq
import pytest
from fake_runs import MANY, conformer, fake_run, settings
from optional_columns import (
    check_merged,
    check_repaired,
    check_resumed_with_the_same_choice_only,
)

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV
from pyscf_ipu.molecule.molecule import Molecule
from qm1b import load
from qm1b.cli import main
from qm1b.convert.export import export
from qm1b.convert.importing import import_file
from qm1b.engine.factory import DEFAULT, at_precisions
from qm1b.engine.ladder import LADDER, run_of
from qm1b.folder import same, shards
from qm1b.reference.recompute import mean_field
from qm1b.report.card.facts import Statements
from qm1b.report.card.write import write as write_card
from qm1b.report.info import describe
from qm1b.rows.schema import VERSION
from qm1b.settings import PRESETS

pytestmark = pytest.mark.usefixtures("blank_pictures")

EV_PER_ANGSTROM = HARTREE_TO_EV / BOHR_TO_ANGSTROM
FLOAT32 = 2e-5
"""Hartree/Bohr: 7.6e-6 is the largest of 12 molecules of QM9, whose smallest forces are noise."""


@pytest.fixture(scope="module")
def with_forces(tmp_path_factory):
    """A run with forces, in which some rows did not converge or failed."""
    return fake_run(tmp_path_factory.mktemp("forces"), MANY, forces=True)[0]


def test_converged_rows_have_forces_and_others_have_none(with_forces):
    seen = set()
    for row in load(with_forces):
        centre = row["positions"].astype(float).mean(axis=0)
        assert row["forces"].dtype == np.float64
        assert row["forces"].shape == row["positions"].shape
        if row["status"] == "converged":
            np.testing.assert_allclose(row["forces"], 1e-2 * (centre - row["positions"]), atol=1e-6)
        else:
            assert np.isnan(row["forces"]).all()
        seen.add(row["status"].split(":")[0])
    assert seen == {"converged", "not_converged", "error"}
    assert load(with_forces).units["forces"] == "hartree/bohr"


def test_without_the_option_there_is_no_column(whole, with_forces):
    assert "forces" not in shards.read_shard(shards.shards(whole)[0])
    assert "forces" not in next(iter(load(whole)))
    sizes = [sum(p.stat().st_size for p in shards.shards(f)) for f in (whole, with_forces)]
    assert sizes[0] < sizes[1]
    attributes = shards.read_attributes(shards.shards(with_forces)[0])
    assert (attributes["forces"], attributes["schema_version"]) == (True, VERSION)


def test_info_and_the_card_say_whether_there_are_forces(whole, with_forces, tmp_path):
    for folder, forces in ((whole, False), (with_forces, True)):
        words = "of every converged row" if forces else "none"
        assert f"\n  forces       {words}\n" in describe(folder)
        write_card(folder, tmp_path / str(forces), Statements("x"))
        card = (tmp_path / str(forces) / "README.md").read_text()
        assert f"| forces | {'on every atom, -dE/dR' if forces else 'none'} |" in card
        assert (", gaps, forces, dipole moments" in card) == forces


def test_a_run_is_resumed_only_with_the_same_choice(with_forces, tmp_path):
    check_resumed_with_the_same_choice_only(
        with_forces, tmp_path, "forces +true +false", forces=True
    )


def test_a_damaged_shard_comes_back_with_its_forces(with_forces, tmp_path):
    check_repaired(with_forces, tmp_path, forces=True)


def test_shares_become_one(with_forces, whole, tmp_path):
    check_merged(with_forces, whole, tmp_path, "forces", "forces", forces=True)


def test_every_command_knows_them(with_forces, tmp_path, capsys):
    assert main(["head", str(with_forces)]) == 0
    assert "largest force [eV/A]" in capsys.readouterr().out
    assert main(["stats", str(with_forces), "--json"]) == 0
    largest = max(
        np.linalg.norm(row["forces"], axis=1).max()
        for row in load(with_forces)
        if row["status"] == "converged"
    )
    largest_force = json.loads(capsys.readouterr().out)["distributions"]["max_force_ev_angstrom"]
    assert largest_force["max"] == pytest.approx(largest * EV_PER_ANGSTROM)
    text = write_card(with_forces, tmp_path / "card", Statements("d"))[0].read_text()
    assert "| `forces` | hartree/bohr |" in text
    assert "`max_force_ev_angstrom`" in text


@pytest.mark.parametrize("name", ["a.parquet", "a.extxyz", "a.extxyz.gz"])
def test_exports_have_ev_per_angstrom_and_lose_nothing(with_forces, tmp_path, name):
    export(with_forces, tmp_path / name)
    good = [row for row in load(with_forces) if row["status"] == "converged"]
    for ours, theirs in zip(good, load(tmp_path / name), strict=True):
        np.testing.assert_allclose(theirs["forces"], ours["forces"], rtol=1e-6)
    if name.endswith(".parquet"):
        column = pq.read_table(tmp_path / name)["forces"]
        units = pq.read_schema(tmp_path / name).field("forces").metadata[b"unit"]
        assert units == b"eV/angstrom"
        forces = np.reshape(column[2].as_py(), (-1, 3))
    else:
        frames = ase.io.read(tmp_path / name, ":")
        frame = [atoms for atoms in frames if atoms.info["config_type"] == "Default"][2]
        assert isinstance(frame, ase.Atoms)
        forces = frame.get_forces()
    np.testing.assert_allclose(forces, good[2]["forces"] * EV_PER_ANGSTROM, rtol=1e-6)
    export(with_forces, tmp_path / name, everything=True)
    import_file(tmp_path / name, tmp_path / "back")
    assert same.differences(with_forces, tmp_path / "back") == []


def test_an_export_without_forces_has_no_column(whole, tmp_path):
    export(whole, tmp_path / "a.parquet", everything=True)
    assert not [n for n in pq.read_schema(tmp_path / "a.parquet").names if "force" in n]
    export(whole, tmp_path / "a.extxyz")
    assert "force" not in (tmp_path / "a.extxyz").read_text()


def test_suspect_rows_have_those_of_the_state_that_is_kept(tmp_path):
    out, _ = fake_run(tmp_path, "C\nCB(C)C\n", stability="suspect", forces=True)
    rows = shards.read_shard(shards.shards(out)[0])
    assert sorted(rows["stable"]) == [-1, -1, 1, 1]
    assert np.isfinite(rows["forces"]).all()


def references(who, level):
    """PySCF's forces [A, 3] in Hartree/Bohr."""
    field = mean_field(who, level)
    field.conv_tol, field.conv_tol_grad = 1e-12, 1e-8
    field.kernel()
    method = field.nuc_grad_method()
    method.verbose, method.grid_response = 0, True
    return -method.kernel()


@pytest.mark.slow
@pytest.mark.parametrize(
    "rung",
    [
        pytest.param(None, id="plain"),
        pytest.param(LADDER[-1], id="second_order", marks=pytest.mark.long),
    ],
)
def test_forces_of_every_attempt_are_those_of_pyscf(rung):
    """The last rung is another program in another precision."""
    level = settings(forces=True).level
    assert level == PRESETS["qm1b"]
    engine_at = at_precisions(DEFAULT, settings(level=level))
    geometry = np.array([[0.1, 0.0, 0.2], [0.3, 1.2, -0.5]])
    hydrogens = [conformer(1, [1, 1], s * geometry) for s in (1.0, 1.1)]
    run = run_of(engine_at(None).shape(Molecule([1, 1], geometry)), engine_at, forces=True)
    for row in run(hydrogens, rung):
        assert row.status == "converged"
        error = np.abs(np.array(row.forces) - references(row.conformer, level)).max()
        assert error < (FLOAT32 if rung is None else 1e-6)

"""A level with dispersion: a column of its own, from the engine to every file and command."""

import json
import shutil
from dataclasses import replace

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
from ase.io import read
from fake_runs import LINES, conformer, fake_run, settings

from pyscf_ipu.base.errors import MissingPackage
from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.xc.dispersion import correction as room
from pyscf_ipu.xc.dispersion.correction import correction
from pyscf_ipu.xc.registry import functional
from qm1b import load
from qm1b.audit.invariants import ROW_CHECKS, with_occupied
from qm1b.cli import main
from qm1b.convert.export import export
from qm1b.convert.importing import import_file
from qm1b.engine.factory import DEFAULT, at_precisions
from qm1b.engine.ladder import run_of
from qm1b.errors import UserError
from qm1b.folder import checksum, same, shards
from qm1b.formats.consumers import schnetpack
from qm1b.reference.functional_ids import check_functional
from qm1b.reference.recompute import mean_field, recompute
from qm1b.rows.schema import VERSION
from qm1b.settings import PRESETS

pytest.importorskip("dftd3")
pytest.importorskip("dftd4")

LEVEL = replace(PRESETS["qm1b"], xc="hf-d3bj")
TEXT = "O\nC\nCCO\nCCl\n[Ne]\n"
WATER = np.array([[0.1, 0.0, 0.2], [0.3, 1.5, -1.0], [-0.2, -1.6, -0.9]])


def run(folder, text=TEXT, **changes):
    folder.mkdir(exist_ok=True)
    return fake_run(folder, text, level=LEVEL, **changes)[0]


@pytest.fixture(scope="module")
def corrected(tmp_path_factory):
    """A run with dispersion, in which some rows did not converge or failed."""
    return run(tmp_path_factory.mktemp("dispersion"))


def test_rows_have_the_column(corrected):
    data = load(corrected)
    assert data.units["dispersion"] == "hartree"
    for row in data:
        if row["status"].startswith("error"):
            assert np.isnan(row["dispersion"])
        else:
            assert row["dispersion"] == -1e-3 * len(row["numbers"])
    attributes = shards.read_attributes(shards.shards(corrected)[0])
    assert attributes["schema_version"] == VERSION
    assert attributes["functional_definition"] == functional("hf-d3bj").definition


def test_the_manifest_names_program_and_version(corrected, whole):
    manifest = json.loads((corrected / shards.MANIFEST).read_text())
    assert "D3(BJ) by dftd3, parameters of hf" in manifest["functional_definition"]
    assert manifest["versions"]["dftd3"][0].isdigit()
    other = json.loads((whole / shards.MANIFEST).read_text())
    assert not {"dftd3", "dftd4"} & set(other["versions"])


def test_without_dispersion_there_is_no_column(whole, tmp_path):
    assert "dispersion" not in next(iter(load(whole)))
    export(whole, tmp_path / "a.parquet", everything=True)
    assert not [n for n in pq.read_schema(tmp_path / "a.parquet").names if "dispersion" in n]
    assert "dispersion" not in schnetpack.metadata(load(whole))["_property_unit_dict"]


@pytest.mark.parametrize("name", ["a.parquet", "a.extxyz"])
def test_exports_have_it_and_lose_nothing(corrected, tmp_path, name):
    export(corrected, tmp_path / name)
    good = [row["dispersion"] for row in load(corrected) if row["status"] == "converged"]
    assert [row["dispersion"] for row in load(tmp_path / name)] == pytest.approx(good, rel=1e-12)
    if name == "a.parquet":
        schema = pq.read_schema(tmp_path / name)
        assert schema.field("dispersion").metadata[b"unit"] == b"eV"
        column = pq.read_table(tmp_path / name)["dispersion"].to_pylist()
        assert column == [value * HARTREE_TO_EV for value in good]
    else:
        frames = [a for a in read(tmp_path / name, ":") if a.info["config_type"] == "Default"]
        assert [atoms.info["dispersion_hartree"] for atoms in frames] == good
    export(corrected, tmp_path / name, everything=True)
    import_file(tmp_path / name, tmp_path / "back")
    assert same.differences(corrected, tmp_path / "back") == []


def test_databases_have_it_in_ev(corrected, tmp_path):
    export(corrected, tmp_path / "a.db")
    unit = schnetpack.metadata(load(corrected))["_property_unit_dict"]["dispersion"]
    assert unit == "eV"
    from ase.db import connect

    with connect(tmp_path / "a.db") as database:
        row = next(database.select())
        assert row.data["dispersion"] == pytest.approx([-1e-3 * row.natoms * HARTREE_TO_EV])


def test_commands_show_it(corrected, capsys):
    assert main(["head", str(corrected)]) == 0
    assert "dispersion [eV]" in capsys.readouterr().out
    assert main(["stats", str(corrected), "--json"]) == 0
    assert "dispersion_ev" in json.loads(capsys.readouterr().out)["distributions"]
    assert main(["info", str(corrected)]) == 0
    assert "hf-d3bj/sto-3g" in capsys.readouterr().out


def test_a_row_that_lacks_it_is_found(corrected):
    batch = with_occupied(next(load(corrected).batches()), "")
    assert not ROW_CHECKS["not_finite"](batch).any()
    batch.columns["dispersion"][0] = np.nan
    assert ROW_CHECKS["not_finite"](batch).tolist()[:2] == [True, False]


def test_it_is_resumed_at_the_same_level_only(corrected, tmp_path):
    for name in ("same", "other"):
        shutil.copytree(corrected, tmp_path / name / "out-2")
        shards.shards(tmp_path / name / "out-2")[0].unlink()
    assert same.differences(corrected, run(tmp_path / "same")) == []
    with pytest.raises(UserError, match=r"holds another run; .*\n.*\n +xc +hf-d3bj +b3lyp5"):
        fake_run(tmp_path / "other", TEXT)


def test_a_run_of_schema_version_5_is_read_and_resumed(finished, tmp_path):
    out = shutil.copytree(finished[0], tmp_path / "out-2")
    for path in shards.shards(out):
        path.write_bytes(path.read_bytes()[checksum.BLOCK :])
        with h5py.File(path, "r+") as file:
            file.attrs["schema_version"] = 5
        path.write_bytes(checksum.sealed(b"\0" * checksum.BLOCK + path.read_bytes()))
    assert [row["energy"] for row in load(out)][:4] == [r["energy"] for r in load(finished[0])][:4]
    shards.shards(out)[-1].unlink()
    fake_run(tmp_path, LINES)
    assert same.differences(finished[0], out) == []
    versions = {shards.read_attributes(path)["schema_version"] for path in shards.shards(out)}
    assert versions == {5, VERSION}


def test_references_have_the_same_correction():
    who = conformer(1, [8, 1, 1], WATER)
    added = correction(LEVEL.dispersion, who.numbers, who.positions)
    plain = recompute(who, replace(LEVEL, xc="hf"), forces=True)
    corrected = recompute(who, LEVEL, forces=True)
    assert type(mean_field(who, LEVEL)).__name__ == "RHF"
    assert corrected.energy - plain.energy == pytest.approx(added.energy, abs=1e-12)
    np.testing.assert_allclose(np.subtract(corrected.forces, plain.forces), added.forces, atol=1e-9)
    assert added.energy < -1e-4


@pytest.mark.long
def test_rows_of_the_engine_are_those_of_the_reference():
    engine_at = at_precisions(DEFAULT, settings(level=LEVEL))
    shape, who = engine_at(None).shape(Molecule([8, 1, 1], WATER)), conformer(1, [8, 1, 1], WATER)
    (row,) = run_of(shape, engine_at, forces=True)([who], None)
    expected = recompute(who, LEVEL, forces=True)
    assert row.status == "converged"
    assert row.dispersion == correction(LEVEL.dispersion, who.numbers, who.positions).energy
    assert row.energy == pytest.approx(expected.energy, abs=4e-5)
    np.testing.assert_allclose(row.forces, expected.forces, atol=2e-5)


def test_a_dataset_of_other_parameters_is_not_verified():
    here = functional("b3lyp-d3bj").definition
    check_functional("b3lyp-d3bj", here)
    for definition in (here.replace("1.9889", "1.9"), functional("b3lyp").definition):
        with pytest.raises(UserError, match="the dispersion of functional b3lyp-d3bj is"):
            check_functional("b3lyp-d3bj", definition)
    with pytest.raises(UserError, match='the dispersion of functional b3lyp is "none" here'):
        check_functional("b3lyp", here)


def test_a_missing_package_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match="corrections need the package dftd3: run pip install"):
        fake_run(tmp_path, TEXT, level=LEVEL, factory=DEFAULT)
    with pytest.raises(MissingPackage, match="need the package dftd3"):
        check_functional("hf-d3bj", functional("hf-d3bj").definition)


def test_settings_name_the_packages():
    assert settings().packages == ()
    assert settings(level=LEVEL).packages == ("dftd3",)
    assert settings(level=replace(LEVEL, xc="pbe0-d4")).packages == ("dftd4",)
    assert settings(level=replace(LEVEL, xc="wb97x-d")).packages == ()

"""`--properties`, net force and torque: from the engine to every file and command."""

import json
import re
import shutil

import ase.db
import ase.units
import h5py
import numpy as np
import pytest
from fake_runs import CALM, MANY, fake_run, give_free_atoms, seal_again
from optional_columns import (
    check_merged,
    check_repaired,
    check_resumed_with_the_same_choice_only,
)

import qm1b
from qm1b.cli import main
from qm1b.convert.export import export
from qm1b.convert.importing import import_file
from qm1b.folder import same, shards
from qm1b.report.card.facts import Statements
from qm1b.report.card.write import write as write_card
from qm1b.report.info import describe
from qm1b.rows.schema import PROPERTIES

pytestmark = pytest.mark.usefixtures("blank_pictures")

SHAPES = {"charges_lowdin": "A", "bond_orders": "AA", "quadrupole": "33"}


@pytest.fixture(scope="module")
def with_properties(tmp_path_factory):
    """A run with everything, in which some rows failed."""
    folder = tmp_path_factory.mktemp("properties")
    return fake_run(folder, MANY, properties=PROPERTIES, forces=True)[0]


def test_rows_have_them_with_their_shapes(with_properties):
    failed = 0
    for row in qm1b.load(with_properties):
        sizes = {"A": len(row["numbers"]), "3": 3}
        positions = row["positions"].astype(float)
        for name, letters in SHAPES.items():
            assert row[name].shape == tuple(sizes[letter] for letter in letters)
        if row["status"].startswith("error"):
            assert all(np.isnan(row[name]).all() for name in SHAPES)
            failed += 1
        else:
            np.testing.assert_allclose(row["quadrupole"], positions.T @ positions, atol=1e-12)
            np.testing.assert_array_equal(row["bond_orders"], row["bond_orders"].T)
            assert row["bond_orders"].any() == (len(row["numbers"]) > 1)
    assert failed
    units = qm1b.load(with_properties).units
    assert [units[name] for name in PROPERTIES] == ["e", "1", "e*bohr^2"]


def test_net_force_and_torque_are_those_of_the_forces(with_properties):
    for row in qm1b.load(with_properties):
        arms = row["positions"].astype(float) - row["positions"].astype(float).mean(axis=0)
        np.testing.assert_allclose(row["net_force"], row["forces"].sum(axis=0), atol=1e-15)
        torque = sum(map(np.cross, arms, row["forces"]), np.zeros(3))
        np.testing.assert_allclose(row["torque"], torque, atol=1e-15)
        assert np.isfinite(row["net_force"]).all() == (row["status"] == "converged")


def test_without_the_option_nothing_is_there(whole):
    names = {*PROPERTIES, "pair_offset", "net_force", "torque"}
    assert not names & set(next(iter(qm1b.load(whole))))
    attributes = shards.read_attributes(shards.shards(whole)[0])
    assert not names & {*attributes} | {"properties"} & {*attributes}
    assert not names & set(h5py.File(shards.shards(whole)[0])["rows"])


def test_a_run_is_resumed_only_with_the_same_choice(with_properties, tmp_path):
    check_resumed_with_the_same_choice_only(
        with_properties,
        tmp_path,
        r"forces +true +false\n +properties +charges_lowdin bond_orders quadrupole +-",
        properties=PROPERTIES,
        forces=True,
    )


def test_a_damaged_shard_comes_back(with_properties, tmp_path):
    check_repaired(with_properties, tmp_path, properties=PROPERTIES, forces=True)


def test_shares_become_one(with_properties, tmp_path):
    (tmp_path / "few").mkdir()
    few, _ = fake_run(tmp_path / "few", MANY, properties=PROPERTIES[:1], forces=True)
    check_merged(
        with_properties, few, tmp_path, "properties", "bond_orders",
        properties=PROPERTIES, forces=True,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["a.parquet", "a.extxyz"])
def test_exports_lose_nothing(with_properties, tmp_path, name):
    export(with_properties, tmp_path / name)
    good = [row for row in qm1b.load(with_properties) if row["status"] == "converged"]
    for ours, theirs in zip(good, qm1b.load(tmp_path / name), strict=True):
        for field in (*PROPERTIES, "net_force", "torque"):
            assert theirs[field].shape == ours[field].shape
            np.testing.assert_allclose(theirs[field], ours[field], rtol=1e-6)
    export(with_properties, tmp_path / name, everything=True)
    import_file(tmp_path / name, tmp_path / "back")
    assert same.differences(with_properties, tmp_path / "back") == []


def test_trainers_find_them_under_their_own_names(with_properties, tmp_path):
    """Those of SchNetPack are joined, which bond orders of several sizes cannot be."""
    folder = give_free_atoms(shutil.copytree(with_properties, tmp_path / "run"))
    rows = [row for row in qm1b.load(folder) if row["converged"]]
    (tmp_path / "fairchem").mkdir()
    for path, kind in (("a.hdf5", "spice"), ("b.db", "schnetpack"), ("fairchem/c.aselmdb", None)):
        export(folder, tmp_path / path, **({"kind": kind} if kind else {}))
    with h5py.File(tmp_path / "a.hdf5") as file:
        molecules = list(file.values())
        first, units = molecules[0], "elementary_charge*bohr**2"
        assert sum(len(one["mayer_indices"]) for one in molecules) == len(rows)
        np.testing.assert_allclose(first["mayer_indices"][0], rows[0]["bond_orders"], rtol=1e-6)
        np.testing.assert_allclose(first["scf_quadrupole"][0], rows[0]["quadrupole"], rtol=1e-6)
        assert first["scf_quadrupole"].attrs["units"] == units
        assert first["lowdin_charges"].shape == (*first["mulliken_charges"].shape,)
    with ase.db.connect(tmp_path / "b.db", use_lock_file=False) as database:
        words, data = database.metadata["_property_unit_dict"], database.get(1).data
    assert {"lowdin_charges", "quadrupole_moment"} <= set(words) == set(data) - {"id"}
    in_debye = rows[0]["quadrupole"] * ase.units.Bohr**2 / ase.units.Debye
    np.testing.assert_allclose(data["quadrupole_moment"], in_debye[None], rtol=1e-6)
    np.testing.assert_array_equal(data["lowdin_charges"], rows[0]["charges_lowdin"])
    with ase.db.connect(tmp_path / "fairchem" / "c.aselmdb", readonly=True) as database:
        data = database._get_row(1).data
    np.testing.assert_allclose(data["mayer_bond_orders"], rows[0]["bond_orders"])
    np.testing.assert_array_equal(data["lowdin_charges"], rows[0]["charges_lowdin"])
    quadrupole = rows[0]["quadrupole"] * ase.units.Bohr**2
    np.testing.assert_allclose(data["quadrupole"], quadrupole, rtol=1e-6)


def test_a_run_without_rows_can_be_exported(tmp_path):
    out, _ = fake_run(tmp_path, "C[C\n", properties=PROPERTIES)
    export(out, tmp_path / "a.parquet")
    assert len(qm1b.load(tmp_path / "a.parquet")) == 0


def without_balance(file):
    for name in ("net_force", "torque"):
        del file[f"rows/{name}"]


def test_shards_of_an_earlier_version_get_them_when_they_are_read(with_properties, tmp_path):
    out, _ = fake_run(tmp_path, CALM, forces=True)
    before = list(qm1b.load(out))
    export(out, tmp_path / "new.parquet", everything=True)
    for path in shards.shards(out):
        seal_again(path, without_balance)
    for new, old in zip(before, qm1b.load(out), strict=True):
        np.testing.assert_array_equal(new["net_force"], old["net_force"])
        np.testing.assert_array_equal(new["torque"], old["torque"])
    assert fake_run(tmp_path, CALM, forces=True)[1].tally.rows == len(before)


def test_every_command_says_them(with_properties, tmp_path, capsys):
    assert "\n  properties   charges_lowdin bond_orders quadrupole\n" in describe(with_properties)
    assert main(["stats", str(with_properties), "--json"]) == 0
    distributions = json.loads(capsys.readouterr().out)["distributions"]
    assert distributions["net_force_mev_angstrom"]["max"] < 1e-3
    assert distributions["torque_mev"]["max"] < 1e-3
    text = write_card(with_properties, tmp_path / "card", Statements("d"))[0].read_text()
    assert "| `bond_orders` | 1 | Mayer bond orders" in text
    assert main(["head", str(with_properties)]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--properties", "quadrupol"], r"did you mean 'quadrupole'\?"),
        (["--properties", "bond_orders", "a.smi"], "the input stands before --properties"),
        (["--accuracy", "energy", "--properties", "quadrupole"], "leave out one of them"),
    ],
)
def test_what_cannot_be_asked_for_is_said(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.smi").write_text("O\n")
    source = [] if "a.smi" in arguments else ["a.smi"]
    assert main(["generate", *source, *arguments]) == 2
    assert re.search(words, capsys.readouterr().err)

"""Free atoms and atomisation energies of a run: in files, resumed, merged, edited."""

import json
import shutil

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
from fake_runs import CALM, LINES, fake_run

from pyscf_ipu.base.units import HARTREE_TO_EV
from qm1b import load
from qm1b.audit.invariants import Invariants
from qm1b.cli import main
from qm1b.convert.export import export
from qm1b.convert.importing import import_file
from qm1b.convert.merge import merge
from qm1b.errors import UserError
from qm1b.folder import checksum, same, shards
from qm1b.folder.manifest.work_units import Share
from qm1b.folder.shard_folder import ShardFolder
from qm1b.process.display import Display
from qm1b.reference import free_atoms
from qm1b.reference.free_atoms import disagreements, free_atom_energy
from qm1b.report.info import describe
from qm1b.rows.schema import FREE_ATOMS
from qm1b.settings import PRESETS

LEVEL = PRESETS["qm1b"]


def edited(folder, energies):
    path = folder / shards.MANIFEST
    values = json.loads(path.read_text())
    values.pop(FREE_ATOMS, None)
    path.write_text(json.dumps(values | ({FREE_ATOMS: energies} if energies else {})))


def of_version_4(folder):
    """Make a run one of the version before free atoms."""
    edited(folder, None)
    for path in shards.shards(folder):
        data = path.read_bytes()[checksum.BLOCK :]
        path.write_bytes(data)
        with h5py.File(path, "r+") as file:
            del file["rows/atomisation_energy"]
            file.attrs["schema_version"] = 4
        path.write_bytes(checksum.sealed(b"\0" * checksum.BLOCK + path.read_bytes()))


@pytest.fixture
def copy(finished, tmp_path):
    return shutil.copytree(finished[0], tmp_path / "out-2")


def test_rows_are_energies_minus_those_of_their_atoms(finished):
    data = load(finished[0])
    assert len(data.free_atom_energies) == 36  # H to Xe without Sc to Cu and Y to Ag
    assert data.free_atom_energies["C"] == free_atom_energy(6, LEVEL)
    water, ethanol = data[0], data[-1]
    o, h, c = (free_atom_energy(z, LEVEL) for z in (8, 1, 6))
    assert water["atomisation_energy"] == pytest.approx(water["energy"] - o - 2 * h, abs=1e-11)
    expected = ethanol["energy"] - 2 * c - 6 * h - o
    assert ethanol["atomisation_energy"] == pytest.approx(expected, abs=1e-11)
    for row in data:
        assert np.isnan(row["atomisation_energy"]) == np.isnan(row["energy"])
    assert data.units["atomisation_energy"] == "hartree"


def test_parquet_has_both(finished, tmp_path):
    export(finished[0], tmp_path / "a.parquet")
    data = load(tmp_path / "a.parquet")
    assert data.free_atom_energies == load(finished[0]).free_atom_energies
    column = pq.read_table(tmp_path / "a.parquet")["atomisation_energy"].to_pylist()
    assert column[0] == load(finished[0])[0]["atomisation_energy"] * HARTREE_TO_EV
    export(finished[0], tmp_path / "all.parquet", everything=True)
    import_file(tmp_path / "all.parquet", tmp_path / "back")
    assert same.differences(finished[0], tmp_path / "back") == []
    assert load(tmp_path / "back").free_atom_energies == data.free_atom_energies


def test_a_resumed_run_computes_no_atom(finished, copy, tmp_path, monkeypatch):
    shards.shards(copy)[1].unlink()
    monkeypatch.setattr(free_atoms, "free_atom_energy", None)
    fake_run(tmp_path, LINES)
    assert same.differences(finished[0], copy) == []


def test_shares_have_the_same_atoms(finished, tmp_path):
    parts = []
    for i in range(2):
        (tmp_path / str(i)).mkdir()
        parts.append(fake_run(tmp_path / str(i), CALM, share=Share(i, 2))[0])
    of_version_4(parts[0])
    merge(parts, tmp_path / "merged")
    known = load(finished[0])
    assert load(tmp_path / "merged").free_atom_energies == known.free_atom_energies
    rows = [row["atomisation_energy"] for row in load(tmp_path / "merged")]
    np.testing.assert_array_equal(rows, [row["atomisation_energy"] for row in known])


def test_a_run_of_an_earlier_version_is_read_and_resumed(finished, copy, tmp_path):
    of_version_4(copy)
    assert load(copy).free_atom_energies == {}
    assert np.isnan([row["atomisation_energy"] for row in load(copy)]).all()
    assert "free atoms" not in describe(copy)
    fake_run(tmp_path, LINES)  # there is nothing to compute but the atoms
    known = load(finished[0])
    assert load(copy).free_atom_energies == known.free_atom_energies
    rows = [row["atomisation_energy"] for row in load(copy)]
    np.testing.assert_array_equal(rows, [row["atomisation_energy"] for row in known])


def test_edited_energies_are_not_believed(finished, copy, tmp_path, capsys):
    real = load(finished[0]).free_atom_energies
    for wrong in (real | {"H": -0.4}, {"H": real["H"]}, None):
        edited(copy, wrong)
        with pytest.raises(UserError, match="free_atom_energies_hartree give other"):
            list(ShardFolder(copy))
    edited(copy, real | {"H": "x"})
    assert main(["info", str(copy)]) == 2
    assert "an object whose values are each a decimal number below zero" in capsys.readouterr().err
    edited(copy, real | {"H": -0.4})
    fake_run(tmp_path, LINES)  # the next run mends it
    assert load(copy).free_atom_energies == real


def test_verify_sees_wrong_rows_and_wrong_atoms(finished):
    source = ShardFolder(finished[0])
    atoms, (batch, _) = source.free_atom_energies, source.unit(0)
    for shift, count in ((0.0, 0), (1e-5, 6)):
        checks = Invariants(source.manifest.fingerprint, atoms)
        batch.columns["atomisation_energy"][:] += shift
        checks.add(source.shards[0], batch)
        assert checks.violations["atomisation_energy"].count == count
    assert disagreements(atoms, LEVEL) == []
    assert len(disagreements(atoms | {"Ne": -126.0}, LEVEL)) == 1


def test_commands_show_them(finished, capsys):
    assert main(["head", str(finished[0])]) == 0
    assert "atomisation [eV]" in capsys.readouterr().out
    assert main(["info", str(finished[0])]) == 0
    ev = {s: e * HARTREE_TO_EV for s, e in load(finished[0]).free_atom_energies.items()}
    shown = ", ".join(f"{symbol} {ev[symbol]:.4f}" for symbol in ("H", "C", "O", "Cl"))
    assert f"free atoms   {shown} eV" in capsys.readouterr().out
    assert main(["stats", str(finished[0]), "--json"]) == 0
    assert "atomisation_per_atom_ev" in json.loads(capsys.readouterr().out)["distributions"]


def test_a_run_without_free_atoms_says_so_once(tmp_path, monkeypatch):
    def fail(number, level):
        raise RuntimeError("out of order")

    monkeypatch.setattr(free_atoms, "free_atom_energy", fail)
    monkeypatch.setenv("PYSCF_IPU_CACHE", "off")
    said = []
    monkeypatch.setattr(Display, "say", lambda self, text: said.append(text))
    out, _ = fake_run(tmp_path, "O\nC\nCC\nCCO\nCCC\n")
    assert sum("free atom of O (RuntimeError: out of order)" in text for text in said) == 1
    assert load(out).free_atom_energies == {}
    assert np.isnan([row["atomisation_energy"] for row in load(out)]).all()

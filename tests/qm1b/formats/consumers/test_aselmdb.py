"""`.aselmdb`: read with ase-db-backends, as fairchem does, and as plain JSON, as MACE does."""

import json
import sys
import zlib

import ase.db
import lmdb
import numpy as np
import pytest
from ase import units

from pyscf_ipu.base.errors import MissingPackage
from qm1b.convert.export import export
from qm1b.errors import UserError
from qm1b.folder.shard_folder import ShardFolder


@pytest.fixture(scope="module")
def written(with_forces, tmp_path_factory):
    """The file, and what the export said."""
    path = tmp_path_factory.mktemp("lmdb") / "mine.aselmdb"
    return path, export(with_forces, path)


def good_rows(folder):
    return [row for row in ShardFolder(folder) if row["converged"]]


def test_fairchem_gets_atoms_with_energy_forces_charge_and_spin(with_forces, written):
    path, done = written
    rows = good_rows(with_forces)
    assert (done.rows, done.left_out) == (len(rows), 2) == (10, 2)
    with ase.db.connect(path, readonly=True, use_lock_file=False) as database:
        assert database.ids == list(range(1, 11))
        for number, row in zip(database.ids, rows, strict=True):
            found = database._get_row(number)
            atoms = found.toatoms()
            assert atoms.numbers.tolist() == row["numbers"].tolist()
            np.testing.assert_allclose(atoms.positions, row["positions"] * units.Bohr, rtol=1e-6)
            energy = row["energy"] * units.Hartree
            assert atoms.get_potential_energy() == pytest.approx(energy, rel=1e-7)
            forces = row["forces"] * units.Hartree / units.Bohr
            np.testing.assert_allclose(atoms.get_forces(), forces, rtol=1e-6)
            dipole = atoms.get_dipole_moment()
            np.testing.assert_allclose(dipole, row["dipole"] * units.Bohr, rtol=1e-6)
            np.testing.assert_array_equal(atoms.get_charges(), row["mulliken_charges"])
            assert not atoms.pbc.any()
            data = found.data
            assert (data["charge"], data["spin"]) == (row["charge"], 1)
            assert {type(data[name]) for name in ("charge", "spin", "total_charge")} == {int}
            for name in ("smiles", "line", "id"):
                assert data[name] == row[name]
        about = database.metadata
    assert about["free_atom_energies_hartree"]["O"] == -2.0
    assert {row["charge"] for row in rows} == {0, 1}


def entries(path):
    """All that the file holds, without ASE."""
    opened = lmdb.open(str(path), subdir=False, readonly=True, lock=False)
    with opened as database, database.begin() as transaction:
        return {key: json.loads(zlib.decompress(value)) for key, value in transaction.cursor()}


def test_mace_reads_plain_json(written):
    """Its reader takes JSON as it is; ASE's encoding of arrays would be objects there."""
    found = entries(written[0])
    row = found[b"1"]
    assert found[b"nextid"] == 11
    assert row["numbers"] == [8, 1, 1]
    assert np.shape(row["forces"]) == np.shape(row["positions"]) == (3, 3)
    assert row["data"]["total_spin"] == 1


def test_numbers_of_atoms_lie_beside_it(with_forces, written):
    path, done = written
    assert [p.name for p in done.beside] == ["metadata.npz"]
    natoms = np.load(path.with_name("metadata.npz"))["natoms"]
    assert np.issubdtype(natoms.dtype, np.integer)
    assert natoms.tolist() == [len(row["numbers"]) for row in good_rows(with_forces)]
    assert sorted(p.name for p in path.parent.iterdir()) == ["metadata.npz", "mine.aselmdb"]


def test_the_same_rows_give_the_same_entries(with_forces, written, tmp_path):
    again = tmp_path / "again.aselmdb"
    export(with_forces, again)
    assert entries(again) == entries(written[0])


def test_a_run_without_forces_has_energies_only(finished, tmp_path):
    export(finished[0], tmp_path / "mine.aselmdb")
    with ase.db.connect(tmp_path / "mine.aselmdb", readonly=True, use_lock_file=False) as database:
        results = database._get_row(1).toatoms().calc.results
    assert set(results) == {"energy", "dipole", "charges"}


def test_one_file_in_a_folder(with_forces, tmp_path):
    (tmp_path / "other.aselmdb").touch()
    with pytest.raises(UserError, match=r"holds other\.aselmdb.*folder of its own"):
        export(with_forces, tmp_path / "mine.aselmdb")


def test_a_full_disk_leaves_nothing_under_the_name(with_forces, tmp_path, monkeypatch):
    monkeypatch.setattr("qm1b.formats.consumers.aselmdb.MOST_BYTES", 2**14)  # LMDB's map is full
    with pytest.raises(UserError, match="cannot write"):
        export(with_forces, tmp_path / "mine.aselmdb")
    assert list(tmp_path.iterdir()) == []


def test_without_lmdb_it_says_what_to_install(with_forces, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lmdb", None)
    with pytest.raises(MissingPackage, match=r"run pip install .*lmdb"):
        export(with_forces, tmp_path / "mine.aselmdb")

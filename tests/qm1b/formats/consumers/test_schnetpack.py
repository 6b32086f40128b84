"""SchNetPack's database: what `ASEAtomsData` reads, read with ASE in the same way."""

import shutil
import sys

import ase.db
import numpy as np
import pytest
from ase import units
from fake_runs import give_free_atoms

from pyscf_ipu.base.errors import MissingPackage
from qm1b.convert.export import export
from qm1b.folder.shard_folder import ShardFolder
from qm1b.formats.consumers.ase_rows import free_atoms_by_number

UNITS = {"eV": 1.0, "eV/Ang": 1.0, "Debye": units.Debye, None: 1.0}
"""Of ASE, in which e is 1: what SchNetPack multiplies with to get ASE's units."""


def in_ase_units(row):
    """The properties of a row, converted with ASE's constants."""
    energy, length = units.Hartree, units.Bohr
    return {
        "energy": [row["energy"] * energy],
        "forces": row["forces"] * energy / length,
        "dipole_moment": row["dipole"] * length,
        "partial_charges": row["mulliken_charges"],
        "total_charge": [row["charge"]],
        "homo": [row["homo"] * energy],
        "lumo": [row["lumo"] * energy],
        "gap": [(row["lumo"] - row["homo"]) * energy],
    }


def test_properties_units_and_atom_references(with_forces, tmp_path):
    path = tmp_path / "mine.db"
    assert export(with_forces, path).beside == []
    rows = [row for row in ShardFolder(with_forces) if row["converged"]]
    with ase.db.connect(path, use_lock_file=False) as database:
        about = database.metadata
        words = about["_property_unit_dict"]
        assert about["_distance_unit"] == "Ang"
        assert database.count() == len(rows) == 10
        for number, row in enumerate(rows):
            found = database.get(number + 1)
            assert found.numbers.tolist() == row["numbers"].tolist()
            np.testing.assert_allclose(found.positions, row["positions"] * units.Bohr, rtol=1e-6)
            expected = in_ase_units(row)
            assert set(found.data) - {"id"} == set(words) == set(expected)
            assert found.data["id"] == row["id"]
            for name, value in expected.items():
                there = found.data[name]
                assert there.shape == np.shape(value)
                np.testing.assert_allclose(there * UNITS[words[name]], value, rtol=1e-6)
            assert found.key_value_pairs["smiles"] == row["smiles"]
    free = about["atomrefs"]["energy"]
    assert (len(free), free[0], free[2]) == (18, 0.0, 0.0)  # chlorine is the last
    np.testing.assert_allclose([free[1], free[8]], [-0.25 * units.Hartree, -2 * units.Hartree])


def test_a_run_without_forces_and_free_atoms(finished, tmp_path):
    older = give_free_atoms(shutil.copytree(finished[0], tmp_path / "out-2"), {})
    export(older, tmp_path / "mine.db", kind="schnetpack")
    with ase.db.connect(tmp_path / "mine.db", use_lock_file=False) as database:
        about = database.metadata
        assert about["atomrefs"] == {}
        assert "forces" not in about["_property_unit_dict"]
        assert "forces" not in database.get(1).data
    assert free_atoms_by_number(ShardFolder(older)) == []


def test_without_ase_it_says_what_to_install(finished, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ase.db.sqlite", None)
    with pytest.raises(MissingPackage, match=r"run pip install .*ase"):
        export(finished[0], tmp_path / "mine.db")

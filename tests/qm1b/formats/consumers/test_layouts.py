"""Ace 2.0 and SPICE: the assertions of their readers, on files read with h5py."""

import errno
import os

import h5py
import numpy as np
import pytest
from ase import units
from ase.data import chemical_symbols
from fake_runs import FREE_ATOMS, frames, give_free_atoms
from rdkit import Chem

from qm1b.convert.export import export
from qm1b.errors import UserError
from qm1b.folder.shard_folder import ShardFolder


def by_line(folder):
    """Converged rows by line, as groups of the file have them."""
    found = {}
    for row in ShardFolder(folder):
        if row["converged"]:
            found.setdefault(f"{row['line']:010d}", []).append(row)
    return found


def formation(row):
    """Hartree."""
    return row["energy"] - sum(FREE_ATOMS[chemical_symbols[z]] for z in row["numbers"])


def stacked(rows, field):
    return np.array([row[field] for row in rows], np.float64)


def test_ace_as_torchmd_net_reads_it(with_forces, tmp_path):
    path = tmp_path / "mine.h5"
    assert export(with_forces, path, kind="ace").rows == 10
    expected = by_line(with_forces)
    with h5py.File(path) as file:
        assert (file.attrs["layout"], file.attrs["layout_version"]) == ("Ace", "2.0")
        assert "name" in file.attrs
        assert len(file.keys()) == 1
        found = next(iter(file.values()))
        assert set(found) == set(expected)
        for name, rows in expected.items():
            molecule, m, a = found[name], len(rows), len(rows[0]["numbers"])
            shapes = {"positions": (m, a, 3), "formation_energies": (m,), "forces": (m, a, 3)}
            shapes |= {"dipole_moments": (m, 3), "partial_charges": (m, a)}
            assert {key: molecule[key].shape for key in shapes} == shapes
            words = [molecule[key].attrs["units"] for key in shapes]
            assert words == ["Å", "eV", "eV/Å", "e*Å", "e"]
            assert molecule["atomic_numbers"][:].tolist() == rows[0]["numbers"].tolist()
            assert molecule["formal_charges"][:].sum() == rows[0]["charge"]
            per_angstrom = units.Hartree / units.Bohr
            for key, value in (
                ("positions", stacked(rows, "positions") * units.Bohr),
                ("formation_energies", np.array(list(map(formation, rows))) * units.Hartree),
                ("forces", stacked(rows, "forces") * per_angstrom),
                ("dipole_moments", stacked(rows, "dipole") * units.Bohr),
                ("partial_charges", stacked(rows, "mulliken_charges")),
            ):
                np.testing.assert_allclose(molecule[key][:], value, rtol=1e-6, atol=1e-6)
        nitro = found["0000000002"]
        assert sorted(nitro["formal_charges"][:].tolist()) == [-1, 0, 0, 0, 0, 0, 1]


def test_spice_as_torchmd_net_reads_it(with_forces, tmp_path):
    path = tmp_path / "mine.hdf5"
    export(with_forces, path, kind="spice")
    expected = by_line(with_forces)
    with h5py.File(path) as file:
        assert set(file) == set(expected)
        for name, rows in expected.items():
            molecule, m, a = file[name], len(rows), len(rows[0]["numbers"])
            assert molecule["subset"][0].decode() == with_forces.name
            assert molecule["atomic_numbers"][:].tolist() == rows[0]["numbers"].tolist()
            positions = molecule["conformations"][:]
            assert positions.shape == molecule["dft_total_gradient"].shape == (m, a, 3)
            np.testing.assert_array_equal(positions, stacked(rows, "positions"))
            energies = molecule["dft_total_energy"][:]
            np.testing.assert_array_equal(energies, stacked(rows, "energy"))
            gradient = molecule["dft_total_gradient"][:]
            np.testing.assert_allclose(gradient, -stacked(rows, "forces"), rtol=1e-6)
            np.testing.assert_allclose(molecule["formation_energy"][:], list(map(formation, rows)))
            words = {"conformations": "bohr", "formation_energy": "hartree"}
            words |= {"dft_total_energy": "hartree", "dft_total_gradient": "hartree/bohr"}
            assert {key: molecule[key].attrs["units"] for key in words} == words


def test_the_smiles_number_the_atoms_in_the_order_of_the_rows(with_forces, tmp_path):
    export(with_forces, tmp_path / "mine.hdf5", kind="spice")
    parameters = Chem.SmilesParserParams()
    parameters.removeHs = False
    with h5py.File(tmp_path / "mine.hdf5") as file:
        for molecule in file.values():
            graph = Chem.MolFromSmiles(molecule["smiles"][0].decode(), parameters)
            numbers = {atom.GetAtomMapNum(): atom.GetAtomicNum() for atom in graph.GetAtoms()}
            in_order = [numbers[i + 1] for i in range(len(numbers))]
            assert in_order == molecule["atomic_numbers"][:].tolist()
            xyz = molecule["conformations"][0] * units.Bohr
            for bond in graph.GetBonds():  # RDKit's geometry: bonded atoms are neighbours
                a, b = (end.GetAtomMapNum() - 1 for end in (bond.GetBeginAtom(), bond.GetEndAtom()))
                assert np.linalg.norm(xyz[a] - xyz[b]) < 1.7


def test_frames_have_their_own_order_and_no_formal_charges(tmp_path):
    folder = give_free_atoms(frames(tmp_path, forces=True))
    export(folder, tmp_path / "mine.h5", kind="ace")
    expected = [row for row in ShardFolder(folder) if row["converged"]]
    with h5py.File(tmp_path / "mine.h5") as file:
        found = list(file["molecules"].values())
        assert sum(len(molecule["positions"]) for molecule in found) == len(expected) == 24
        assert found[1]["smiles"][0].decode() == expected[1]["smiles"]
        assert not any(molecule["formal_charges"][:].any() for molecule in found)


@pytest.mark.parametrize("kind", ["ace", "spice"])
def test_what_the_layouts_must_have(kind, finished, tmp_path):
    with pytest.raises(UserError, match=r"must have forces.*qm1b generate --forces"):
        export(finished[0], tmp_path / "mine.h5", kind=kind)
    older = give_free_atoms(frames(tmp_path, forces=True), {})
    with pytest.raises(UserError, match=r"no energies of free atoms.*run qm1b generate again"):
        export(older, tmp_path / "mine.h5", kind=kind)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.xyz", "out"]


def test_an_element_without_a_free_atom(tmp_path):
    few = give_free_atoms(frames(tmp_path, forces=True), {"H": -0.25})
    with pytest.raises(UserError, match="no free-atom energy of C, which is on line 1"):
        export(few, tmp_path / "mine.h5", kind="ace")


def test_a_full_disk_is_a_sentence(with_forces, tmp_path, monkeypatch):
    def full(stream):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left"):
        export(with_forces, tmp_path / "mine.h5", kind="ace")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["ace", "spice"])
def test_molecules_with_ids_have_them_beside_the_rest(with_forces, tmp_path, kind):
    path = tmp_path / "mine.h5"
    export(with_forces, path, kind=kind)
    with h5py.File(path) as file:
        found = file["molecules"] if kind == "ace" else file
        assert found["0000000002"]["ids"].asstr()[:].tolist() == ["nitromethane"] * 2
        assert "ids" not in found["0000000001"]

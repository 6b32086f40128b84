"""Extended XYZ in the words of ASE and MACE, and free atoms that our readers skip."""

import gzip

import ase.io
import numpy as np
import pytest
from ase import units
from fake_runs import fake_run, settings

import qm1b
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.molecule.reading import read_molecules
from qm1b import inputs
from qm1b.convert.export import export
from qm1b.convert.importing import import_file
from qm1b.errors import UserError
from qm1b.folder import same
from qm1b.formats import extxyz
from qm1b.formats.extxyz import ExtxyzFile
from qm1b.rows.schema import CONVERGED
from schnet.sources.opening import open_source

TEXT = "O\nCO\nC\nCl\nCCN"  # chlorine does not converge


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return fake_run(tmp_path_factory.mktemp("run"), TEXT, forces=True)[0]


@pytest.fixture(scope="module")
def path(folder, tmp_path_factory):
    found = tmp_path_factory.mktemp("files") / "a.extxyz"
    export(folder, found)
    return found


@pytest.fixture(scope="module")
def rows(folder):
    return [row for row in qm1b.load(folder) if row["status"] == CONVERGED]


def test_the_words_of_ase(path, rows):
    frames = [a for a in ase.io.read(path, ":") if a.info["config_type"] == "Default"]
    for atoms, row in zip(frames, rows, strict=True):
        energy, forces = row["energy"] * units.Hartree, row["forces"] * units.Hartree / units.Bohr
        assert atoms.get_potential_energy() == pytest.approx(energy, rel=1e-7)
        np.testing.assert_allclose(atoms.get_forces(), forces, rtol=1e-6, atol=1e-12)
        assert {k: atoms.info[k] for k in ("charge", "spin")} == {"charge": 0, "spin": 1}
        assert not atoms.pbc.any()


def test_the_words_of_mace(path, rows):
    """In `info` and `arrays`, where ASE leaves what is not its own result."""
    frames = [a for a in ase.io.read(path, ":") if a.info["config_type"] == "Default"]
    for atoms, row in zip(frames, rows, strict=True):
        assert atoms.info["REF_energy"] == atoms.get_potential_energy()
        np.testing.assert_array_equal(atoms.arrays["REF_forces"], atoms.get_forces())
        np.testing.assert_array_equal(atoms.arrays["REF_charges"], row["mulliken_charges"])
        debye = row["dipole"] * units.Bohr / units.Debye
        np.testing.assert_allclose(atoms.info["REF_dipole"], debye, rtol=1e-6)
        assert (atoms.info["total_charge"], atoms.info["total_spin"]) == (0, 1)


def test_the_first_frames_are_the_free_atoms_of_the_run(path, folder):
    energies = qm1b.load(folder).free_atom_energies
    frames = ase.io.read(path, ":5")
    assert [str(a.symbols) for a in frames] == ["H", "C", "N", "O", "Cl"]
    for atoms in frames:
        assert atoms.info["config_type"] == "IsolatedAtom"
        expected = energies[str(atoms.symbols)] * units.Hartree
        assert atoms.info["REF_energy"] == pytest.approx(expected, rel=1e-7)
        for forces in (atoms.get_forces(), atoms.arrays["REF_forces"]):
            np.testing.assert_array_equal(forces, np.zeros((1, 3)))
    assert [a.info["spin"] for a in frames] == [2, 3, 4, 3, 2]
    assert ase.io.read(path, 5).info["config_type"] == "Default"


def test_our_readers_skip_and_do_not_count_them(path, rows):
    smiles = [row["smiles"] for row in rows]
    assert [row["smiles"] for row in ExtxyzFile(path)] == smiles
    source = open_source(path, "energy")
    assert sum(source.sizes) == len(rows)
    assert [s for part in source.parts() for s in part.smiles] == smiles
    np.testing.assert_array_equal(
        np.concatenate([part.targets for part in source.parts()]), [row["energy"] for row in rows]
    )
    assert len(read_molecules(path)) == len(rows)
    molecule = Molecule.from_xyz(path, index=0)
    assert molecule.numbers.tolist() == rows[0]["numbers"].tolist()


def test_an_exported_file_is_an_input_again(path, rows, tmp_path):
    packed = tmp_path / "a.extxyz.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for source in (path, packed):
        records = list(inputs.read(source, settings()))
        assert inputs.summarise(source, settings()).n_lines == len(records) == len(rows)
        assert [r.number for r in records] == list(range(1, len(rows) + 1))
        assert not any("IsolatedAtom" in r.block for r in records)


def test_a_wrong_line_is_named_behind_free_atoms_too(path, tmp_path):
    lines = path.read_text().splitlines()
    lines[5 * 3 + 2] = "O here"
    (tmp_path / "bad.xyz").write_text("\n".join(lines))
    with pytest.raises(ValueError, match="line 18: atom 1"):
        Molecule.from_xyz(tmp_path / "bad.xyz")


def test_there_and_back(folder, tmp_path):
    export(folder, tmp_path / "all.extxyz", everything=True)
    done = import_file(tmp_path / "all.extxyz", tmp_path / "back")
    assert done.rows == len(qm1b.load(folder))
    assert same.differences(folder, tmp_path / "back") == []
    assert ExtxyzFile(tmp_path / "all.extxyz").free_atom_energies["O"] == pytest.approx(
        -74.018, abs=1e-3
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1" * 300_000, "line 1 has more than 262144 characters"),
        ("1\n" + "x" * 300_000, "line 2 has more than 262144 characters"),
        ("999999\n\n" + "H 0 0 0\n" * 9, "a frame of 999999 atoms"),
    ],
)
def test_a_packed_file_cannot_fill_the_memory(text, says, tmp_path):
    path = tmp_path / "a.extxyz.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(UserError, match=says):
        list(ExtxyzFile(path).batches())


def test_large_frames_are_fewer_in_a_batch(path, rows, monkeypatch):
    monkeypatch.setattr(extxyz, "BATCH_CHARACTERS", 1)
    batches = list(ExtxyzFile(path).batches())
    assert [len(batch) for batch in batches] == [1] * len(rows)

"""MOLECULE is a file, a listed name or a SMILES, in that order."""

import numpy as np
import pytest
from oracle import small
from rdkit import Chem

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.commands.report import xyz_text
from pyscf_ipu.molecule.named.argument import find_molecule


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def test_files_come_first(tmp_path):
    mol = small("methylammonium")
    (tmp_path / "mine.xyz").write_text(xyz_text(mol, -1.0))
    found = find_molecule("mine.xyz")
    np.testing.assert_allclose(found.positions, mol.positions, atol=1e-7)
    assert found.charge == 1
    (tmp_path / "water").write_text(xyz_text(mol, -1.0))
    assert find_molecule("water").n_atoms == mol.n_atoms
    Chem.MolToMolFile(mol.to_rdkit(), "mine.sdf")
    assert find_molecule("mine.sdf").charge == 1
    with pytest.raises(InvalidMolecule, match=r"charge \+1, which contradicts --charge 0"):
        find_molecule("mine.sdf", charge=0)
    with pytest.raises(InvalidMolecule, match="contradicts charge=2"):
        find_molecule("mine.xyz", charge=2)


def test_names_and_smiles():
    assert find_molecule("Acetic-acid").name == "acetic acid"
    assert find_molecule("methane", charge=2).charge == 2
    assert find_molecule("[NH4+]").charge == 1
    one, other = find_molecule("CCO", seed=1), find_molecule("CCO", seed=2)
    assert not np.allclose(one.positions, other.positions)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nowhere/a.xyz", "there is no file nowhere/a.xyz"),
        ("watr", "no file, no listed name, no SMILES and no geometry.*benzene.*water"),
        ("C" * 5000 + "Q", "no listed name"),
        ("", "no listed name"),
    ],
)
def test_what_is_none_of_them(text, words):
    with pytest.raises(InvalidMolecule, match=words):
        find_molecule(text)


def test_geometries_as_text():
    found = find_molecule("O 0 0 0; H 0 0 1; H 0 1 0")
    assert found.numbers.tolist() == [8, 1, 1]
    assert find_molecule("He 0 0 0").n_atoms == 1
    with pytest.raises(InvalidMolecule, match="cannot read 'H 0 0'"):
        find_molecule("O 0 0 0; H 0 0")

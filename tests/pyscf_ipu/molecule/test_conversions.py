"""Ways into and out of a Molecule: symbols, RDKit, SDF and ASE, each compared with its own data."""

import numpy as np
import pytest
from ase import Atoms
from oracle import SMALL, small
from rdkit import Chem
from rdkit.Chem import rdDepictor, rdDistGeom

from pyscf_ipu import Molecule, read_molecules
from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM

WATER = [[0.0, 0.0, 0.117], [0.0, 0.757, -0.469], [0.0, -0.757, -0.469]]


def embedded(smiles):
    graph = Chem.AddHs(Chem.MolFromSmiles(smiles))
    rdDistGeom.EmbedMolecule(graph, randomSeed=1)
    return graph


def test_symbols_and_their_unit():
    angstrom = Molecule.from_symbols(["O", "h", "H"], WATER)
    bohr = Molecule.from_symbols(["O", "H", "H"], angstrom.positions, unit="Bohr")
    np.testing.assert_allclose(angstrom.positions, np.array(WATER) / BOHR_TO_ANGSTROM)
    np.testing.assert_array_equal(bohr.positions, angstrom.positions)
    assert bohr.symbols == angstrom.symbols == ["O", "H", "H"]
    assert Molecule.from_symbols(["O", "H"], WATER[:2], charge=-1).charge == -1


@pytest.mark.parametrize(
    ("symbols", "positions", "unit", "words"),
    [
        (["O", "Q", "H"], WATER, "angstrom", "'Q' is no element symbol"),
        ("OHH", WATER, "angstrom", "give a list such as"),
        (["O", "H", "H"], WATER, "nm", "unit is 'nm': give 'angstrom' or 'bohr'"),
        (["O", "H", "H"], "here", "bohr", "not an array of numbers"),
        (["O", "H"], WATER, "bohr", "must be"),
    ],
)
def test_what_symbols_cannot_be(symbols, positions, unit, words):
    with pytest.raises(ValueError, match=words):
        Molecule.from_symbols(symbols, positions, unit=unit)


@pytest.mark.parametrize("smiles", ["CC(=O)[O-]", "C[NH3+]", "c1ccoc1", "[H][H]"])
def test_rdkit_and_sdf_files_keep_atoms_charge_and_order(smiles, tmp_path):
    graph = embedded(smiles)
    graph.SetProp("_Name", "mine")
    mol = Molecule.from_rdkit(graph)
    assert mol.numbers.tolist() == [atom.GetAtomicNum() for atom in graph.GetAtoms()]
    positions = graph.GetConformer().GetPositions()
    np.testing.assert_allclose(mol.positions * BOHR_TO_ANGSTROM, positions, atol=1e-12)
    assert mol.charge == Chem.GetFormalCharge(graph)
    assert Chem.CanonSmiles(mol.smiles) == Chem.CanonSmiles(smiles)
    path = tmp_path / "two.sdf"
    path.write_text(Chem.MolToMolBlock(graph) + "$$$$\n" + Chem.MolToMolBlock(embedded("O")))
    with pytest.warns(UserWarning, match=r"only the first molecule of .*two.sdf"):
        read = Molecule.from_sdf(path)
    assert Molecule.from_sdf(path, index=1).smiles == "O"
    assert [mol.smiles for mol in read_molecules(path)] == [read.smiles, "O"]
    np.testing.assert_allclose(read.positions, mol.positions, atol=1e-3)
    assert (read.charge, read.smiles, read.name) == (mol.charge, mol.smiles, "mine")


@pytest.mark.parametrize("name", SMALL)
def test_there_and_back_again(name):
    mol = small(name)
    back = Molecule.from_rdkit(mol.to_rdkit())
    assert Chem.CanonSmiles(back.smiles) == Chem.CanonSmiles(mol.smiles)
    np.testing.assert_allclose(back.positions, mol.positions, atol=1e-8)
    atoms = mol.to_ase()
    assert isinstance(atoms, Atoms)
    assert atoms.info == ({"charge": 1} if mol.charge else {})
    again = Molecule.from_ase(atoms, charge=mol.charge)
    np.testing.assert_allclose(again.positions, mol.positions, atol=1e-12)
    assert again.symbols == atoms.get_chemical_symbols() == mol.symbols


def test_what_rdkit_cannot_give(tmp_path):
    flat = Chem.AddHs(Chem.MolFromSmiles("CO"))
    with pytest.raises(InvalidMolecule, match="no conformer -1"):
        Molecule.from_rdkit(flat)
    rdDepictor.Compute2DCoords(flat)
    with pytest.raises(InvalidMolecule, match="a drawing in the plane"):
        Molecule.from_rdkit(flat)
    with pytest.raises(InvalidMolecule, match="hydrogens that are not atoms"):
        Molecule.from_rdkit(Chem.RemoveHs(embedded("CO")))
    assert Molecule.from_rdkit(embedded("[CH3]")).multiplicity == 2
    with pytest.raises(TypeError, match="not a str"):
        Molecule.from_rdkit("CO")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        Molecule.from_sdf(tmp_path / "no.sdf")
    (tmp_path / "text.sdf").write_text("no molecule")
    with pytest.raises(InvalidMolecule, match="line 1: RDKit cannot read the entry"):
        Molecule.from_sdf(tmp_path / "text.sdf")


def test_atoms_without_bonds_that_fit():
    square = Molecule([6, 6, 6, 6], [[0, 0, 0], [1.5, 0, 0], [0, 1.5, 0], [1.5, 1.5, 0]], charge=1)
    with pytest.raises(InvalidMolecule, match="finds no bonds"):
        square.to_rdkit()

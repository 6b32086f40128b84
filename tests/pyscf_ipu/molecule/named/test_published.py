"""The names of the original PySCF-IPU, as molecules that can be computed."""

import numpy as np
import pytest
from rdkit import Chem
from scipy.spatial.distance import pdist, squareform

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.molecule.named.argument import find_molecule
from pyscf_ipu.molecule.named.published import AMINO_ACIDS

SPICE = (
    "TRP LYN TYR PHE LEU ILE HIE MET GLN HID GLH VAL GLU THR PRO ASN ASH ASP SER CYS CYX ALA GLY"
)
"""The list of the original."""


def test_rows_of_carbons():
    found = find_molecule("c_5")
    assert found.numbers.tolist() == [6] * 5
    np.testing.assert_allclose(np.diff(found.positions[:, 2]) * BOHR_TO_ANGSTROM, 1.0)
    assert find_molecule("C_1").n_atoms == 1
    for name in ("c_0", "c_101"):
        with pytest.raises(InvalidMolecule, match="1 to 100"):
            find_molecule(name)


def test_the_smallest_fullerene():
    found = find_molecule("c20")
    distances = squareform(pdist(found.positions * BOHR_TO_ANGSTROM))
    near = (distances > 0) & (distances < 1.75)
    assert found.numbers.tolist() == [6] * 20
    assert (near.sum(axis=0) == 3).all()  # every carbon has three neighbours
    assert distances[near].min() > 1.35


def test_amino_acids_have_the_originals_names():
    assert set(SPICE.lower().split()) <= set(AMINO_ACIDS)
    glycine = find_molecule("GLY")
    assert sorted(glycine.numbers.tolist()) == [1] * 5 + [6, 6, 7, 8, 8]
    assert find_molecule("gly").positions == pytest.approx(glycine.positions)
    with pytest.raises(InvalidMolecule, match="charge"):
        find_molecule("LYS", charge=1)


@pytest.mark.parametrize("name", AMINO_ACIDS)
def test_amino_acids_are_neutral_and_left_handed(name):
    molecule = Chem.MolFromSmiles(AMINO_ACIDS[name])
    assert Chem.GetFormalCharge(molecule) == 0
    assert molecule.HasSubstructMatch(Chem.MolFromSmarts("NCC(=O)[OH]"))
    # S, but R for cysteine, whose sulphur counts more than its acid.
    centres = Chem.FindMolChiralCenters(molecule, includeUnassigned=True)
    alpha = molecule.GetSubstructMatch(Chem.MolFromSmarts("NCC(=O)[OH]"))[1]
    if name != "gly":
        assert dict(centres)[alpha] == ("R" if name in ("cys", "cyx") else "S")

"""What the entries of SDF files state."""

import pytest
from rdkit import Chem

from pyscf_ipu.molecule.files.sdf import stated_multiplicity

SINGLET = ("M  RAD  1   1   3", "M  RAD  1   1   1"), ("RAD=3", "RAD=1")


def blocks(smiles):
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    return Chem.MolToMolBlock(mol), Chem.MolToV3KMolBlock(mol)


@pytest.mark.parametrize(
    ("smiles", "multiplicity"), [("C", None), ("[CH3]", 2), ("[CH2]", 3), ("[O]C[O]", 3)]
)
def test_radicals_are_parallel(smiles, multiplicity):
    assert [stated_multiplicity(block) for block in blocks(smiles)] == [multiplicity] * 2


def test_a_singlet_carbene():
    for block, (triplet, singlet) in zip(blocks("[CH2]"), SINGLET, strict=True):
        assert triplet in block
        assert stated_multiplicity(block.replace(triplet, singlet)) == 1


def test_a_data_field_comes_first():
    field = "> <multiplicity>\n1\n\n"
    assert stated_multiplicity(blocks("[CH2]")[0] + field) == 1

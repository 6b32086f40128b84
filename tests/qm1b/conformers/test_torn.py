"""Geometries with other bonds than their molecule."""

import numpy as np
import pytest
from fake_runs import recipe
from rdkit import Chem
from rdkit.Chem import rdDistGeom

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.elements.spellings import ATOMIC_NUMBERS
from qm1b.commands.generate import SAMPLE
from qm1b.conformers.embed import embed
from qm1b.conformers.torn import in_order_of, is_in_parts, is_torn
from qm1b.screening.screen import Candidate

ETHANE = """C 0 0 .765
C 0 0 -.765
H 1.02 0 1.16
H -.51 .88 1.16
H -.51 -.88 1.16
H -1.02 0 -1.16
H .51 .88 -1.16
H .51 -.88 -1.16"""

WATER = "O {x} 0 0\nH {y} .76 .59\nH {y} -.76 .59"

WHOLE = {
    "ethane": ETHANE,
    "two waters": WATER.format(x=0, y=0) + "\n" + WATER.format(x=2.75, y=2.75),
    "Zundel's ion": "O -1.2 0 0\nO 1.2 0 0\nH 0 0 0\nH -1.7 .8 0\nH -1.7 -.8 0\nH 1.7 0 .8\n"
    "H 1.7 0 -.8",
    "an ion pair": "Na 0 0 0\nCl 0 0 2.36",
    "a pair that is far apart": "Na 0 0 0\nCl 0 0 8",
    "hydride": "Li 0 0 0\nH 0 0 1.6",
    "diborane": "B 0 0 .885\nB 0 0 -.885\nH 0 .97 0\nH 0 -.97 0\nH 1.04 0 1.46\nH -1.04 0 1.46\n"
    "H 1.04 0 -1.46\nH -1.04 0 -1.46",
    "H3+": "H 0 0 0\nH .873 0 0\nH .4365 .756 0",
    "helium": "He 0 0 0\nHe 0 0 3",
    "a proton": "H 0 0 0",
    "N2O3": "N 0 0 0\nN 1.864 0 0\nO -.4 1.07 0\nO 2.25 1.13 0\nO 2.4 -1.05 0",
    "bromine and ammonia": "Br 0 0 0\nBr 0 0 -2.3\nN 0 0 2.6\nH .95 0 2.95\nH -.47 .82 2.95\n"
    "H -.47 -.82 2.95",
}

TORN = {
    "a hydrogen at 3 Angstrom": ETHANE.replace("1.02 0 1.16", "2.85 0 1.7"),
    "C-C at 2.5 Angstrom": ETHANE.replace("765", "25")
    .replace("0 .25\n", "0 1.25\n", 1)
    .replace("0 -.25", "0 -1.25")
    .replace("1.16", "1.645"),
    "dissociated hydrogen": "H 0 0 0\nH 0 0 2",
    "a carbon atom and water": WATER.format(x=0, y=0) + "\nC 4 0 0",
}


def atoms(text):
    """Numbers, and positions in Bohr."""
    rows = [line.split() for line in text.splitlines()]
    numbers = np.array([ATOMIC_NUMBERS[row[0]] for row in rows], np.uint8)
    return numbers, np.array([[float(x) for x in row[1:]] for row in rows]) / BOHR_TO_ANGSTROM


def embedded(smiles, seed=1):
    """A molecule with all hydrogens, and positions in Bohr."""
    graph = Chem.AddHs(Chem.MolFromSmiles(smiles))
    assert rdDistGeom.EmbedMolecule(graph, randomSeed=seed) == 0
    positions = graph.GetConformer().GetPositions() / BOHR_TO_ANGSTROM
    graph.RemoveAllConformers()
    return graph, np.array([a.GetAtomicNum() for a in graph.GetAtoms()], np.uint8), positions


@pytest.mark.parametrize("name", WHOLE)
def test_without_bonds_clusters_and_ions_are_whole(name):
    assert not is_in_parts(*atoms(WHOLE[name]))


@pytest.mark.parametrize("name", TORN)
def test_without_bonds_what_has_no_neighbour_is_torn(name):
    assert is_in_parts(*atoms(TORN[name]))


@pytest.mark.parametrize(
    ("smiles", "angstrom"),
    [
        ("CC", 2.20),
        ("CO", 2.06),
        ("SS", 3.05),
        ("NN", 2.06),
        ("[SiH3][SiH3]", 3.22),
        ("CI", 3.12),
        ("CBr", 2.84),
        ("BrBr", 3.48),
        ("[H]O", 1.41),
        ("[H]C", 1.55),
        ("[H]B", 1.67),
    ],
)
def test_a_bond_is_missing_when_it_is_stretched(smiles, angstrom):
    graph = Chem.MolFromSmiles(smiles, sanitize=False)
    numbers = np.array([a.GetAtomicNum() for a in graph.GetAtoms()], np.uint8)
    for factor, torn in ((0.6, False), (0.99, False), (1.01, True), (2.0, True)):
        positions = np.array([[0, 0, 0], [factor * angstrom / BOHR_TO_ANGSTROM, 0, 0]])
        assert is_torn(graph, numbers, positions) == torn


def test_atoms_that_have_found_each_other_count_as_torn():
    """Norbornadiene with the positions of quadricyclane: no bond is missing, two are too many."""
    diene = Chem.AddHs(Chem.MolFromSmiles("C1=CC2C=CC1C2"))
    cage = Chem.RWMol(diene)
    for bond in cage.GetBonds():
        bond.SetBondType(Chem.BondType.SINGLE)
    for first, second in ((1, 3), (0, 4)):
        cage.AddBond(first, second, Chem.BondType.SINGLE)
    Chem.SanitizeMol(cage)
    assert rdDistGeom.EmbedMolecule(cage, randomSeed=1) == 0
    numbers = np.array([a.GetAtomicNum() for a in cage.GetAtoms()], np.uint8)
    positions = cage.GetConformer().GetPositions() / BOHR_TO_ANGSTROM
    assert not is_torn(cage, numbers, positions)
    assert is_torn(diene, numbers, positions)


@pytest.mark.parametrize("relax", ["none", "mmff"])
@pytest.mark.slow
def test_no_bundled_molecule_is_torn(relax):
    lines = SAMPLE.read_text().split("\n")[:300:5]
    for line in lines:
        smiles = Chem.CanonSmiles(line.split("\t")[0])
        result = embed(Candidate(1, smiles, 0), recipe(4, relax=relax))
        assert result.conformers
        assert not any(one.torn for one in result.conformers), smiles


def test_large_steps_tear():
    rows = embed(Candidate(1, "CCCO", 0), recipe(30, rattle_angstrom=0.5)).conformers
    assert sum(one.torn for one in rows) > 20
    rows = embed(Candidate(1, "CCCO", 0), recipe(30, rattle_angstrom=0.05)).conformers
    assert not any(one.torn for one in rows)


@pytest.mark.parametrize(
    "smiles", ["C[C@H](F)Cl", "CC(=O)[O-]", "CSSC", "C1C2CC1C2", "Oc1ccccc1", "C[N+](C)(C)C", "O"]
)
def test_the_atoms_of_a_smiles_are_found_in_a_geometry(smiles):
    graph, numbers, positions = embedded(smiles)
    order = np.random.default_rng(0).permutation(len(numbers))
    matched = in_order_of(graph, numbers[order], positions[order])
    assert [a.GetAtomicNum() for a in matched.GetAtoms()] == numbers[order].tolist()
    assert Chem.CanonSmiles(Chem.MolToSmiles(matched)) == Chem.CanonSmiles(Chem.MolToSmiles(graph))
    assert not is_torn(matched, numbers[order], positions[order])


def test_other_bonds_of_the_same_atoms_are_not_found():
    for first, second in (("CC=O", "C=CO"), ("C=[N+]=[N-]", "C1N=N1"), ("CCO", "COC")):
        graph = Chem.AddHs(Chem.MolFromSmiles(first))
        _, numbers, positions = embedded(second)
        assert in_order_of(graph, numbers, positions) is None

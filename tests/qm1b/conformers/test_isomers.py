"""Stereo of each geometry, one stereoisomer of a molecule, and stereo that is impossible."""

import time

import numpy as np
import pytest
from fake_runs import recipe
from rdkit import Chem

from qm1b.conformers import isomers
from qm1b.conformers.embed import embed
from qm1b.conformers.isomers import ImpossibleStereo, isomer_of
from qm1b.screening.screen import Candidate

OPEN = "O=CCC1OC2COC12"
"""Three centres, of which four stereoisomers are possible in space."""

IMPOSSIBLE = (
    "CC(=O)N1C[C@H]2CC[C@H]1c1ccccc12",
    "C1C[C@H]2C[C@H]1CC2",  # norbornane with a trans bridge
    "CC1(C)[C@@H]2CC[C@]1(C)C(=O)C2",  # camphor with one centre inverted
)

POSSIBLE = (
    "CC(=O)N1C[C@@H]2CC[C@H]1c1ccccc12",
    "C1C[C@H]2C[C@@H]1CC2",
    "CC1(C)[C@@H]2CC[C@@]1(C)C(=O)C2",  # both enantiomers of camphor
    "CC1(C)[C@H]2CC[C@]1(C)C(=O)C2",
    "C1C[C@H]2CC[C@@H]2C1",  # trans-fused, which no geometry of free stereo is
    "C1CC[C@H]2C[C@@H]2C1",  # trans-norcarane, which takes 16 tries
    "C1CC[C@@H]2CCCC[C@H]2C1",
    "C1CC/C=C/CCC1",
    "C1C[C@H]2CC[C@@H]3CC[C@H]1C[C@H]23",
    "F[C@@H]1[C@@H]2C[C@H]3C[C@@H](C2)C[C@@H]1C3",
    "CN1[C@@H]2CC[C@H]1C[C@H](O)C2",
    "CC1(C)S[C@@H]2[C@H](NC(=O)Cc3ccccc3)C(=O)N2[C@H]1C(=O)O",  # penicillin G
)


def texts(smiles, count=12, **changes):
    result = embed(Candidate(1, smiles, 0), recipe(count, **changes))
    assert result.drop is None
    return [one.isomer_smiles for one in result.conformers]


def test_each_conformer_has_the_smiles_of_its_own_stereo():
    perceived = set(texts(OPEN))
    assert len(perceived) > 2
    for text in perceived:
        graph = Chem.MolFromSmiles(text)
        stated = Chem.StereoSpecified.Specified
        assert all(one.specified == stated for one in Chem.FindPotentialStereo(graph))
        Chem.RemoveStereochemistry(graph)
        assert Chem.CanonSmiles(Chem.MolToSmiles(graph)) == Chem.CanonSmiles(OPEN)


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("CC=CC", {"C/C=C/C", "C/C=C\\C"}),
        ("CCC(C)=N", {"[H]/N=C(/C)CC", "[H]/N=C(\\C)CC"}),
        ("CCS(C)=O", {"CC[S@](C)=O", "CC[S@@](C)=O"}),
        ("C[C@H](F)C(Cl)Br", {"C[C@H](F)[C@H](Cl)Br", "C[C@H](F)[C@@H](Cl)Br"}),
        ("OC1CCC(O)CC1", {"O[C@H]1CC[C@H](O)CC1", "O[C@H]1CC[C@@H](O)CC1"}),
        ("CC=C=CC", {"CC=C=CC"}),  # RDKit has no axial stereo
        ("CN(CC)CCC", {"CN(CC)CCC"}),
        ("[H][H]", {"[H][H]"}),
    ],
)
def test_what_rdkit_perceives(smiles, expected):
    assert set(texts(smiles, 16)) == expected


@pytest.mark.parametrize("smiles", POSSIBLE)
def test_stereo_that_is_stated_is_that_of_the_positions(smiles):
    """These are refused by nobody, and embedded in a few tries."""
    smiles = Chem.CanonSmiles(smiles)
    assert texts(smiles, 2, relax="mmff") == [smiles] * 2


def test_the_positions_count_and_not_what_was_asked_for():
    smiles = "C[C@H](F)Cl"
    (one,) = embed(Candidate(1, smiles, 0), recipe(1)).conformers
    graph = Chem.AddHs(Chem.MolFromSmiles(smiles))  # its order is that of the rows
    assert isomer_of(graph, one.positions, smiles) == smiles
    assert isomer_of(graph, -one.positions, smiles) == "C[C@@H](F)Cl"


def test_one_stereoisomer_is_that_of_the_first_conformer():
    for smiles in (OPEN, "CC=CC", "C[C@H](F)C(Cl)Br", "C1=CCCCCCC1"):
        (first, *_), one = texts(smiles), texts(smiles, one_stereoisomer=True)
        assert set(one) == {first}
        assert len(one) == 12
    again = texts(OPEN, 70, one_stereoisomer=True)  # two chunks
    assert set(again) == {texts(OPEN, 1)[0]}


def test_one_stereoisomer_changes_nothing_where_all_stereo_is_stated():
    for smiles in ("CCO", "C[C@H](F)Cl"):
        plain, one = (
            embed(Candidate(1, smiles, 0), recipe(3, one_stereoisomer=choice)).conformers
            for choice in (False, True)
        )
        for ours, theirs in zip(plain, one, strict=True):
            np.testing.assert_array_equal(ours.positions, theirs.positions)


@pytest.mark.parametrize("smiles", IMPOSSIBLE)
def test_impossible_stereo_is_dropped_soon_and_named(smiles):
    start = time.process_time()
    with pytest.raises(ImpossibleStereo, match="impossible stereo: atoms"):
        embed(Candidate(1, smiles, 0), recipe(4, timeout=600.0))
    assert time.process_time() - start < 15  # two or three; all conformers would take twenty


def test_a_molecule_is_not_refused_when_the_time_runs_out(monkeypatch):
    graph = Chem.AddHs(Chem.MolFromSmiles(IMPOSSIBLE[1]))

    class Struck(isomers.Clock):
        def embed(self, *arguments, **more):
            super().embed(*arguments, **more)
            self.has_struck = True

    isomers.refuse_impossible(graph, 1, Struck(60.0))
    with pytest.raises(isomers.ImpossibleStereo):
        isomers.refuse_impossible(graph, 1, isomers.Clock(60.0))

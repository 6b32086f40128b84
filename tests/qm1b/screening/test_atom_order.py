"""Every atom of a row is traced to an atom of the input, however that was written."""

import numpy as np
import pytest
from fake_engine import Solver
from fake_runs import recipe
from rdkit import Chem

from pyscf_ipu.molecule.smiles import heavy_first
from qm1b.conformers.embed import embed
from qm1b.inputs import Record
from qm1b.screening.limits import Limits
from qm1b.screening.screen import Screen


def candidate(record):
    return Screen(Limits(Solver(basis="sto-3g").n_ao, 200, keep_charged=True))(record)


def as_written(smiles):
    parameters = Chem.SmilesParserParams()
    parameters.sanitize = False
    parameters.removeHs = False
    return Chem.MolFromSmiles(smiles, parameters)


def row_graph(smiles):
    """The graph of a canonical SMILES with its atoms in the order of rows."""
    graph = Chem.AddHs(Chem.MolFromSmiles(smiles))
    numbers = np.array([atom.GetAtomicNum() for atom in graph.GetAtoms()])
    return Chem.RenumberAtoms(graph, heavy_first(numbers).tolist())


def bonds(graph):
    return {frozenset((b.GetBeginAtomIdx(), b.GetEndAtomIdx())) for b in graph.GetBonds()}


@pytest.mark.parametrize(
    "smiles",
    [
        "OC(=O)C(N)Cc1ccccc1",
        "[H]OC([H])C",
        "[H]C([H])([H])O[H]",
        "[2H]OC([H])([H])[C@H](F)Cl",
        r"[H]/N=C\C",
        "[CH3:2][NH2:1]",
        "[H][N+]([H])([H])[H]",
        "[H][H]",
        "O",
        "FC(=O)c1[nH]cc(C#N)c1 |$;;;;;;;;;$|",
    ],
)
def test_bonds_of_a_row_are_those_between_the_same_atoms_of_the_input(smiles):
    given = as_written(smiles)
    if given.GetNumHeavyAtoms() > 1:
        again = {candidate(Record(1, s)).smiles for s in Chem.MolToRandomSmilesVect(given, 5)}
        assert len(again) == 1  # the canonical SMILES does not depend on the order
    found = candidate(Record(1, smiles))
    graph = row_graph(found.smiles)
    places = found.atoms.of_rows(Chem.AddHs(Chem.MolFromSmiles(found.smiles)))
    assert len(places) == graph.GetNumAtoms()
    there = [place for place in places if place >= 0]
    assert sorted(there) == list(range(given.GetNumAtoms()))  # each atom of the input once
    for atom, place in zip(graph.GetAtoms(), places, strict=True):
        if place >= 0:
            assert atom.GetAtomicNum() == given.GetAtomWithIdx(place).GetAtomicNum()
        else:
            assert atom.GetAtomicNum() == 1
    mapped = {frozenset(places[i] for i in bond) for bond in map(tuple, bonds(graph))}
    assert {bond for bond in mapped if -1 not in bond} == bonds(given)


def test_rows_of_any_writing_have_the_same_positions_and_other_places():
    plain, other = (
        embed(candidate(Record(1, smiles)), recipe(1)).conformers[0] for smiles in ("CCO", "OCC")
    )
    np.testing.assert_array_equal(plain.positions, other.positions)
    assert plain.input_atom == (0, 1, 2, *[-1] * 6)
    assert other.input_atom == (2, 1, 0, *[-1] * 6)


def test_a_geometry_gives_heavy_atoms_first_with_their_places():
    block = "4\nname=x\nH 0 0 0\nC 0 0 1.06\nN 0 0 2.2\nH 9 9 9"
    water = "3\nid=w\nH 0 0.76 -0.47\nO 0 0 0.1\nH 0 -0.76 -0.47"
    found = embed(candidate(Record(1, block=water, format="xyz", id="w")), recipe(1))
    (conformer,) = found.conformers
    assert conformer.numbers.tolist() == [8, 1, 1]
    assert conformer.input_atom == (1, 0, 2)
    assert conformer.id == "w"
    dropped = candidate(Record(2, block=block, format="xyz", id="x"))
    assert (dropped.reason, dropped.id) == ("odd_electrons", "x")

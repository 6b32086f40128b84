"""Which multiplicities a record is computed in, and which spins are refused."""

import pytest
from fake_engine import Solver
from fake_runs import settings
from rdkit import Chem
from rdkit.Chem import rdDistGeom

from qm1b import inputs
from qm1b.conformers.embed import embed
from qm1b.screening.limits import Limits
from qm1b.screening.screen import Screen
from qm1b.settings import EVERY, LOWEST, RunSettings


def screened(path, **changes):
    run = settings(**{"open_shells": True, "keep_charged": True, "conformers": 1} | changes)
    assert isinstance(run, RunSettings)
    screen = Screen(Limits.of(run, Solver(basis="sto-3g").n_ao))
    return [screen(record) for record in inputs.read(path, run)]


def of_text(tmp_path, name, text, **changes):
    path = tmp_path / name
    path.write_text(text)
    return screened(path, **changes)


@pytest.mark.parametrize(
    ("smiles", "lowest", "every"),
    [
        ("C", (1,), (1,)),
        ("[CH3]", (2,), (2,)),
        ("[CH2]", (3,), (3, 1)),
        ("[N]", (4,), (4, 2)),
        ("[C]", (3,), (3, 1)),
        ("[Be]", (1,), (1,)),
        ("[CH]", (4,), (4, 2)),
        ("[O][O]", (3,), (3, 1)),
        ("[CH2]C[CH2]", (3,), (3, 1)),
        ("[NH3+]", (2,), (2,)),
        ("[NH4+]", (1,), (1,)),
        ("O=O", (1,), (1,)),
        ("[Fe]", (1,), (1,)),
    ],
)
def test_a_smiles_has_hund_s_rule_and_below(smiles, lowest, every, tmp_path):
    for choice, multiplicities in ((LOWEST, lowest), (EVERY, every)):
        (one,) = of_text(tmp_path, "a.smi", smiles + "\n", multiplicities=choice)
        assert one.multiplicities == multiplicities


@pytest.mark.parametrize(
    ("comment", "multiplicities"),
    [
        ("", (2,)),
        ("0 2", (2,)),
        ("0 4", (4, 2)),
        ("multiplicity=4", (4, 2)),
        ("uhf=1", (2,)),
        ("spin=4 smiles=[OH]", (4, 2)),
        ("smiles=[OH]", (2,)),
        ("charge=-1", (1,)),
        ("charge=-1 multiplicity=3", (3, 1)),
    ],
)
def test_a_frame_says_it_or_parity_does(comment, multiplicities, tmp_path):
    text = f"2\n{comment}\nO 0 0 0\nH 0 0 0.97\n"
    (one,) = of_text(tmp_path, "a.xyz", text, multiplicities=EVERY)
    assert one.multiplicities == multiplicities


@pytest.mark.parametrize("comment", ["multiplicity=3", "multiplicity=12", "charge=1 mult=2"])
def test_a_spin_that_the_electrons_do_not_allow_is_refused(comment, tmp_path):
    (drop,) = of_text(tmp_path, "a.xyz", f"2\n{comment}\nO 0 0 0\nH 0 0 0.97\n")
    assert drop.reason == "odd_electrons"
    assert "multiplicity" in drop.detail


def block(smiles):
    graph = Chem.AddHs(Chem.MolFromSmiles(smiles))
    rdDistGeom.EmbedMolecule(graph, randomSeed=1)
    return Chem.MolToMolBlock(graph)


def test_an_entry_says_it_or_its_atoms_do(tmp_path):
    stated = block("[CH2]") + "> <multiplicity>\n1\n\n"
    text = "$$$$\n".join([block("[CH3]"), block("[CH2]"), stated, ""])
    found = of_text(tmp_path, "a.sdf", text)
    assert [one.multiplicities for one in found] == [(2,), (3,), (1,)]
    assert [one.first for one in found] == [0, 0, 1]


def test_without_the_flag_they_are_dropped_with_its_name(tmp_path):
    for text in ("[CH3]\n", "[O][O]\n"):
        (drop,) = of_text(tmp_path, "a.smi", text, open_shells=False)
        assert (drop.reason, "--open-shells" in drop.detail) == ("radical", True)
    (drop,) = of_text(tmp_path, "a.xyz", "2\n\nO 0 0 0\nH 0 0 1\n", open_shells=False)
    assert (drop.reason, "--open-shells" in drop.detail) == ("odd_electrons", True)


def test_a_geometry_of_another_spin_is_no_duplicate(tmp_path):
    atoms = "C 0 0 0\nH 0 0.9 0.6\nH 0 -0.9 0.6\n"
    text = "".join(f"3\n{comment}\n{atoms}" for comment in ("0 1", "0 3", "0 3"))
    singlet, triplet, again = of_text(tmp_path, "a.xyz", text)
    assert [singlet.multiplicities, triplet.multiplicities] == [(1,), (3,)]
    assert [singlet.first, triplet.first, again.reason] == [0, 1, "duplicate"]


def test_every_conformer_has_every_multiplicity(tmp_path):
    (one,) = of_text(tmp_path, "a.smi", "C[C]C\n", multiplicities=EVERY)
    rows = embed(one, settings(conformers=3, embed_timeout=0.0)).conformers
    assert [(row.conformer, row.multiplicity) for row in rows] == [
        *((i, 3) for i in range(3)),
        *((i, 1) for i in range(3, 6)),
    ]
    assert all(row.open_shell for row in rows)
    for triplet, singlet in zip(rows[:3], rows[3:], strict=True):
        assert triplet.positions.tobytes() == singlet.positions.tobytes()
    assert Chem.MolFromSmiles(rows[0].smiles) is not None


def test_no_geometry_is_computed_twice_in_a_multiplicity(tmp_path):
    atoms = "O 0 0 0\nO 0 0 1.2\n"
    text = "".join(f"2\n{comment}\n{atoms}" for comment in ("0 3", "0 1", "0 5"))
    first, again, higher = of_text(tmp_path, "a.xyz", text, multiplicities=EVERY)
    assert (first.multiplicities, again.reason) == ((3, 1), "duplicate")
    assert (higher.multiplicities, higher.first) == ((5,), 2)

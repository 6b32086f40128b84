"""A reason for every SMILES that is left out."""

import csv
from pathlib import Path

import pytest
from fake_engine import Solver
from fake_runs import settings

from pyscf_ipu.base.errors import InvalidMolecule
from qm1b import inputs
from qm1b.inputs import Record
from qm1b.rows.schema import DROP_REASONS, Drop
from qm1b.screening.limits import Limits
from qm1b.screening.screen import Candidate, Screen

DATA = Path(__file__).parents[2] / "data" / "pathological_smiles.csv"
BUNDLED = Path(__file__).parents[3] / "qm1b" / "data" / "gdb11_sample.smi"


def screen(**changes):
    solver = Solver(basis="sto-3g")
    return Screen(Limits(**({"n_ao": solver.n_ao, "max_aos": 128} | changes)))


def reason(smiles, **changes):
    found = screen(**changes)(Record(1, smiles))
    return found.reason if isinstance(found, Drop) else ""


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("", "empty"),
        ("C" * 10_000, "too_long"),
        ("C" * 1_500, "too_large"),
        ("C(C", "unparsable"),
        ("C(C)(C)(C)(C)C", "unparsable"),
        ("c1cccc1", "unparsable"),
        ("C\ufffd", "unparsable"),
        ("C\0C", "unparsable"),
        ("*C", "unsupported_element"),
        ("C[U]", "unsupported_element"),
        ("C[Ra]C", "unsupported_element"),
        ("[Na+].[Cl-]", "multi_fragment"),
        ("[CH3]", "radical"),
        ("C |^1:0|", "radical"),
        ("[NH4+]", "charged"),
        ("C[N+](=O)[O-]", ""),
        ("[He]", ""),
        ("ClCCl", ""),
        ("CCBr", ""),
    ],
)
def test_reasons(smiles, expected):
    assert reason(smiles) == expected
    assert expected in DROP_REASONS or not expected


def test_closed_shell_ions_on_request():
    found = screen(keep_charged=True)(Record(1, "[NH4+]"))
    assert (found.line, found.smiles, found.charge) == (1, "[NH4+]", 1)
    assert reason("[NH4+]") == reason("[O-9]", keep_charged=True) == "charged"
    assert reason("[NH3+]", keep_charged=True) == "radical"


def test_hydrogens_count_for_the_size():
    assert reason("CCCC", max_aos=30) == ""
    assert reason("CCCC", max_aos=29) == "too_large"


def test_duplicates_see_through_writing_isotopes_and_map_numbers():
    check = screen()
    assert check(Record(1, "OCC")).smiles == "CCO"
    for number, smiles in enumerate(("CCO", "C(O)C", "[2H]OCC", "[CH3:1]CO", "[H]OCC"), start=2):
        found = check(Record(number, smiles))
        assert (found.reason, found.line) == ("duplicate", number)
        assert "line 1" in found.detail


def test_stereo_that_only_a_label_made_is_none():
    for labelled, plain in (
        (r"[2H]/C([H])=C/C", "C=CC"),
        (r"[H]/C=C\[H]", "C=C"),
        ("[2H][C@H](O)C", "CCO"),
    ):
        check = screen()
        assert isinstance(check(Record(1, plain)), Candidate)
        assert check(Record(2, labelled)).reason == "duplicate"
    check = screen()
    assert [check(Record(n, s)).smiles for n, s in enumerate((r"[H]/N=C/C", r"[H]/N=C\C"))] == [
        r"[H]/N=C/C",
        r"[H]/N=C\C",
    ]


def test_stereo_and_isomers_are_different_molecules():
    check = screen()
    for number, smiles in enumerate((r"F/C=C/F", r"F/C=C\F", "FC=CF", "C[C@H](F)O", "C[C@@H](F)O")):
        assert isinstance(check(Record(number, smiles)), Candidate)


def test_double_bonds_that_an_extension_states():
    """Of CXSMILES, `c:` and `t:` say what `/` and `\\` say elsewhere: two molecules."""
    checked = screen()
    cis, trans = (checked(Record(1, f"FC=CF |{side}:1|")) for side in "ct")
    assert isinstance(cis, Candidate)
    assert isinstance(trans, Candidate)
    assert (cis.smiles, trans.smiles) == ("F/C=C\\F", "F/C=C/F")


def test_rdkits_own_pathological_smiles():
    with open(DATA, newline="") as stream:
        rows = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    assert len(rows) > 50
    for row in rows:
        expected = row["reason"].replace("embed_failed", "")
        assert reason(row["smiles"]) == expected, row


def test_the_bundled_sample_is_clean():
    check = screen()
    found = [check(line) for line in inputs.read(BUNDLED, settings())]
    assert len(found) == 300
    assert all(isinstance(each, Candidate) for each in found)


def test_the_elements_that_molecules_may_have():
    def n_ao(numbers):
        if 3 in numbers:
            raise InvalidMolecule("the basis lacks lithium")
        return Solver(basis="sto-3g").n_ao(numbers)

    assert Limits(n_ao, 128).elements() == [1, 2, *range(4, 87)]
    assert Limits(n_ao, 5).elements() == [1, 2, *range(4, 11)]

"""Reading SMILES files, and a reason for every molecule that is left out."""

import csv
import gzip
from pathlib import Path

import pytest
from fake_engine import Solver

from qm1b.errors import UserError
from qm1b.schema import DROP_REASONS, Drop
from qm1b.smiles import MAX_CHARACTERS, Candidate, Line, Screen, read, summarise

DATA = Path(__file__).parents[1] / "data" / "pathological_smiles.csv"
BUNDLED = Path(__file__).parents[2] / "qm1b" / "data" / "gdb11_sample.smi"


def screen(**changes):
    solver = Solver(basis="sto-3g")
    return Screen(**({"n_ao": solver.n_ao, "max_aos": 128} | changes))


def reason(smiles, **changes):
    found = screen(**changes)(Line(1, smiles))
    return found.reason if isinstance(found, Drop) else ""


def test_reads_gdb_columns_crlf_blank_lines_and_bad_bytes(tmp_path):
    raw = b"\xef\xbb\xbfCC(C)(C)C\t1\t1\r\n\r\n  CO name\nC\xff\nC |^1:0| x\nN"
    plain, packed = tmp_path / "a.smi", tmp_path / "a.smi.gz"
    plain.write_bytes(raw)
    packed.write_bytes(gzip.compress(raw))
    expected = ["CC(C)(C)C", "", "CO", "C\ufffd", "C |^1:0|", "N"]
    for path in (plain, packed):
        assert [line.smiles for line in read(path)] == expected
        assert [line.number for line in read(path, limit=2)] == [1, 2]
        assert summarise(path).n_lines == 6
    assert summarise(plain).sha256 == summarise(packed).sha256


def test_endless_lines_are_cut(tmp_path):
    path = tmp_path / "long.smi"
    path.write_bytes(b"C" * 500_000 + b"\nO\n")
    first, second = read(path)
    assert MAX_CHARACTERS < len(first.smiles) < 2 * MAX_CHARACTERS
    assert second == (2, "O")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "does not exist"),
        (b"", "is empty"),
        (gzip.compress(b"C\n" * 99)[:-9], "cannot be read"),
    ],
    ids=["missing", "empty", "damaged"],
)
def test_unusable_files_are_one_sentence(tmp_path, content, words):
    path = tmp_path / "input.smi"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=words):
        summarise(path)
    with pytest.raises(UserError, match="is a folder"):
        summarise(tmp_path)


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
        ("CCBr", "unsupported_element"),
        ("[Na+].[Cl-]", "multi_fragment"),
        ("[CH3]", "radical"),
        ("C |^1:0|", "radical"),
        ("[NH4+]", "charged"),
        ("C[N+](=O)[O-]", ""),
        ("[He]", ""),
        ("ClCCl", ""),
    ],
)
def test_reasons(smiles, expected):
    assert reason(smiles) == expected
    assert expected in DROP_REASONS or not expected


def test_closed_shell_ions_on_request():
    found = screen(keep_charged=True)(Line(1, "[NH4+]"))
    assert found == Candidate(1, "[NH4+]", 1)


def test_hydrogens_count_for_the_size():
    assert reason("CCCC", max_aos=30) == ""
    assert reason("CCCC", max_aos=29) == "too_large"


def test_duplicates_see_through_writing_isotopes_and_map_numbers():
    check = screen()
    assert check(Line(1, "OCC")) == Candidate(1, "CCO", 0)
    for number, smiles in enumerate(("CCO", "C(O)C", "[2H]OCC", "[CH3:1]CO", "[H]OCC"), start=2):
        found = check(Line(number, smiles))
        assert (found.reason, found.line) == ("duplicate", number)
        assert "line 1" in found.detail


def test_stereo_and_isomers_are_different_molecules():
    check = screen()
    for number, smiles in enumerate((r"F/C=C/F", r"F/C=C\F", "FC=CF", "C[C@H](F)O", "C[C@@H](F)O")):
        assert isinstance(check(Line(number, smiles)), Candidate)


def test_rdkits_own_pathological_smiles():
    with open(DATA, newline="") as stream:
        rows = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    assert len(rows) > 50
    for row in rows:
        expected = row["reason"].replace("embed_failed", "")
        assert reason(row["smiles"]) == expected, row


def test_the_bundled_sample_is_clean():
    check = screen()
    found = [check(line) for line in read(BUNDLED)]
    assert len(found) == 300
    assert all(isinstance(each, Candidate) for each in found)

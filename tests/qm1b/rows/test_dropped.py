"""Dropped lines as CSV: there and back, and nothing that a spreadsheet would run."""

import csv
import io

import pytest

from qm1b.errors import UserError
from qm1b.rows import dropped
from qm1b.rows.schema import Drop

TEXTS = [
    *("", "C", "'C", "C=O", "=1+1", "'=1+1", "''=1+1", "'", "''", "+41", "-", "-C", "@SUM(A1)"),
    *("\tx", "\rx", "\nx", '=HYPERLINK("http://x","y")', "\uff1d1", "a,b", 'a"b', "two\nlines"),
    *("[Na+].[Cl-]", "C#N", "=", "é"),
]


def test_every_text_comes_back(tmp_path):
    drops = [Drop(i, text, text, text, text) for i, text in enumerate(TEXTS, start=1)]
    path = tmp_path / "a.csv"
    path.write_bytes(dropped.as_csv(drops))
    assert list(dropped.read(path)) == drops


def test_no_cell_begins_a_formula():
    drops = [Drop(i, text, text, text, text) for i, text in enumerate(TEXTS, start=1)]
    rows = csv.reader(io.StringIO(dropped.as_csv(drops).decode(), newline=""))
    next(rows)
    for row, text in zip(rows, TEXTS, strict=True):
        for cell in row[1:]:
            assert cell[:1] not in (*dropped.FORMULA,)
            assert cell == text or (cell[0] == "'" and cell[1:] == text)
    assert dropped.guarded("C=O") == "C=O"


def test_files_of_earlier_versions_are_read_as_they_are(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("line,smiles,reason,detail\r\n3,=1+1,unparsable,'quoted'\r\n")
    assert list(dropped.read(path)) == [Drop(3, "=1+1", "unparsable", "'quoted'")]


@pytest.mark.parametrize("line", ["3,C", "x,C,a,b", "-3,C,a,b", "0,C,a,b", "3,C,a,b,c", '3,"C,a,b'])
def test_a_damaged_line_is_one_sentence(tmp_path, line):
    path = tmp_path / "a.csv"
    path.write_text(f"line,smiles,reason,detail\r\n{line}\r\n")
    with pytest.raises(UserError, match=r"a\.csv cannot be read"):
        list(dropped.read(path))

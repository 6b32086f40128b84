"""Files that people have: formats, packing, encodings, and records numbered through all of it."""

import bz2
import gzip
import io
import lzma
import tarfile

import pytest
from fake_runs import settings

from pyscf_ipu.molecule.files.opening import MAX_LINE
from qm1b import inputs
from qm1b.commands.generate import Generate, run_settings
from qm1b.errors import UserError
from qm1b.inputs.records import MAX_CHARACTERS


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def smiles(path, **changes):
    chosen = settings(**changes)
    found = list(inputs.read(path, chosen))
    assert inputs.summarise(path, chosen).n_lines == len(found)
    assert [record.number for record in found] == list(range(1, len(found) + 1))
    return [record.smiles for record in found]


def archive(path, members, mode="w:gz"):
    with tarfile.open(path, mode) as file:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return path


def test_smiles_with_gdb_columns_crlf_blank_lines_and_bad_bytes(tmp_path):
    raw = b"\xef\xbb\xbfCC(C)(C)C\t1\t1\r\n\r\n  CO name\nC\xff\nC |^1:0| x\nN"
    expected = ["CC(C)(C)C", "", "CO", "C\ufffd", "C |^1:0|", "N"]
    hashes = set()
    for name, pack in (
        ("a", bytes),
        ("b", gzip.compress),
        ("c", bz2.compress),
        ("d", lzma.compress),
    ):
        path = written(tmp_path, f"{name}.smi", pack(raw))
        assert smiles(path) == expected
        assert [r.number for r in inputs.read(path, settings(), limit=2)] == [1, 2]
        hashes.add(inputs.summarise(path, settings()).sha256)
    assert len(hashes) == 1


def test_a_line_without_end_costs_its_own_record_only(tmp_path):
    much = b"C" * 500_000
    texts = {
        "smiles": much + b"\nO\n",
        "id_smiles": b"1\tC\n2\tCC\n" + much + b"\tC\n3\tO\n",
        "table": b"name,smiles\n1," + much + b"\n2,O\n",
        "sdf": much + b"\n$$$$\nO\n$$$$\n",
        "xyz": b"1\n" + much + b"\nHe 0 0 0\n1\nsecond\nHe 0 0 0\n",
    }
    for name, text in texts.items():
        path = written(tmp_path, f"long.{name}", text)
        found = list(inputs.read(path, settings(input_format=name)))
        assert [record.reason for record in found[-2:]] == ["too_long", ""], name
        assert len(found[-2].smiles) <= MAX_CHARACTERS + 1


@pytest.mark.parametrize(
    "text",
    [
        "remark,smiles\n" + "x" * (MAX_LINE - 10) + ",CCCCCCCCCCCCCCCCC\n",
        "1\tC\n2\tC\n" + "x" * (MAX_LINE - 10) + "\tCCCCCCCCCCCCCCCCC\n",
        "C |^1:" + "0," * MAX_LINE + "0|\n",
    ],
    ids=["table", "id_smiles", "extension"],
)
def test_no_molecule_is_read_from_the_beginning_of_its_line(tmp_path, text):
    *_, last = inputs.read(written(tmp_path, "a.txt", text.encode()), settings())
    assert last.reason == "too_long"


def test_names_in_archives_that_would_fill_the_memory_are_refused(tmp_path):
    info = tarfile.TarInfo("a.smi")
    info.size, info.pax_headers = 2, {"comment": "x" * (1 << 24)}
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as file:
        file.addfile(info, io.BytesIO(b"C\n"))
    with pytest.raises(UserError, match=r"a\.tar\.gz cannot be read \(a header of 16777\d+ bytes"):
        list(inputs.read(path, settings()))


def test_archives_in_their_order_without_what_is_no_molecules(tmp_path):
    members = [
        ("gdb/README", b"not SMILES"),
        ("gdb/size02.smi", b"CC\t1\nCO\t2"),
        ("gdb/._size01.smi", b"\0\5"),
        ("gdb/size01.smi.gz", gzip.compress(b"C\n")),
    ]
    for name, mode in (("a.tgz", "w:gz"), ("b.tar", "w"), ("c.tar.xz", "w:xz")):
        path = archive(tmp_path / name, members, mode)
        assert smiles(path) == ["CC", "CO", "C"]
        assert inputs.summarise(path, settings()).skipped == ("gdb/README", "gdb/._size01.smi")


def test_archives_of_nothing_of_mixed_formats_and_cut_short(tmp_path):
    nothing = archive(tmp_path / "a.tgz", [("README", b"C")])
    mixed = archive(tmp_path / "b.tgz", [("a.smi", b"C\n"), ("b.csv", b"id,smiles\n1,C\n")])
    cut = written(tmp_path, "c.tgz", mixed.read_bytes()[:-9])
    for path, words in ((nothing, "no file"), (mixed, "several formats"), (cut, "cannot be read")):
        with pytest.raises(UserError, match=words):
            inputs.summarise(path, settings())
        with pytest.raises(UserError, match=words):
            run_settings(Generate(source=path))
    assert inputs.resolve(mixed, "smiles") == "smiles"


@pytest.mark.parametrize(
    "text",
    [
        "id,SMILES\n1,CC\n2,CO\n",
        "id\tCanonical SMILES\tname\n1\tCC\ta b\n2\tCO\n",
        'id;smiles\n"1;2";CC\n"two\nlines";"CO"\n',
        "#smiles,id\nCC,1\nCO,2\n",
        "smiles zinc_id\nCC 1\nCO 2\n",
        "smiles\nCC\nCO\n",
    ],
    ids=["csv", "tsv", "semicolon", "comment", "zinc", "single"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_tables_whose_column_is_found_by_name(tmp_path, text, encoding):
    crlf = text.replace("\n", "\r\n")
    assert smiles(written(tmp_path, "x", crlf.encode(encoding))) == ["CC", "CO"]


def test_tables_whose_column_is_said(tmp_path):
    path = written(tmp_path, "x.csv", "CanonicalSMILES,IsomericSMILES,x\nCC,CO,CN\n")
    assert smiles(path, smiles_column="IsomericSMILES") == ["CO"]
    assert smiles(path, smiles_column="X") == ["CN"]
    bare = written(tmp_path, "y.csv", "1,CC\n2,CO\n")
    assert smiles(bare, smiles_column="2") == ["CC", "CO"]
    for wrong, column, words in (
        (
            path,
            None,
            "several columns of SMILES; choose with .*: CanonicalSMILES, Iso",
        ),
        (path, "y", "no column 'y';.*CanonicalSMILES"),
        (bare, None, "no column of the table is called smiles"),
    ):
        with pytest.raises(UserError, match=words):
            inputs.summarise(wrong, settings(smiles_column=column))


def test_a_quote_that_never_ends_costs_its_own_row_only(tmp_path):
    path = written(tmp_path, "x.csv", 'smiles,x\n"C,1\nCC,2\n\nCO\n' + 60 * "N\n" + '"O\nF')
    found = list(inputs.read(path, settings()))
    assert [r.smiles for r in found] == ["", "CC", "", "CO", *["N"] * 60, "", "F"]
    assert [r.number for r in found if r.reason == "unparsable"] == [1, 65]


def test_what_is_not_read_is_one_sentence(tmp_path):
    for name, content, words in (
        ("a.smi", None, "does not exist"),
        ("b.smi", b"", "is empty"),
        ("c.smi", gzip.compress(b"C\n" * 99)[:-9], "cannot be read"),
        ("d.xlsx", b"PK\x03\x04rest", "Excel workbook; save it as CSV"),
    ):
        path = tmp_path / name if content is None else written(tmp_path, name, content)
        with pytest.raises(UserError, match=words):
            inputs.summarise(path, settings())
    with pytest.raises(UserError, match="is a folder"):
        inputs.summarise(tmp_path, settings())
    with pytest.raises(UserError, match="use one of auto, smiles"):
        inputs.summarise(tmp_path, settings(input_format="mol2"))


def test_formats_by_content_whatever_the_name(tmp_path):
    water = "3\n\nO 0 0 0\nH 0 0 0.96\nH 0 0.93 -0.24\n"
    sdf = "\n  x\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n    0.0 0.0 0.0 C\nM  END\n$$$$\n"
    for content, expected in (
        (water, "xyz"),
        (sdf, "sdf"),
        ("smiles,a\n", "table"),
        ("C", "smiles"),
    ):
        path = written(tmp_path, "input.txt", content)
        assert inputs.resolve(path) == expected
    assert inputs.resolve(written(tmp_path, "a.sdf", "nothing of the kind")) == "sdf"
    assert inputs.resolve(path, "xyz") == "xyz"


def test_xyz_frames_that_are_none_are_one_record_each(tmp_path):
    text = "1\na\nHe 0 0 0\n\n3\nb\nH 0 0 0\n1\nc\nHe 0 0 0\nno\nframe\n99999\nd\nHe 0 0 0\n"
    found = list(inputs.read(written(tmp_path, "a.xyz", text), settings()))
    assert [r.reason for r in found] == ["", "unparsable", "", "unparsable", "unparsable"]
    assert "1 of 3 atoms" in found[1].detail
    assert "ends after 1 of 99999" in found[4].detail


@pytest.mark.parametrize(
    ("changed", "given"),
    [("C\n" * 11 + "N\n" + "C\n" * 9, 8), ("C\n" * 19, 16), ("C\n" * 20 + "CC", 20), ("", 0)],
    ids=["edited", "cut", "last", "emptied"],
)
def test_an_input_that_has_changed_is_noticed_before_its_unit_ends(tmp_path, changed, given):
    path = written(tmp_path, "a.smi", "C\n" * 21)
    chosen = settings(conformers=1)  # units of eight
    summary = inputs.summarise(path, chosen)
    assert len(list(inputs.read(path, chosen, 21, summary))) == 21
    assert len(list(inputs.read(path, chosen, 16, summary))) == 16
    written(tmp_path, "a.smi", changed)
    found = []
    with pytest.raises(UserError, match="has changed since"):
        found.extend(inputs.read(path, chosen, 21, summary))
    assert given <= len(found) < min(given + 8, 21)  # never the end of a changed unit


def test_a_limit_ends_a_unit_too(tmp_path):
    path = written(tmp_path, "a.smi", "C\n" * 21)
    chosen = settings(conformers=1, limit=10)
    summary = inputs.summarise(path, chosen)
    assert len(list(inputs.read(path, chosen, 10, summary))) == 10
    written(tmp_path, "a.smi", "C\n" * 9 + "N\n" * 12)
    with pytest.raises(UserError, match="has changed since"):
        list(inputs.read(path, chosen, 10, summary))


def test_a_number_for_a_table_with_a_header_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("name,SMILES\nm1,CCO\n")
    with pytest.raises(UserError, match="has a header: give --smiles-column SMILES"):
        [*inputs.read(path, settings(input_format="table", smiles_column="2"))]

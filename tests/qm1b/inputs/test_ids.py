"""Ids: where each format keeps the name of a record, and what becomes of strange ones."""

import pytest
from fake_runs import settings

from qm1b import inputs
from qm1b.commands.generate import Generate, run_settings
from qm1b.errors import UserError
from qm1b.inputs.ids import MAX_ID_CHARACTERS, id_of


def ids(folder, name, text, **changes):
    path = folder / name
    path.write_text(text)
    chosen = settings(**changes)
    inputs.summarise(path, chosen)
    return [record.id for record in inputs.read(path, chosen)]


def test_what_follows_a_smiles_up_to_the_next_tab(tmp_path):
    text = "CC\t17\t2\nCO ethyl alcohol\nC |^1:0| x\n  N\n\nCl\t\t5\nF  \tfluoride \tx\n"
    expected = ["17", "ethyl alcohol", "x", "", "", "", "fluoride"]
    assert ids(tmp_path, "a.smi", text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("smiles,id\nC,a\nCC\n,b\n", ["a", "", "b"]),
        ("name,Compound ID,smiles\nx,7,C\n", ["7"]),
        ("smiles zinc_id\nC ZINC1\n", ["ZINC1"]),
        ("smiles;Molecule ChEMBL ID\nC;CHEMBL1\n", ["CHEMBL1"]),
        ('smiles,name\nC,"two\nlines"\n"C\n', ["two lines", ""]),
        ("smiles,gap\nC,1\n", [""]),
    ],
    ids=["id", "id-before-name", "zinc", "chembl", "quoted", "none"],
)
def test_a_column_of_a_table_by_its_name(tmp_path, text, expected):
    assert ids(tmp_path, "a.csv", text) == expected


def test_the_column_that_was_asked_for(tmp_path):
    text = "id,smiles,Catalog No\n1,C,x-1\n"
    for asked in ("Catalog No", "catalog_no", "3"):
        assert ids(tmp_path, "a.csv", text, id_column=asked) == ["x-1"]
    bare = {"smiles_column": "2", "input_format": "table"}
    assert ids(tmp_path, "b.csv", "x-1,C\n", id_column="1", **bare) == ["x-1"]
    assert ids(tmp_path, "b.csv", "x-1,C\n", **bare) == [""]
    with pytest.raises(UserError, match="no column 'key'; --id-column may be: id, smiles"):
        ids(tmp_path, "a.csv", text, id_column="key")
    with pytest.raises(UserError, match="give a number for both"):
        ids(tmp_path, "b.csv", "x-1,C\n", id_column="id", **bare)


def entry(title, *fields):
    data = "".join(f">  <{name}>\n{value}\n\n" for name, value in fields)
    atoms = "  1  0  0  0  0  0  0  0  0  0999 V2000\n    0.0 0.0 0.0 C\nM  END\n"
    return f"{title}\n  x\n\n{atoms}{data}$$$$\n"


def test_the_title_of_an_sdf_entry_or_a_data_field(tmp_path):
    text = entry(" aspirin ", ("ID", "7")) + entry("", ("mass", "1"), ("Mol_ID", "8")) + entry("")
    assert ids(tmp_path, "a.sdf", text) == ["aspirin", "8", ""]
    assert ids(tmp_path, "a.sdf", text, id_column="ID") == ["7", "", ""]
    with pytest.raises(UserError, match=r"no record of .* has anything in 'key'; give --id-column"):
        ids(tmp_path, "a.sdf", text, id_column="key")


def test_a_key_of_the_comment_of_a_frame(tmp_path):
    frames = [
        "Properties=species:S:1:pos:R:3 ID=a-1 name=b",
        'name="He 2"',
        r'id="_JSON \"12\""',
        "He",
    ]
    text = "".join(f"1\n{comment}\nHe 0 0 0\n" for comment in frames)
    assert ids(tmp_path, "a.xyz", text) == ["a-1", "He 2", "12", ""]
    assert ids(tmp_path, "a.xyz", text, id_column="name") == ["b", "He 2", "", ""]


def test_an_id_is_one_printable_line_of_bounded_length():
    assert id_of("a\x1b[31m\u202eb\0\ud800\n") == "a [31m b"
    assert id_of("\u00e9 \u4e59\u9187") == "\u00e9 \u4e59\u9187"
    assert id_of("x" * 999) == "x" * MAX_ID_CHARACTERS


def test_a_changed_id_is_a_changed_input(tmp_path):
    path = tmp_path / "a.smi"
    path.write_text("C a\n")
    summary = inputs.summarise(path, settings())
    path.write_text("C b\n")
    with pytest.raises(UserError, match="has changed since"):
        list(inputs.read(path, settings(), 1, summary))


def test_runs_without_the_option_are_those_of_earlier_versions(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("smiles,key\nC,x\n")
    plain, chosen = (run_settings(Generate(source=path, id_column=k)) for k in (None, "key"))
    assert "id_column" not in plain.to_dict()
    assert plain.fingerprint != chosen.fingerprint
    lines = tmp_path / "a.smi"
    lines.write_text("C x\n")
    with pytest.raises(UserError, match="on a line of SMILES, the id is what follows"):
        run_settings(Generate(source=lines, id_column="key"))

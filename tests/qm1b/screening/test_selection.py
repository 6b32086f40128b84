"""Selection of molecules by size: counted as RDKit counts, ties in the order of the input."""

import io
import tarfile
import tracemalloc

import pytest
from rdkit import Chem

from qm1b.cli import main
from qm1b.commands.generate import SAMPLE
from qm1b.errors import UserError
from qm1b.inputs import Record, read
from qm1b.screening import selection
from qm1b.screening.selection import BUFFER, MOST_HYDROGENS, Criteria, select
from qm1b.settings import PRESETS, RunSettings

SMILES = "CCCC\ta\nCC#N\nC1CC1\nc1cc[nH]c1 b\nC[C\nC=CC=C\nOCC\n[2H]C([2H])=O\nC#CC\n"


def chosen(tmp_path, **criteria):
    path = tmp_path / "in.smi"
    path.write_text(SMILES)
    out = io.BytesIO()
    found = select([path], Criteria(**criteria), out.write)
    return out.getvalue().decode().splitlines(), found


def test_hydrogens_are_those_of_rdkits_molecule():
    every = Criteria((1, 99))
    lines = [record.smiles for record in read(SAMPLE, RunSettings(PRESETS["qm1b"], 1))]
    for smiles in [*lines, "c1ccc2[nH]ccc2c1", "[2H]C([2H])=O", "C[N+](=O)[O-]", "[nH]1ccnc1"]:
        whole = Chem.AddHs(Chem.MolFromSmiles(smiles))
        expected = sum(atom.GetAtomicNum() == 1 for atom in whole.GetAtoms())
        assert every.hydrogens(smiles) == expected, smiles
    assert all(every.hydrogens(text) > MOST_HYDROGENS for text in ("", "C[C", "C(C)(C)(C)(C)C"))


def test_limits(tmp_path):
    lines, found = chosen(tmp_path, heavy=(3, 4), max_hydrogens=6)
    assert lines == ["CC#N", "C1CC1", "C=CC=C", "OCC", "C#CC"]
    assert (found.read, found.unreadable, found.fitting) == (9, 1, {3: 1, 4: 1, 6: 3})


def test_the_fewest_hydrogens_and_of_equals_the_first(tmp_path):
    lines, found = chosen(tmp_path, heavy=(3, 4), molecules=4, fewest_hydrogens=True)
    assert lines == ["CC#N", "C1CC1", "C=CC=C", "C#CC"]
    assert found.taken == {3: 1, 4: 1, 6: 2}


def test_without_it_the_first(tmp_path):
    lines, _ = chosen(tmp_path, heavy=(3, 5), molecules=3)
    assert lines == ["CCCC\ta", "CC#N", "C1CC1"]


def test_too_few_is_said(tmp_path):
    with pytest.raises(UserError, match="only 5 of 9 records fit"):
        chosen(tmp_path, heavy=(3, 4), max_hydrogens=6, molecules=6)
    with pytest.raises(UserError, match="none of 9 records has 9 to 11 heavy atoms"):
        chosen(tmp_path, heavy=(9, 11))


def test_the_command_reads_archives_one_after_another(tmp_path, capsys):
    first, second = tmp_path / "a.tgz", tmp_path / "b.smi"
    with tarfile.open(first, "w:gz") as archive:
        for name, text in (("x_size1.smi", "C\nCC#N\n"), ("x_size2.smi", "C1CC1\n")):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    second.write_text("C#CC\n")
    out = tmp_path / "out.smi"
    command = ["select", str(first), str(second), "--heavy", "3", "--out", str(out)]
    assert main([*command, "--molecules", "2e0", "--fewest-hydrogens"]) == 0
    assert out.read_text() == "CC#N\nC#CC\n"
    assert "3: 1 of 1, 4: 1 of 1, 6: 0 of 1" in capsys.readouterr().out


@pytest.mark.slow
def test_memory_does_not_grow_with_the_archive(tmp_path):
    def peak(lines):
        path = tmp_path / f"{lines}.tgz"
        text = b"".join(b"%s\t%d\n" % ((b"CCO", b"CC#N", b"CCC")[n % 3], n) for n in range(lines))
        with tarfile.open(path, "w:gz") as archive:
            member = tarfile.TarInfo("gdb11/gdb11_size03.smi")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
        del text
        taken = []
        tracemalloc.start()
        criteria = Criteria((3, 3), molecules=lines // 2, fewest_hydrogens=True)
        found = select([path], criteria, lambda line: taken.append(line) if len(taken) < 2 else 0)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert (found.read, found.taken[3]) == (lines, (lines + 1) // 3)
        assert taken == [b"CCO\t0\n", b"CC#N\t1\n"]
        return most

    peak(300)  # imports, and buffers that stay
    assert peak(12_000) < peak(3_000) + 200_000


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--heavy", "11-9"], "give a number as 9, or a range as 9-11"),
        (["--molecules", "1.5"], "whole number"),
        (["--fewest-hydrogens"], "needs --molecules"),
        (["--max-hydrogens", "-1"], "0 to 253"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, capsys, flags, words):
    out = tmp_path / "out.smi"
    assert main(["select", str(SAMPLE), "--out", str(out), *flags]) == 2
    assert words in capsys.readouterr().err
    assert not out.exists()


def test_a_folder_that_does_not_exist_is_said_before_anything_is_read(tmp_path, capsys):
    out = tmp_path / "none" / "out.smi"
    assert main(["select", "no-such-file.smi", "--out", str(out)]) == 2
    assert f"there is no folder {out.parent}; make it first" in capsys.readouterr().err


@pytest.mark.parametrize("records", [1, 2 * BUFFER])
def test_a_full_folder_for_temporary_files_is_named(tmp_path, monkeypatch, capsys, records):
    """And not the folder of the result; a long input is noticed before its end."""
    monkeypatch.setattr(selection.tempfile, "tempdir", "/scratch")
    monkeypatch.setattr(selection.tempfile, "TemporaryFile", lambda **_: full())
    read = []

    def full():
        return io.BufferedRandom(io.FileIO("/dev/full", "r+"), BUFFER)

    def some(*_):
        for _ in range(records):
            read.append(None)
            yield Record(1, "C")

    monkeypatch.setattr(selection, "_records", some)
    monkeypatch.setattr(Criteria, "hydrogens", lambda *_: 4)
    (tmp_path / "in.smi").write_text("C\n")
    out = tmp_path / "out.smi"
    assert main(["select", str(tmp_path / "in.smi"), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "/scratch has no room for a byte per record (No space left on device)" in said
    assert "TMPDIR=FOLDER qm1b select" in said
    assert [path.name for path in tmp_path.iterdir()] == ["in.smi"]
    assert len(read) == 1 or len(read) < records

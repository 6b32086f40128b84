"""QM1B's layout: ten columns, whole molecules for validation, conformers spread over the parts."""

import errno
import os

import pandas as pd
import pyarrow.parquet as pq
import pytest
from fake_runs import fake_run

import qm1b
from qm1b.cli import main
from qm1b.convert import parts as of_parts
from qm1b.convert.parts import VALIDATION, export_parts
from qm1b.errors import UserError
from qm1b.storage.unfinished import MARK

QM1B = "smile atoms z energy homo lumo N std y pos".split()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    text = "\n".join("C" * n + "O" * m for n in range(1, 9) for m in range(4))
    return fake_run(tmp_path_factory.mktemp("run"), text, conformers=5)[0]


def test_every_converged_row_is_in_one_file(run, tmp_path):
    out = tmp_path / "out"
    done = export_parts(run, out, 3, valid_rows=40, seed=1)
    tables = {path.name: pd.read_parquet(path) for path in sorted(out.iterdir())}
    assert [*tables] == [*(f"part_{n:03d}.parquet" for n in range(3)), VALIDATION]
    assert all(pq.read_schema(out / name).names == QM1B for name in tables)
    valid = tables.pop(VALIDATION)
    train = pd.concat(tables.values())
    good = [row for row in qm1b.load(run) if row["converged"]]
    assert sorted([*train["energy"], *valid["energy"]]) == sorted(
        energy for path in out.iterdir() for energy in pd.read_parquet(path)["energy"]
    )
    assert len(train) + len(valid) == len(good) == done.train_rows + done.valid_rows
    assert len(valid) == done.valid_rows
    assert not set(train["smile"]) & set(valid["smile"])
    assert 5 <= len(valid) <= 80
    # Conformers of one molecule lie in several parts, so that parts are alike.
    homes = {s: {n for n, t in tables.items() if s in set(t["smile"])} for s in train["smile"]}
    assert sum(len(found) > 1 for found in homes.values()) > len(homes) / 2
    assert min(len(table) for table in tables.values()) > 0


def test_the_files_are_read_again(run, tmp_path):
    export_parts(run, tmp_path / "out", 2)
    rows = list(qm1b.load(tmp_path / "out" / "part_001.parquet"))
    known = {(row["smiles"], round(row["energy"], 6)) for row in qm1b.load(run)}
    assert rows
    assert all((row["smiles"], round(row["energy"], 6)) in known for row in rows)


def test_wrong_numbers_and_folders(run, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    for parts, valid, out, words in (
        (0, 0, "a", "1 to 1000"),
        (2, 10**6, "a", "give fewer"),
        (2, 0, "full", "not an empty folder"),
    ):
        with pytest.raises(UserError, match=words):
            export_parts(run, tmp_path / out, parts, valid)


def test_a_side_without_rows_is_said(tmp_path, capsys):
    few, _ = fake_run(tmp_path, "O\nC\nCC\n", conformers=4)
    for asked, which in ((11, "training"), (1, "validation")):
        out = tmp_path / which
        assert main(["export", str(few), str(out), "--parts", "1", "--valid-rows", str(asked)]) == 0
        said = capsys.readouterr()
        assert "0 rows in " in said.out
        assert f"warning: no row is for {which}: a molecule is on one side" in said.err
    assert main(["export", str(few), str(tmp_path / "all"), "--parts", "1"]) == 0
    assert not capsys.readouterr().err


def test_the_command(run, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main(["export", str(run), out, "--parts", "2", "--valid-rows", "2e1"]) == 0
    assert "in 2 parts" in capsys.readouterr().out
    assert main(["export", str(run), str(tmp_path / "x.parquet"), "--valid-rows", "3"]) == 2
    assert "--valid-rows is for --parts" in capsys.readouterr().err
    assert main(["export", str(run), out, "--parts", "2", "--all"]) == 2
    assert "leave --all" in capsys.readouterr().err


def test_what_a_killed_export_left_is_removed_and_other_files_are_not(run, tmp_path):
    (tmp_path / ".notes.tmp").write_text("mine")
    with pytest.raises(UserError, match="not an empty folder"):
        export_parts(run, tmp_path, 2)
    for name in (".part_000.parquet.tmp", f".{VALIDATION}.1.tmp", "part_007.parquet", MARK):
        (tmp_path / name).write_bytes(b"of an export in more parts")
    export_parts(run, tmp_path, 1)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {".notes.tmp", "part_000.parquet", VALIDATION}


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (OSError(errno.EIO, os.strerror(errno.EIO)), UserError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
    ids=["disk", "Ctrl-C"],
)
def test_an_export_that_ends_halfway_is_marked_and_begun_again(
    run, tmp_path, monkeypatch, error, raised
):
    publish = of_parts.publish

    def full(stream, path):
        if path.name == VALIDATION:
            raise error
        publish(stream, path)

    monkeypatch.setattr(of_parts, "publish", full)
    with pytest.raises(raised, match=r"cannot write .*validation.*: Input/out|^$"):
        export_parts(run, tmp_path, 2)
    assert (tmp_path / MARK).exists()
    monkeypatch.undo()
    export_parts(run, tmp_path, 1)
    assert {path.name for path in tmp_path.iterdir()} == {"part_000.parquet", VALIDATION}

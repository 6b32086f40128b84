"""Splits: by molecule, by nothing but seed and SMILES, and in the parts asked for."""

import json
from dataclasses import replace
from typing import get_args

import ase.db
import ase.io
import h5py
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml
from fake_runs import frames

import qm1b
from qm1b.cli import main
from qm1b.commands.convert import SplitFormat
from qm1b.convert.kinds import KINDS
from qm1b.convert.split import FILES, NAMES, Fractions, side, split
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.report.card.write import SPLITS
from qm1b.report.info import first_rows
from qm1b.report.stats import collect


def test_the_parts_are_as_large_as_asked_for():
    fractions = Fractions(0.5, 0.3, 0.2)
    sides = [side("C" * n, 0, fractions) for n in range(1, 2001)]
    for name in NAMES:
        expected = getattr(fractions, name)
        # Four standard deviations of a binomial distribution.
        assert abs(sides.count(name) / 2000 - expected) < 4 * (expected * 0.5 / 2000) ** 0.5
    other = [side("C" * n, 1, fractions) for n in range(1, 2001)]
    same = sum(a == b for a, b in zip(sides, other, strict=True)) / 2000
    assert same == pytest.approx(0.5**2 + 0.3**2 + 0.2**2, abs=0.05)


def test_the_side_of_a_molecule_never_changes():
    assert [side(s, 0, Fractions()) for s in ("CCO", "N#N", "C", "O", "CC", "CO")] == [
        *("valid", "train", "train", "train", "valid", "train")
    ]


def test_parts_of_size_zero_are_empty():
    names = {side("C" * n, 0, Fractions(0.7, 0.3, 0.0)) for n in range(1, 500)}
    assert names == {"train", "valid"}


def test_all_conformers_lie_on_one_side(finished, tmp_path):
    fractions = Fractions(0.4, 0.3, 0.3)
    parts = split(finished[0], tmp_path / "s", fractions, seed=3)
    report = json.loads((tmp_path / "s" / "split.json").read_text())
    assert report["seed"] == 3
    seen = {}
    for name, part in parts.items():
        table = pd.read_parquet(tmp_path / "s" / part.file)
        assert (len(table), table["smile"].nunique()) == (part.rows, part.molecules)
        assert report["parts"][name]["rows"] == part.rows
        for smiles in table["smile"]:
            assert seen.setdefault(smiles, name) == name == side(smiles, 3, fractions)
    converged = [row["smiles"] for row in qm1b.load(finished[0]) if row["converged"]]
    assert sum(part.rows for part in parts.values()) == len(converged)
    assert set(seen) == set(converged)


def test_frames_without_smiles_are_divided_by_what_their_bonds_are(tmp_path, capsys):
    out = frames(tmp_path)
    rows = list(qm1b.load(out))
    assert {row["smiles"] for row in rows} == {""}
    molecules = {row["seed"] for row in rows}
    assert len(rows) == 24
    assert len(molecules) == 12
    parts = split(out, tmp_path / "s", Fractions(0.4, 0.3, 0.3))
    assert len(shards.shards(out)) > 1
    assert all(part.molecules for part in parts.values())
    assert sum(part.molecules for part in parts.values()) == len(molecules)
    assert sum(part.rows for part in parts.values()) == len(rows)
    sides = [set(pd.read_parquet(tmp_path / "s" / part.file)["seed"]) for part in parts.values()]
    assert sum(map(len, sides)) == len(set.union(*sides))
    assert collect(out).molecules == len(molecules)  # though none stands beside its like
    assert main(["info", str(out)]) == 0
    assert "molecules    12\n" in capsys.readouterr().out


def test_a_run_counts_molecules_and_not_frames(tmp_path):
    counts = shards.read_manifest(frames(tmp_path, unit_rows=100)).counts
    assert (counts.lines, counts.rows, counts.molecules) == (24, 24, 12)


def test_the_command(finished, tmp_path, capsys):
    out = str(tmp_path / "s")
    both = ["--out", out, "--train", "0.5", "--valid", "0.5", "--test", "0"]
    assert main(["split", str(finished[0]), *both, "--format", "extxyz.gz"]) == 0
    assert sorted(p.name for p in (tmp_path / "s").iterdir()) == [
        *("split.json", "train.extxyz.gz", "valid.extxyz.gz")
    ]
    assert "rows of" in capsys.readouterr().out
    assert main(["split", str(finished[0]), "--out", out, "--train", "0.5"]) == 2
    assert "add up to 1" in capsys.readouterr().err
    with pytest.raises(UserError, match="not negative"):
        Fractions(1.1, -0.1, 0.0).check()


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_nothing_of_an_earlier_split_stays(finished, tmp_path):
    out = tmp_path / "s"
    split(finished[0], out, Fractions(0.4, 0.3, 0.3))
    (out / "test.extxyz").write_text("of somebody else")
    (out / "notes.parquet").write_text("likewise")
    split(finished[0], out, Fractions(0.5, 0.5, 0.0))
    others = ["notes.parquet", "split.json", "test.extxyz"]
    assert files(out) == sorted([*others, "train.parquet", "valid.parquet"])
    split(finished[0], out, Fractions(1.0, 0.0, 0.0), form="extxyz.gz")
    assert files(out) == sorted([*others, "train.extxyz.gz"])


@pytest.mark.parametrize(
    "text", ["", "[]", '{"parts": [1]}', '{"parts": {"test": {"file": "../kept.parquet"}}}']
)
def test_a_split_json_that_is_not_ours_removes_nothing(finished, tmp_path, text):
    (tmp_path / "kept.parquet").touch()
    out = tmp_path / "s"
    out.mkdir()
    (out / "split.json").write_text(text)
    (out / "test.parquet").touch()
    split(finished[0], out, Fractions(0.5, 0.5, 0.0))
    assert (tmp_path / "kept.parquet").exists()
    assert (out / "test.parquet").exists()


def test_a_split_that_fails_halfway_mixes_nothing(finished, tmp_path, monkeypatch):
    split(finished[0], tmp_path, Fractions(0.4, 0.3, 0.3), seed=0)
    write = KINDS["parquet"].write

    def full(path, *more):
        if path.name == "valid.parquet":
            raise UserError("no room")
        write(path, *more)

    monkeypatch.setitem(KINDS, "parquet", replace(KINDS["parquet"], write=full))
    with pytest.raises(UserError, match="no room"):
        split(finished[0], tmp_path, Fractions(0.4, 0.3, 0.3), seed=1)
    assert files(tmp_path) == ["train.parquet"]
    monkeypatch.undo()
    split(finished[0], tmp_path, Fractions(0.4, 0.3, 0.3), seed=1)
    monkeypatch.setitem(KINDS, "parquet", replace(KINDS["parquet"], write=full))
    with pytest.raises(UserError, match="no room"):
        split(finished[0], tmp_path, Fractions(0.4, 0.3, 0.3), seed=1)
    assert files(tmp_path) == ["split.json", "test.parquet", "train.parquet", "valid.parquet"]


def test_a_split_that_is_refused_removes_nothing(finished, tmp_path):
    split(finished[0], tmp_path, Fractions())
    with pytest.raises(UserError, match="unknown format 'csv' for a split: use one of parquet, "):
        split(finished[0], tmp_path, Fractions(1.0, 0.0, 0.0), form="csv")
    assert files(tmp_path) == ["split.json", "test.parquet", "train.parquet", "valid.parquet"]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_parts_that_are_no_numbers_are_refused(finished, tmp_path, capsys, value):
    folder, out = str(finished[0]), str(tmp_path / "s")
    assert main(["split", folder, "--out", out, f"--train={value}"]) == 2
    assert "add up to 1" in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


def test_head(finished, capsys):
    assert main(["head", str(finished[0]), "-n", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert "gap [eV]" in lines[0]
    assert "13.6057" in lines[1]
    assert main(["head", str(finished[0]), "-n", "0"]) == 2
    assert "error" in first_rows(finished[0], 20)


def lines_in(path, form):
    """The line numbers of the rows in a part, read without this package's readers."""
    if form == "parquet":
        return pd.read_parquet(path)["line"].tolist()
    if form.startswith("extxyz"):
        frames = ase.io.read(path, ":", format="extxyz")
        return [f.info["line"] for f in frames if f.info["config_type"] != "IsolatedAtom"]
    if form == "schnetpack":
        with ase.db.connect(path, use_lock_file=False) as database:
            return [row.line for row in database.select()]
    if form == "aselmdb":
        natoms = np.load(path.with_name("metadata.npz"))["natoms"]
        with ase.db.connect(path, readonly=True, use_lock_file=False) as database:
            rows = [database._get_row(number) for number in database.ids]
        assert [row.natoms for row in rows] == natoms.tolist()
        return [row.data["line"] for row in rows]
    with h5py.File(path) as file:
        molecules = file["molecules"] if form == "ace" else file
        conformers = {"ace": "positions", "spice": "conformations"}[form]
        return [int(line) for line in molecules for _ in molecules[line][conformers]]


@pytest.mark.parametrize("form", [form for form in FILES if form != "hub"])
def test_the_parts_of_every_format_are_disjoint_and_complete(with_forces, tmp_path, form):
    out, fractions = tmp_path / "s", Fractions(0.4, 0.3, 0.3)
    parts = split(with_forces, out, fractions, seed=3, form=form)
    found = {name: lines_in(out / part.file, form) for name, part in parts.items()}
    assert {name: len(lines) for name, lines in found.items()} == {
        name: part.rows for name, part in parts.items()
    }
    assert all(found.values())
    expected = {name: [] for name in NAMES}
    for row in qm1b.load(with_forces):
        if row["converged"]:
            expected[side(row["smiles"], 3, fractions)].append(row["line"])
    assert found == expected
    # Another split into the same folder leaves no row on two sides.
    again = split(with_forces, out, Fractions(0.5, 0.5, 0.0), seed=3, form=form)
    assert not (out / FILES[form].format("test")).exists()
    assert sum(len(lines_in(out / part.file, form)) for part in again.values()) == 10


def test_a_hub_has_the_three_splits(with_forces, tmp_path, blank_pictures):
    out = tmp_path / "hub"
    parts = split(with_forces, out, Fractions(0.4, 0.3, 0.3), seed=3, form="hub")
    (default, _) = yaml.safe_load((out / "README.md").read_text().split("---\n")[1])["configs"]
    seen = []
    for entry, (name, part) in zip(default["data_files"], parts.items(), strict=True):
        assert entry["split"] == SPLITS[name]
        rows = [row for path in out.glob(entry["path"]) for row in pq.read_table(path).to_pylist()]
        assert len(rows) == part.rows > 0
        assert {side(row["smile"], 3, Fractions(0.4, 0.3, 0.3)) for row in rows} == {name}
        seen += rows
    assert len(seen) == 10


def test_only_the_training_set_has_free_atoms(with_forces, tmp_path):
    """MACE takes its E0s from the training file, and frames elsewhere for rows."""
    parts = split(with_forces, tmp_path, Fractions(0.4, 0.3, 0.3), seed=3, form="extxyz")
    atoms = {
        name: sum(f.info["config_type"] == "IsolatedAtom" for f in ase.io.read(path, ":"))
        for name, path in ((name, tmp_path / part.file) for name, part in parts.items())
    }
    assert atoms == {"train": 5, "valid": 0, "test": 0}


def test_the_command_splits_into_every_format_of_export():
    assert get_args(SplitFormat) == tuple(FILES)
    assert set(FILES) == {*KINDS, "extxyz.gz"}

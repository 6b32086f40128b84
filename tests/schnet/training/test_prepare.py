"""What is said before a training of data that do not go together."""

from dataclasses import replace

import pytest
from fake_runs import fake_run
from packs import QM9

from qm1b.convert.export import export
from qm1b.settings import PRESETS
from schnet.commands.train import from_command_line
from schnet.sources import open_source
from schnet.training.prepare import prepare

AUTO = replace(PRESETS["qm1b"], jk="auto")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs with `jk`: one of fitted rows, and one of both kinds with a row that failed."""
    found = {}
    for name, text in (("fitted", "CCO\nCCC\nCCN\n"), ("both", "O\nCCO\n[Ne]\n")):
        folder = tmp_path_factory.mktemp(name)
        found[name] = fake_run(folder, text, level=AUTO)[0]
    return found


def doubts(*data, **more):
    words = [word for path in data for word in ("--data", str(path))]
    words += [word for side, path in more.items() for word in (f"--{side}-data", str(path))]
    split = ["--split", "1,0,0"] if not more else ["--split", "1,0,1"]
    settings = from_command_line([*words, "--out", "x", "--target", "gap", *split]).settings()
    return [doubt for doubt in prepare(settings).doubts if "density fitting" in doubt]


@pytest.mark.slow
def test_fitted_and_exact_rows_together_are_said(runs):
    assert doubts(runs["fitted"]) == doubts(QM9) == []
    (doubt,) = doubts(runs["both"])
    assert "2 rows of the data have density fitting" in doubt
    assert "2 rows have not" in doubt
    assert "--jk exact" in doubt
    assert len(doubts(runs["fitted"], valid=QM9)) == 1


def test_free_atoms_of_the_manifest_decide_what_rows_leave_open(tmp_path):
    """F and S only in FCS: with the free atoms of a run or its export, without those of extxyz."""
    text = "CC\nC\nCCC\nC=C\nC#C\nO\nCO\nFCS\n"
    folder = fake_run(tmp_path, text)[0]
    for name in ("a.parquet", "a.extxyz"):
        export(folder, tmp_path / name)
    prepared = {}
    for path in (folder, tmp_path / "a.parquet", tmp_path / "a.extxyz"):
        words = ["--data", str(path), "--out", "x", "--target", "energy", "--split", "1,0,0"]
        prepared[path.suffix] = prepare(from_command_line(words).settings())
    ours, parquet, xyz = (prepared[end] for end in ("", ".parquet", ".extxyz"))
    free = open_source(folder, "energy").free_atoms
    values = dict(zip(ours.references.elements, ours.references.values, strict=True))
    assert values[9] - values[16] == pytest.approx(free["F"] - free["S"], abs=1e-6)
    assert parquet.references.values == pytest.approx(ours.references.values, abs=1e-6)
    assert ours.references.from_free_atoms
    assert not xyz.references.from_free_atoms
    assert "references of F, S (*): free atoms are used" in ours.doubts[0]
    assert "other compositions get no prediction" in xyz.doubts[0]
    both = open_source([folder, tmp_path / "a.extxyz"], "energy")
    assert both.free_atoms == {}


@pytest.mark.parametrize("name", ["a.parquet", "a.extxyz"])
def test_every_kind_of_file_says_which_rows_are_fitted(runs, tmp_path, name):
    for run, expected in (("fitted", {True: 6}), ("both", {True: 2, False: 2})):
        path = tmp_path / f"{run}-{name}"
        export(runs[run], path)
        source = open_source(path, "gap")
        list(source.parts())
        list(source.parts())  # reading again counts nothing twice
        assert source.fitted == expected

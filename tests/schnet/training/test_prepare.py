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


@pytest.mark.parametrize("name", ["a.parquet", "a.extxyz"])
def test_every_kind_of_file_says_which_rows_are_fitted(runs, tmp_path, name):
    for run, expected in (("fitted", {True: 6}), ("both", {True: 2, False: 2})):
        path = tmp_path / f"{run}-{name}"
        export(runs[run], path)
        source = open_source(path, "gap")
        list(source.parts())
        list(source.parts())  # reading again counts nothing twice
        assert source.fitted == expected

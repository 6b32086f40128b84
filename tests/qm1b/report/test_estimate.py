"""Time and cost from a measured rate."""

import shutil
from dataclasses import replace

import pytest
from fake_runs import MANY, fake_run

from qm1b.cli import main
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.folder.manifest.tally import Tally
from qm1b.report.estimate import RunRate, as_text, estimate, rate_of
from qm1b.run.generate import Summary
from qm1b.run.progress import Stats
from qm1b.settings import PRESETS

RATE = RunRate(
    rows=1000,
    seconds=110.0,
    program_seconds=10.0,
    new_machine_seconds=40.0,
    programs=9,
    cached=8,
    workers=2,
    bytes_per_row=500.0,
    level=PRESETS["qm1b"],
    mean_atoms=16.0,
)


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """The folder of a run of more than 100 rows."""
    return fake_run(tmp_path_factory.mktemp("long"), MANY, conformers=6)[0]


@pytest.fixture
def out(long, tmp_path):
    """A copy of it, to be edited."""
    return shutil.copytree(long, tmp_path / "run")


def test_hours_and_cost():
    one, four, *_ = estimate(RATE, 3.6e5, price_per_hour=2.0)
    assert one.hours == pytest.approx(10 + 40 / 3600)  # 10 rows/s, and the programs once
    assert one.cost == pytest.approx(2 * one.hours)
    assert four.hours == pytest.approx(2.5 + 40 / 3600)
    assert four.cost == pytest.approx(2 * 4 * four.hours)


def test_no_price_no_cost():
    text = as_text(RATE, 1.09e6, 1000, None)
    assert "1,090,000,000 rows" in text
    assert "545.0 GB" in text
    assert "--price-per-hour" in text
    assert "cost " not in text.split("machines")[1].split("\n")[0]


def test_the_rate_is_that_of_the_run(out):
    rate = rate_of(out)
    assert rate.rows >= 100
    assert rate.seconds > rate.program_seconds > 0
    assert rate.workers == 2
    assert 5 < rate.mean_atoms < 40
    assert rate.bytes_per_row > 100
    assert rate.cached == 0
    assert rate.new_machine_seconds == pytest.approx(rate.program_seconds)


def test_programs_from_the_cache_count_where_there_is_none(out):
    record = shards.read_manifest(out)
    programs = [
        {"shape": name, "seconds": seconds, "cached": cached}
        for name, seconds, cached in [("a", 8.0, False), ("b", 0.5, True), ("c", 0.5, True)]
    ]
    shards.write_manifest(out, replace(record, runs=[record.runs[0] | {"programs": programs}]))
    rate = rate_of(out)
    assert (rate.programs, rate.cached) == (3, 2)
    assert rate.program_seconds == pytest.approx(9 / 2)
    assert rate.new_machine_seconds == pytest.approx(3 * 8 / 2)
    shards.write_manifest(out, replace(record, runs=[record.runs[0] | {"programs": programs[1:]}]))
    assert (
        rate_of(out).new_machine_seconds > 1
    )  # nothing was compiled: what a program usually takes


def test_a_run_on_a_cluster_gives_no_rate_of_a_machine(out):
    record = shards.read_manifest(out)
    assert record.runs[0]["cluster"] is None
    here = rate_of(out)
    there = record.runs[0] | {"workers": None, "cluster": "auto"}
    shards.write_manifest(out, replace(record, runs=[*record.runs, there]))
    assert rate_of(out) == here  # that of the run before it
    for workers in (None, "10.0.0.1:6379"):
        shards.write_manifest(out, replace(record, runs=[there | {"workers": workers}]))
        with pytest.raises(UserError, match=r"on a cluster.*without --cluster"):
            rate_of(out)


def test_too_short_a_run_says_nothing(finished):
    with pytest.raises(UserError, match="at least 100 rows"):
        rate_of(finished[0])


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--molecules", "0"], "--molecules"),
        (["--molecules", "5", "--conformers", "0"], "--conformers"),
        (["--molecules", "5", "--price-per-hour", "-1"], "--price-per-hour"),
        (["--molecules", "5", "--measured", "nowhere"], "nowhere"),
    ],
)
def test_mistakes_are_one_sentence(flags, words, capsys):
    assert main(["plan", *flags]) == 2
    message = capsys.readouterr().err
    assert words in message
    assert message.count("\n") == 1


def ending(monkeypatch, rows, interrupted):
    """The short run ends like this, and writes nothing."""
    summary = Summary(Stats(n_lines=1, conformers=1), Tally(rows=rows), interrupted)
    monkeypatch.setattr("qm1b.run.generate.generate", lambda run: summary)


@pytest.mark.parametrize("rows", [0, 500])
def test_ctrl_c_ends_the_short_run_and_the_command(rows, monkeypatch, capsys):
    ending(monkeypatch, rows, interrupted=True)
    assert main(["plan", "--molecules", "1000"]) == 130
    said = capsys.readouterr()
    assert said.err == "qm1b: interrupted\n"
    assert "machines" not in said.out


def test_another_padding_than_the_measured_one_is_said():
    few, many = (as_text(RATE, n, 1, None) for n in (165.0, 1.09e6))
    assert "grid level 0, float32, fine padding; 16.0 atoms" in few
    sentence = "This dataset will have coarse padding: more time for a row than measured, and fewer"
    assert sentence in few
    assert "This dataset" not in many
    assert "fine padding: less time" in as_text(replace(RATE, padding="coarse"), 1.09e6, 1, None)


@pytest.mark.parametrize(
    ("molecules", "conformers", "expected"),
    [("1.09e6", "1000", "fine"), ("165", "1", "coarse"), ("1", "150", "fine")],
)
def test_the_short_run_has_the_padding_of_the_dataset(molecules, conformers, expected, monkeypatch):
    runs = []

    def stopped(run):
        runs.append(run)
        return Summary(Stats(n_lines=1, conformers=1), Tally(rows=0), interrupted=True)

    monkeypatch.setattr("qm1b.run.generate.generate", stopped)
    assert main(["plan", "--molecules", molecules, "--conformers", conformers]) == 130
    assert [run.settings.padding for run in runs] == [expected]


def test_too_few_molecules_to_measure(tmp_path, monkeypatch, capsys):
    ending(monkeypatch, 60, interrupted=False)
    few = tmp_path / "few.smi"
    few.write_text("C\nCC\nO\n")
    assert main(["plan", "--molecules", "1000", "--smiles-file", str(few)]) == 2
    message = capsys.readouterr().err
    assert "60 rows" in message
    assert "100 are needed" in message
    assert "--measured" not in message


def test_geometries_are_no_smiles(tmp_path, capsys):
    path = tmp_path / "a.xyz"
    path.write_text("1\n\nHe 0 0 0\n")
    assert main(["plan", "--molecules", "1000", "--smiles-file", str(path)]) == 2
    message = capsys.readouterr().err
    assert "plan needs SMILES" in message
    assert "--conformers" not in message

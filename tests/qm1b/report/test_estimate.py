"""Time and cost: the price of a dataset, and a measured rate."""

import shutil
from dataclasses import replace

import pytest
from fake_runs import MANY, fake_run
from rdkit import Chem
from rdkit.Chem import rdDistGeom

from pyscf_ipu.shapes.shape import Shape
from qm1b.cli import main
from qm1b.engine.price import Prices
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.report import measure
from qm1b.report.estimate import MachineRate, Need, as_text, estimate, rate_of
from qm1b.report.measure import choice
from qm1b.run.progress.preview import Preview, SampledLine
from qm1b.settings import PRESETS

RATE = MachineRate(rows=1000, seconds=110.0, workers=2, priced=4.0, bytes_per_row=500.0)
NEED = Need(rows=3.6e5, seconds=4 * 36000.0, programs=9, program_seconds=8.0)


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """The folder of a run of more than 100 rows."""
    return fake_run(tmp_path_factory.mktemp("long"), MANY, conformers=6)[0]


@pytest.fixture
def out(long, tmp_path):
    """A copy of it, to be edited."""
    return shutil.copytree(long, tmp_path / "run")


def test_hours_and_cost():
    one, four, *_ = estimate(RATE, NEED, price_per_hour=2.0)
    assert one.compiling == pytest.approx(9 * 8 / 2 / 3600)
    assert one.hours == pytest.approx(10 + one.compiling)
    assert one.cost == pytest.approx(2 * one.hours)
    assert four.hours == pytest.approx(2.5 + one.compiling)
    assert four.cost == pytest.approx(2 * 4 * four.hours)
    made = replace(RATE, program_seconds=16.0)
    assert estimate(made, NEED, None)[0].compiling == pytest.approx(2 * one.compiling)
    single = replace(NEED, programs=1)
    assert estimate(RATE, single, None)[0].compiling == pytest.approx(8 / 3600)


def test_the_text_counts_compiling_and_a_loop_of_pyscf():
    rate = replace(RATE, pyscf=0.5, program_seconds=120.0)
    need = Need(rows=200.0, seconds=720.0, programs=6, program_seconds=8.0)
    text = as_text(rate, need, None)
    assert text.startswith("200 rows: 9 min, 6 min of them compiling; a PySCF loop: 24 min\n")
    assert "6 shapes, 120 s each on a core (measured)" in text
    assert "8 s each on a core (by the table" in as_text(RATE, need, None)
    assert "PySCF" not in as_text(RATE, need, None)
    assert "--price-per-hour" in text
    assert "cost " not in text.split("machines")[1].split("\n")[0]
    assert "180,000.0 MB" in as_text(replace(RATE, bytes_per_row=5e5), NEED, 1.0)


def test_the_rate_is_that_of_the_run(out):
    rate = rate_of(out)
    assert rate.rows >= 100
    assert rate.workers == 2
    assert rate.priced > 0
    assert rate.bytes_per_row > 100
    assert rate.program_seconds > 0
    assert rate.pyscf is None


def test_programs_are_counted_by_shape(out):
    record = shards.read_manifest(out)
    programs = [
        {"shape": name, "seconds": seconds, "cached": cached}
        for name, seconds, cached in [("a", 8.0, False), ("a", 4.0, False), ("b", 0.5, True)]
    ]
    shards.write_manifest(out, replace(record, runs=[record.runs[0] | {"programs": programs}]))
    assert rate_of(out).program_seconds == pytest.approx(12)
    shards.write_manifest(out, replace(record, runs=[record.runs[0] | {"programs": programs[2:]}]))
    assert rate_of(out).program_seconds is None


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


def test_a_run_without_rows_says_nothing(out):
    record = shards.read_manifest(out)
    shards.write_manifest(out, replace(record, runs=[record.runs[0] | {"rows": 0}]))
    with pytest.raises(UserError, match="no run that gave rows"):
        rate_of(out)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--molecules", "0"], "--molecules"),
        (["--conformers", "0"], "--conformers"),
        (["--price-per-hour", "-1"], "--price-per-hour"),
        (["--measured", "nowhere"], "nowhere"),
        (["--json"], "--json is for --ipu"),
        (["--basis", "none-such"], "none-such"),
        (["-"], "give a file"),
        (["none.smi"], "none.smi"),
    ],
)
def test_mistakes_are_one_sentence(flags, words, capsys):
    assert main(["plan", *flags]) == 2
    message = capsys.readouterr().err
    assert words in message
    assert message.count("\n") == 1


def test_what_cannot_be_done_is_said_first(tmp_path, capsys, out):
    path = tmp_path / "a.smi"
    path.write_text(f"C\n[NH4+]\n{'C' * 99}\nC\nxx\n")
    assert main(["plan", str(path), "--measured", str(out)]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("a.smi: 5 lines: 1 to compute, 4 dropped (")
    for reason in ("1 charged", "1 too_large", "1 duplicate", "1 unparsable"):
        assert reason in first
    assert second.startswith("1 of 5 lines will be dropped as too_large")
    path.write_text("[NH4+]\n")
    assert main(["plan", str(path), "--measured", str(out)]) == 2
    assert "no molecule of" in capsys.readouterr().err


def test_every_option_of_the_level_counts(tmp_path, capsys, out):
    path = tmp_path / "a.smi"
    path.write_text("CCO\nCO\n")
    flags = "--xc pbe0 --basis def2-svp --grid-level 2 --jk ri --forces --precision mixed"
    assert main(["plan", str(path), *flags.split(), "--measured", str(out)]) == 0
    text = capsys.readouterr().out
    level = "pbe0/def2-svp, spherical, grid level 2, mixed, density fitting, with forces"
    assert f"4 conformers each, {level}, " in text
    assert "8 rows: " in text


def test_molecules_are_multiplied(tmp_path, capsys, out):
    path = tmp_path / "a.smi"
    path.write_text("CCO\n[NH4+]\n")
    flags = ["--measured", str(out), "--conformers", "1000"]
    assert main(["plan", str(path), "--molecules", "1e6", *flags]) == 0
    text = capsys.readouterr().out
    assert "1,000,000,000 rows: " in text
    assert "fine padding" in text


def with_positions(smiles, seed):
    graph = Chem.AddHs(Chem.MolFromSmiles(smiles))
    rdDistGeom.EmbedMolecule(graph, randomSeed=seed)
    return graph


def lines_of(*seconds):
    """A sample of lines with four rows each; 0 for one that is left out."""
    return Preview(
        len(seconds), [SampledLine(s, 4 if s else 0, Shape((), (int(s // 10),)) if s else None)
                       for s in seconds],
        Prices(PRESETS['qm1b'], forces=False, coarse=False),
    )  # fmt: skip


def test_what_is_measured_stands_for_the_price():
    assert choice(lines_of(400.0, 0.0, 100.0, 9000.0), 2) == [3]
    assert choice(lines_of(0.0, 2.0), 4) == [1]
    assert choice(lines_of(11.0, 12.0, 5.0, 13.0), 2) == [1, 0]
    with pytest.raises(UserError, match="no molecule"):
        choice(lines_of(0.0, 0.0), 2)


@pytest.mark.slow
def test_ten_molecules_are_measured_and_planned(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(measure, "LEAST_SECONDS", 0.5)
    path = tmp_path / "ten.smi"
    path.write_text("C\nN\nO\nF\n[H][H]\n[He]\nCC\nCO\nCN\nC=O\n")
    assert main(["plan", str(path), "--conformers", "2", "--xc", "lda"]) == 0
    text = capsys.readouterr().out
    assert "20 rows: " in text
    assert "a PySCF loop: " in text


@pytest.mark.long
def test_entries_of_a_file_are_measured_by_two_workers(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(measure, "LEAST_SECONDS", 0.5)
    entries = tmp_path / "w.sdf"
    blocks = [Chem.MolToMolBlock(with_positions("CO", seed)) for seed in (1, 2, 3)]
    entries.write_text("".join(f"{block}$$$$\n" for block in blocks))
    assert main(["plan", str(entries), "--workers", "2", "--xc", "lda"]) == 0
    assert "measured: 2 rows in" in capsys.readouterr().out


@pytest.mark.long
def test_frames_are_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(measure, "LEAST_SECONDS", 0.5)
    frames = tmp_path / "w.xyz"
    frames.write_text("".join(Chem.MolToXYZBlock(with_positions("CO", seed)) for seed in (1, 2)))
    assert main(["plan", str(frames), "--xc", "lda"]) == 0
    assert "2 rows: " in capsys.readouterr().out

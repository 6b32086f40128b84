"""`--stability`: which rows are followed, and that this depends on nothing but them."""

import io

import h5py
import numpy as np
import pytest
from fake_runs import MANY, fake_run

from pyscf_ipu.settings import Settings
from qm1b.cli import main
from qm1b.commands.generate import Generate, run_settings
from qm1b.folder import checksum, same, shards
from qm1b.folder.manifest.manifest_schema import SETTINGS
from qm1b.report.info import describe

BORON = MANY + "\nCB(C)C\nCCB(C)C\nCB(O)O\n"


def columns(out, *names):
    parts = [shards.read_shard(path) for path in shards.shards(out)]
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def test_suspects_are_computed_once_more(tmp_path):
    out, summary = fake_run(tmp_path, BORON, stability="suspect")
    rows = columns(out, "smiles", "stable", "followed", "suspect", "lumo")
    boron = np.array(["B" in text for text in rows["smiles"]])
    assert boron.sum() == 6
    assert rows["stable"][boron].tolist() == [1] * 6
    assert rows["followed"][boron].tolist() == [1] * 6
    assert (rows["suspect"] == "").all()
    assert (rows["lumo"][boron] > 0).all()
    assert (rows["stable"][~boron] == -1).all()
    assert not summary.interrupted
    assert summary.stats.rows == summary.tally.rows == len(boron)
    assert sum(summary.stats.statuses.values()) == len(boron)


@pytest.mark.parametrize(("xc", "looked_at"), [("hf", 1), ("hf-d3bj", 1), ("lda", -1)])
def test_so_are_rows_with_a_small_gap(tmp_path, xc, looked_at):
    """Where the SCF makes other guesses: without exact exchange it makes none."""
    level = Settings(xc=xc, grid_level=0)  # of free atoms, too, which PySCF computes
    out, _ = fake_run(tmp_path, "C\nCF\nCCF\n", stability="suspect", level=level)
    rows = columns(out, "smiles", "stable", "suspect")
    fluorine = np.array(["F" in text for text in rows["smiles"]])
    assert fluorine.sum() == 4
    assert rows["stable"][fluorine].tolist() == [looked_at] * 4
    assert (rows["stable"][~fluorine] == -1).all()
    assert (rows["suspect"] == "").all()


def test_a_second_look_that_fails_loses_nothing(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    plain, _ = fake_run(tmp_path / "a", BORON)
    out, summary = fake_run(
        tmp_path / "b", BORON, stability="suspect", factory="fake_engine:NoSecondLook"
    )
    assert not summary.interrupted
    names = ("line", "conformer", "status", "suspect", "energy", "stable", "attempts")
    before, after = columns(plain, *names), columns(out, *names)
    for name in names:
        np.testing.assert_array_equal(before[name], after[name])
    assert sum(summary.stats.statuses.values()) == summary.tally.rows
    assert set(summary.stats.troubles) == {"the search for a lower state ended as error"}


def test_shards_of_an_earlier_version_are_read(tmp_path):
    out, _ = fake_run(tmp_path, "C\nCC\n")
    (path,) = shards.shards(out)
    image = io.BytesIO(path.read_bytes())
    with h5py.File(image, "r+") as file:
        del file["rows/stable"], file["rows/followed"]
    path.write_bytes(checksum.sealed(image.getvalue()))
    rows = shards.read_shard(path)
    assert (rows["stable"] == -1).all()
    assert (rows["followed"] == 0).all()
    assert main(["stats", str(out)]) == 0


@pytest.mark.parametrize(("given", "kept"), [("5E-1", "0.5"), ("0", "none"), ("1.0", "all")])
def test_one_spelling(tmp_path, given, kept):
    source = tmp_path / "one.smi"
    source.write_text("C\n")
    settings = run_settings(Generate(source=source, stability=given))
    assert settings.stability == kept
    assert not [*SETTINGS.problems(settings.to_dict(), "settings")]


def test_none_leaves_them_suspect(tmp_path):
    out, _ = fake_run(tmp_path, BORON)
    rows = columns(out, "stable", "suspect")
    assert (rows["stable"] == -1).all()
    assert (rows["suspect"] == "no_gap").sum() == 6


def test_all(tmp_path):
    out, _ = fake_run(tmp_path, BORON, stability="all")
    rows = columns(out, "stable", "status")
    for status, stable in (("converged", 1), ("not_converged", -1), ("error", -1)):
        chosen = np.array([text.split(":")[0] == status for text in rows["status"]])
        assert chosen.any()
        assert (rows["stable"][chosen] == stable).all()
    assert "stability    of every row\n" in describe(out)


def test_a_share_depends_on_the_row_alone(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    one, _ = fake_run(tmp_path / "a", BORON, stability="0.3", workers=1)
    two, _ = fake_run(tmp_path / "b", BORON, stability="0.3", workers=2, processes=True)
    names = ("line", "conformer", "stable", "followed")
    first, second = columns(one, *names), columns(two, *names)
    assert all((first[name] == second[name]).all() for name in names)
    share = (first["stable"] >= 0).mean()
    assert 0.1 < share < 0.5
    assert "stability    of a share of the rows, 0.3\n" in describe(one)


def test_a_resumed_run_is_the_same(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    whole, _ = fake_run(tmp_path / "a", BORON, stability="suspect")
    other, _ = fake_run(tmp_path / "b", BORON, stability="suspect")
    for path in list(shards.shards(other))[::2]:
        path.unlink()
    fake_run(tmp_path / "b", BORON, stability="suspect")
    assert not same.differences(whole, other)


@pytest.mark.parametrize("value", ["some", "1.5", "-0.1", "nan"])
def test_what_it_cannot_be(tmp_path, value, capsys):
    source = tmp_path / "one.smi"
    source.write_text("C\n")
    code = main(["generate", str(source), "--out", str(tmp_path / "out"), f"--stability={value}"])
    assert code == 2
    assert "--stability is" in capsys.readouterr().err

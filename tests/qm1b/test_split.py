"""Splits: by molecule, by nothing but seed and SMILES, and in the parts asked for."""

import json

import pandas as pd
import pytest

import qm1b
from qm1b.cli import main
from qm1b.errors import UserError
from qm1b.head import first_rows
from qm1b.split import NAMES, Fractions, side, split


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


def test_head(finished, capsys):
    assert main(["head", str(finished[0]), "-n", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert "gap [eV]" in lines[0]
    assert "13.6057" in lines[1]
    assert main(["head", str(finished[0]), "-n", "0"]) == 2
    assert "error" in first_rows(finished[0], 20)

"""Options that are given twice."""

import pytest

from pyscf_ipu.cli import main
from pyscf_ipu.commands.repeated import each_option_once
from qm1b.cli import main as qm1b
from schnet.cli import main as schnet


@pytest.mark.parametrize(
    ("command", "line", "option"),
    [
        (main, "rks water --xc hf --basis sto-3g --xc=lda", "--xc"),
        (main, "rks water --grid-level 1 --grid_level 2", "--grid-level"),
        (qm1b, "generate --xc hf --xc lda", "--xc"),
        (qm1b, "generate --forces --no-forces", "--forces"),
        (schnet, "train --data d/k --out run --data odd.parquet", "--data"),
        (schnet, "price --json --json out.json", "--json"),
    ],
)
def test_an_option_given_twice_is_one_sentence(command, line, option, capsys):
    assert command(line.split()) == 2
    assert f"{option} is given twice: give it once" in capsys.readouterr().err


def test_values_may_be_alike_and_several():
    line = ["train", "--data", "a", "a", "--rattle", "-1", "--seed", "-1", "--", "--"]
    assert each_option_once(line) == line

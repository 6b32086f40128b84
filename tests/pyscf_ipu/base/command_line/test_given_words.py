"""The words of a command line before tyro reads them."""

import pytest

from pyscf_ipu.base.command_line.given_words import prepared
from pyscf_ipu.commands.cli import main
from pyscf_ipu.elements.cartesian import MIXED
from qm1b.cli import main as qm1b
from schnet.cli import main as schnet


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("", ""),
        ("rks water", "rks water"),
        ("rks --cart water", "rks --cart True water"),
        ("rks water --cart", "rks water --cart True"),
        ("rks --cart --xc hf water", "rks --cart True --xc hf water"),
        (f"rks --cart {MIXED} water", f"rks --cart {MIXED} water"),
        ("rks --cart False water", "rks --cart False water"),
        ("rks --no-cart water", "rks --cart False water"),
        ("rks --cart=6d7f water", "rks --cart=6d7f water"),
        ("--json", "--json -"),
        ("--json water", "--json - water"),
        ("water --json a.json", "water --json a.json"),
        ("--json - water", "--json - water"),
        ("--json --forces", "--json - --forces"),
        ("json cart", "json cart"),
        ("generate --no-forces --seed -1", "generate --no-forces --seed -1"),
    ],
)
def test_an_option_that_stands_alone(given, meant):
    assert prepared(given.split()) == meant.split()


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
    assert prepared(line) == line


@pytest.mark.parametrize("option", ["--level.jk", "--level.jk=ri", "--level_of_theory.jk"])
def test_a_name_with_its_group_is_answered_by_the_option(option, capsys):
    assert main(["rks", "water", option, "ri"]) == 2
    assert "so give --jk\n" in capsys.readouterr().err

"""Flags that may have a value."""

import pytest

from pyscf_ipu.commands.flag_values import CART, FLAG, with_values


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("rks --cart water", "rks --cart True water"),
        ("rks water --cart", "rks water --cart True"),
        ("rks --cart --xc hf water", "rks --cart True --xc hf water"),
        ("rks --cart 6d7f water", "rks --cart 6d7f water"),
        ("rks --cart False water", "rks --cart False water"),
        ("rks --no-cart water", "rks --cart False water"),
        ("rks --cart=6d7f water", "rks --cart=6d7f water"),
        ("rks water", "rks water"),
        ("generate --forces water.smi", "generate --forces True water.smi"),
        ("generate --no-forces --cart", "generate --forces False --cart True"),
        ("generate --seed 1 --forces False", "generate --seed 1 --forces False"),
    ],
)
def test_a_flag_that_stands_alone(given, meant):
    assert with_values(given.split(), CART | {"forces": FLAG}) == meant.split()

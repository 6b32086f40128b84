"""--cart: a flag that may have a value."""

import pytest

from pyscf_ipu.commands.cart_option import with_cart


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
    ],
)
def test_a_flag_that_stands_alone(given, meant):
    assert with_cart(given.split()) == meant.split()

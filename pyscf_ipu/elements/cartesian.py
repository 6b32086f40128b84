"""Which functions of a basis set are cartesian."""

from typing import Literal

MIXED: Literal["6d7f"] = "6d7f"
"""Cartesian d and spherical f functions: Gaussian's choice for Pople's basis sets."""

Cart = bool | Literal["6d7f"]
"""Which shells are cartesian: none, all, or with MIXED those up to d."""


def is_cartesian(l: int, cart: Cart) -> bool:
    """Whether the functions of angular momentum l are cartesian."""
    return l <= 2 if cart == MIXED else bool(cart)


def pyscf_cart(cart: Cart) -> bool:
    """The `cart` of the molecule of PySCF that holds the functions; see `mixed`."""
    return cart == MIXED or bool(cart)


def in_words(cart: Cart) -> str:
    """The choice in words: "spherical", "cartesian" or "cartesian d, spherical f"."""
    if cart == MIXED:
        return "cartesian d, spherical f"
    return "cartesian" if cart else "spherical"

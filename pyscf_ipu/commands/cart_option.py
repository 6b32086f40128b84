"""The option --cart: alone it means cartesian functions, before 6d7f only those up to d."""

from collections.abc import Sequence

from pyscf_ipu.elements.cartesian import MIXED

VALUES = ("True", "False", MIXED)


def with_cart(arguments: Sequence[str]) -> list[str]:
    """Arguments in which a --cart that stands alone has the value True, and --no-cart has False.

    What follows --cart is its value if it is one of VALUES, so that one that stands alone may come
    before a positional argument.
    """
    found: list[str] = []
    for word, after in zip(arguments, [*arguments[1:], ""], strict=True):
        if word == "--no-cart":
            found += ["--cart", "False"]
            continue
        found.append(word)
        if word == "--cart" and after not in VALUES:
            found.append("True")
    return found

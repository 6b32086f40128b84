"""Flags that may have a value: --cart alone means cartesian functions, --cart 6d7f others."""

from collections.abc import Mapping, Sequence

from pyscf_ipu.elements.cartesian import MIXED

FLAG = ("True", "False")
CART = {"cart": (*FLAG, MIXED)}
"""The values of --cart."""


def with_values(arguments: Sequence[str], options: Mapping[str, Sequence[str]]) -> list[str]:
    """Arguments in which a flag that stands alone has the value True, and --no-FLAG has False.

    What follows a flag is its value if it is one of those in `options`, so that one that stands
    alone may come before a positional argument.

    Args:
        arguments: of a command.
        options: the values of each flag, by its name without hyphens in front.
    """
    found: list[str] = []
    for word, after in zip(arguments, [*arguments[1:], ""], strict=True):
        flag = word.removeprefix("--").removeprefix("no-")
        if flag in options and word == f"--no-{flag}":
            found += [f"--{flag}", "False"]
            continue
        found.append(word)
        if flag in options and word == f"--{flag}" and after not in options[flag]:
            found.append("True")
    return found

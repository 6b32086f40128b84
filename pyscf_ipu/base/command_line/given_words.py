"""The words of a command line before tyro reads them: options given twice, and without a value."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pyscf_ipu.base.errors import UsageError

ALONE: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"json": ("-", r"-|.*\.json"), "cart": ("True", r"True|False|\dd\df")}
)
"""Options that may stand alone: the value that they have then, and what a value looks like."""


def prepared(words: Sequence[str]) -> list[str]:
    """The words, in which every option of ALONE has a value.

    What follows such an option is its value only if it looks like one, so that an option alone may
    come before a positional argument.  --no-cart is --cart False.

    Raises:
        UsageError: an option is empty, given twice, or with the name of its group.
    """
    _check(words)
    complete: list[str] = []
    for word, after in zip(words, [*words, ""][1:], strict=True):
        name = word.removeprefix("--")
        alone, value = ALONE.get(name.removeprefix("no-"), ("", ""))
        if name == "no-cart":
            complete += ["--cart", "False"]
        elif alone and word == f"--{name}" and not re.fullmatch(value, after):
            complete += [word, alone]
        else:
            complete.append(word)
    return complete


def given_options(words: Sequence[str]) -> tuple[str, ...]:
    """The names of the options among the words, as fields are written."""
    return tuple(name.replace("-", "_") for name in map(_name, words) if name)


def _name(word: str) -> str:
    """The name of an option with hyphens, without --no-; "" for another word."""
    option = word.partition("=")[0].replace("_", "-")
    return option.removeprefix("--").removeprefix("no-") if option.startswith("--") else ""


def _check(words: Sequence[str]) -> None:
    """Refuse an option that is empty or given twice: tyro would take the last one in silence.

    `--grid_level` and `--grid-level` are the same option, and so are `--forces` and `--no-forces`.
    """
    given: set[str] = set()
    for word, after in zip(words, [*words, None][1:], strict=True):
        name = _name(word)
        if not name:
            continue
        if "." in name:
            option, last = word.partition("=")[0].replace("_", "-"), name.rpartition(".")[2]
            raise UsageError(f"{option} is no option: names have no prefix here, so give --{last}")
        if after == "" or word.endswith("="):
            raise UsageError(f"--{name} is empty: give a value, or leave the option out")
        if name in given:
            raise UsageError(
                f"--{name} is given twice: give it once; if it takes several values, put them one "
                "after another behind it"
            )
        given.add(name)

"""An option that is given twice is refused: a command would take the last one in silence."""

from collections.abc import Sequence


def each_option_once(arguments: Sequence[str], mistake: type[Exception] = ValueError) -> list[str]:
    """The arguments of a command, each of whose options is given once.

    `--grid_level` and `--grid-level` are the same option, and so are `--forces` and `--no-forces`.

    Args:
        arguments: as the user gave them.
        mistake: what to raise.

    Raises:
        Exception: `mistake`, if an option is given twice.
    """
    found: set[str] = set()
    for word in arguments:
        option = word.partition("=")[0].replace("_", "-")
        name = option.removeprefix("--").removeprefix("no-")
        if not option.startswith("--") or not name:
            continue
        if name in found:
            raise mistake(
                f"--{name} is given twice: give it once; if it takes several values, put them one "
                "after another behind it"
            )
        found.add(name)
    return list(arguments)

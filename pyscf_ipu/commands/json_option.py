"""The option --json of every command: alone it prints JSON, before a file name it writes there."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

TO_STDOUT = Path("-")
"""The target that means: print it."""

JsonTarget = Annotated[Path | None, arg(metavar="[FILE.json]")]
"""The type of the option; arguments go through `with_json_target` first."""


def with_json_target(arguments: Sequence[str] | None) -> list[str]:
    """Arguments in which a --json that stands alone has the target "-".

    What follows --json is its file if it ends in .json, so that one that stands alone may come
    before a positional argument.

    Args:
        arguments: of a command; None for those of this process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    found: list[str] = []
    for word, after in zip(given, [*given[1:], ""], strict=True):
        found.append(word)
        if word == "--json" and after != str(TO_STDOUT) and not after.endswith(".json"):
            found.append(str(TO_STDOUT))
    return found


def put_json(text: str, target: Path) -> None:
    """Print JSON, or write it to a file.

    Raises:
        OSError: the file cannot be written.
    """
    if target == TO_STDOUT:
        print(text, flush=True)
    else:
        target.write_text(f"{text}\n", encoding="utf-8")

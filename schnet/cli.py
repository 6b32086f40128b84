"""The `schnet` command.

A user's mistake ends in one sentence on stderr and exit code 2, never in a traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import tyro

from qm1b.commands.calling import exit_code

from .commands.evaluate import Evaluate
from .commands.import_pyg import ImportPyg
from .commands.predict import Predict
from .commands.train import Train, with_config

Others = (
    Annotated[Predict, tyro.conf.subcommand("predict", prefix_name=False)]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate", prefix_name=False)]
    | Annotated[ImportPyg, tyro.conf.subcommand("import-pyg", prefix_name=False)]
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return exit_code("schnet", lambda: _run(given))


def _run(given: Sequence[str]) -> int:
    found = with_config(given)  # a file of settings, or nothing
    default: dict[str, Any] = {} if found is None else {"default": found}
    train = tyro.conf.subcommand("train", prefix_name=False, **default)
    command = tyro.cli(
        Annotated[Train, train] | Others,  # type: ignore[arg-type]
        prog="schnet",
        description="SchNet on datasets of qm1b and others.",
        args=given,
        config=(tyro.conf.OmitArgPrefixes,),
    )
    return command()


if __name__ == "__main__":
    sys.exit(main())

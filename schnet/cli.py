"""The `schnet` command.

A user's mistake ends in one sentence on stderr and exit code 2, never in a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import tyro

from qm1b.commands.calling import EXIT_BROKEN_PIPE, EXIT_INTERRUPTED, EXIT_USER_ERROR

from .commands.evaluate import Evaluate
from .commands.import_pyg import ImportPyg
from .commands.predict import Predict
from .commands.train import Train, with_config
from .errors import UserError

Others = (
    Annotated[Predict, tyro.conf.subcommand("predict", prefix_name=False)]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate", prefix_name=False)]
    | Annotated[ImportPyg, tyro.conf.subcommand("import-pyg", prefix_name=False)]
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
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
        code = command()
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except UserError as error:
        print(f"schnet: {error}", file=sys.stderr)
        return EXIT_USER_ERROR
    except KeyboardInterrupt:
        print("schnet: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())

"""The `schnet` command.

A user's mistake ends in one sentence on stderr and exit code 2, never in a traceback.
"""

import sys
from collections.abc import Callable, Sequence

from tyro.conf import OmitArgPrefixes
from tyro.extras import subcommand_cli_from_dict

from pyscf_ipu.terminal import exit_code
from schnet.commands.evaluate import Evaluate
from schnet.commands.import_pyg import ImportPyg
from schnet.commands.predict import Predict
from schnet.commands.train import Train, from_command_line
from schnet.errors import UserError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return exit_code("schnet", lambda: _parsed(given)(), UserError)


def _parsed(given: Sequence[str]) -> Callable[[], int]:
    if given[:1] == ["train"]:
        return from_command_line(given[1:])
    return subcommand_cli_from_dict(
        {"train": Train, "predict": Predict, "evaluate": Evaluate, "import-pyg": ImportPyg},
        prog="schnet",
        description="SchNet on datasets of qm1b and others.",
        args=given,
        config=(OmitArgPrefixes,),
    )


if __name__ == "__main__":
    sys.exit(main())

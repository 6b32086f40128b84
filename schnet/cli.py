"""The `schnet` command.

A user's mistake ends in one sentence on stderr and exit code 2, never in a traceback.
"""

import sys
from collections.abc import Callable, Sequence

from tyro.conf import OmitArgPrefixes
from tyro.extras import subcommand_cli_from_dict

from pyscf_ipu.advice.extras import how_to_install
from pyscf_ipu.commands.help_text import with_flowing_help
from pyscf_ipu.commands.json_option import with_json_target
from pyscf_ipu.commands.repeated import each_option_once
from pyscf_ipu.terminal import exit_code
from schnet.errors import UserError

EXTRA = ("equinox", "optax", "yaml", "cattrs", "tensorboardX", "ase")
"""Packages of the extra `train`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return exit_code("schnet", lambda: _run(given), UserError)


def _run(given: Sequence[str]) -> int:
    """Run the command of these arguments; a missing package of the extra is a UserError."""
    try:
        return _parsed(each_option_once(given, UserError))()
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in EXTRA:
            raise
        raise UserError(
            f"the package {error.name} is missing: run {how_to_install('train')}"
        ) from error


def _parsed(given: Sequence[str]) -> Callable[[], int]:
    # Here, so that a missing package of the extra does not end in a traceback.
    from schnet.commands.evaluate import Evaluate
    from schnet.commands.export import Export
    from schnet.commands.import_pyg import ImportPyg
    from schnet.commands.predict import Predict
    from schnet.commands.price import Price
    from schnet.commands.train import Train, from_command_line

    commands = {"train": Train, "predict": Predict, "evaluate": Evaluate, "price": Price}
    commands |= {"export": Export, "import-pyg": ImportPyg}
    commands = with_flowing_help(commands)
    if given[:1] == ["train"]:
        return from_command_line(given[1:])
    return subcommand_cli_from_dict(
        commands,
        prog="schnet",
        description="SchNet on datasets of qm1b and others.",
        args=with_json_target(given),
        config=(OmitArgPrefixes,),
    )


if __name__ == "__main__":
    sys.exit(main())

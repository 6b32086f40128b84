"""The `schnet` command.

A user's mistake ends in one sentence on stderr and exit code 2, never in a traceback.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec

from pyscf_ipu.base.command_line.parse import subcommand
from pyscf_ipu.base.errors import MissingPackage
from pyscf_ipu.base.extras import how_to_install
from pyscf_ipu.base.terminal import exit_code

EXTRA = ("equinox", "optax", "yaml", "cattrs", "tensorboardX", "ase")
"""Packages of the extra `train`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    return exit_code("schnet", lambda: _parsed(words))


def _parsed(words: Sequence[str]) -> Callable[[], int]:
    """The command of these words; raises MissingPackage without the packages of the extra."""
    for package in EXTRA:
        if find_spec(package) is None:
            how = how_to_install("train")
            raise MissingPackage(f"the package {package} is missing: run {how}")
    # Here, where the packages are known to be there.
    from schnet.commands.evaluate import Evaluate
    from schnet.commands.export import ExportNetwork
    from schnet.commands.import_pyg import ImportPyg
    from schnet.commands.predict import Predict
    from schnet.commands.price import Price
    from schnet.commands.train import Train, from_command_line

    commands = {"train": Train, "predict": Predict, "evaluate": Evaluate, "price": Price}
    commands |= {"export": ExportNetwork, "import-pyg": ImportPyg}
    if words[:1] == ["train"]:
        return from_command_line(words[1:])
    description = "SchNet on datasets of qm1b and others."
    return subcommand("schnet", commands, words, description=description)


if __name__ == "__main__":
    sys.exit(main())

"""The `qm1b` command.

A user's mistake ends in one sentence on stderr and exit code 2, never in a traceback.
"""

import os
import sys
from collections.abc import Sequence

from tyro.conf import OmitArgPrefixes
from tyro.extras import subcommand_cli_from_dict

from pyscf_ipu.commands.flag_values import CART, FLAG, with_values
from pyscf_ipu.commands.help_text import with_flowing_help
from pyscf_ipu.commands.json_option import with_json_target
from pyscf_ipu.commands.repeated import each_option_once
from pyscf_ipu.errors import UsageError
from pyscf_ipu.terminal import exit_code
from qm1b.commands.check import Card, Verify
from qm1b.commands.convert import Export, Import, Merge, Split
from qm1b.commands.generate import Generate
from qm1b.commands.look import Head, Info, StatsCommand
from qm1b.commands.plan import PlanCommand
from qm1b.commands.select import Select
from qm1b.errors import UserError

COMMANDS = {
    "select": Select,
    "generate": Generate,
    "plan": PlanCommand,
    "export": Export,
    "import": Import,
    "split": Split,
    "head": Head,
    "stats": StatsCommand,
    "verify": Verify,
    "merge": Merge,
    "card": Card,
    "info": Info,
}

FLAGS = {"forces": FLAG, "unpruned": FLAG}
"""Flags of which a preset may decide: --FLAG and --no-FLAG both override it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # as its workers, which cannot share a GPU

    def run() -> int:
        words = sys.argv[1:] if arguments is None else arguments
        given = each_option_once(words, UserError)
        return subcommand_cli_from_dict(
            with_flowing_help(COMMANDS),
            prog="qm1b",
            description="Quantum-chemical datasets from SMILES.",
            args=with_values(with_json_target(given), CART | FLAGS),
            config=(OmitArgPrefixes,),
        )()

    return exit_code("qm1b", run, UserError, UsageError)


if __name__ == "__main__":
    sys.exit(main())

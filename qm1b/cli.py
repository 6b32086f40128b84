"""The `qm1b` command.

A user's mistake ends in one sentence on stderr and exit code 2, never in a traceback.
"""

import os
import sys
from collections.abc import Sequence

from pyscf_ipu.base.command_line.parse import subcommand
from pyscf_ipu.base.terminal import exit_code
from qm1b.commands.check import Card, Verify
from qm1b.commands.convert import Export, Import, Merge, Split
from qm1b.commands.generate import Generate
from qm1b.commands.look import Head, Info, StatsCommand
from qm1b.commands.plan import PlanCommand
from qm1b.commands.select import Select

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # as its workers, which cannot share a GPU

    words = sys.argv[1:] if arguments is None else arguments
    description = "Quantum-chemical datasets from SMILES."
    return exit_code("qm1b", lambda: subcommand("qm1b", COMMANDS, words, description=description))


if __name__ == "__main__":
    sys.exit(main())

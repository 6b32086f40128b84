"""The `qm1b` command.

A user's mistake ends in one sentence on stderr and exit code 2, never in a traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import tyro

from .commands.calling import exit_code
from .commands.card import Card
from .commands.export import Export
from .commands.generate import Generate
from .commands.head import Head
from .commands.importing import Import
from .commands.info import Info
from .commands.merge import Merge
from .commands.plan import Plan
from .commands.split import Split
from .commands.stats import StatsCommand
from .commands.verify import Verify

Command = (
    Annotated[Generate, tyro.conf.subcommand("generate", prefix_name=False)]
    | Annotated[Plan, tyro.conf.subcommand("plan", prefix_name=False)]
    | Annotated[Export, tyro.conf.subcommand("export", prefix_name=False)]
    | Annotated[Import, tyro.conf.subcommand("import", prefix_name=False)]
    | Annotated[Split, tyro.conf.subcommand("split", prefix_name=False)]
    | Annotated[Head, tyro.conf.subcommand("head", prefix_name=False)]
    | Annotated[StatsCommand, tyro.conf.subcommand("stats", prefix_name=False)]
    | Annotated[Verify, tyro.conf.subcommand("verify", prefix_name=False)]
    | Annotated[Merge, tyro.conf.subcommand("merge", prefix_name=False)]
    | Annotated[Card, tyro.conf.subcommand("card", prefix_name=False)]
    | Annotated[Info, tyro.conf.subcommand("info", prefix_name=False)]
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    command = tyro.cli(
        Command,  # type: ignore[arg-type]
        prog="qm1b",
        description="Quantum-chemical datasets from SMILES.",
        args=arguments,
        config=(tyro.conf.OmitArgPrefixes,),
    )
    return exit_code("qm1b", command)


if __name__ == "__main__":
    sys.exit(main())

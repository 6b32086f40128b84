"""From the words of a command line to a command."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import tyro

from pyscf_ipu.base.command_line.given_words import prepared
from pyscf_ipu.base.command_line.options import registry

Command = TypeVar("Command")

CONFIG = (tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone)
HELP = ["--help"]


def command(
    kind: type[Command], name: str, words: Sequence[str], default: Command | None = None
) -> Command:
    """The command of these words; `default` has the values that they leave open."""
    return tyro.cli(
        kind,
        prog=name,
        args=prepared(words),
        default=tyro.MISSING_NONPROP if default is None else default,
        config=CONFIG,
        registry=registry(),
    )


def subcommand(
    script: str, commands: Mapping[str, type], words: Sequence[str], description: str
) -> Callable[[], int]:
    """The subcommand of a script that these words ask for; no words at all ask for the help."""
    return tyro.extras.subcommand_cli_from_dict(
        dict(commands),
        prog=script,
        description=description,
        args=prepared(words) or HELP,
        config=CONFIG,
        registry=registry(),
    )

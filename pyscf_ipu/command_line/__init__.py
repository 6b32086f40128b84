"""From the words of a command line to a command: what all console scripts have in common."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import tyro

from pyscf_ipu.command_line.given_words import prepared
from pyscf_ipu.command_line.options import registry

Command = TypeVar("Command")

CONFIG = (tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone)
HELP = ["--help"]


def command(
    kind: type[Command], name: str, words: Sequence[str], default: Command | None = None
) -> Command:
    """The command of these words.

    Args:
        kind: a dataclass.
        name: what the help calls the command.
        words: the command line without the name.
        default: has the values that the words leave open.
    """
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
    """The subcommand that a command line asks for; no words at all ask for the help.

    Args:
        script: its name.
        commands: a dataclass per subcommand.
        words: the command line without the name.
        description: what the script is for.
    """
    return tyro.extras.subcommand_cli_from_dict(
        dict(commands),
        prog=script,
        description=description,
        args=prepared(words) or HELP,
        config=CONFIG,
        registry=registry(),
    )

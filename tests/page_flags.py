"""The commands and flags that a text names, and those that there are."""

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt
from page_blocks import COMMANDS, ROOT

OTHERS = (
    "zcat",
    "shuf",
    "#SBATCH",
    "pip",
    "ray",
    "tensorboard",
    "mace_run_train",
    "test.sh",
    "pytest",
    "apptainer",
    "docker",
)
"""Programs of others, whose flags nobody checks here."""

FLAG = re.compile(r"(?<![\w-])--[A-Za-z][\w.-]*")
SCRIPT = re.compile(r"(?:^|\s)(benchmarks(?:\.[a-z0-9_]+)+|(?:benchmarks|notebooks)/\S+\.py)(?!\S)")


@dataclass(frozen=True)
class Use:
    """A flag in a text, and the command of its line: `qm1b generate`, a script, or none."""

    flag: str
    command: str


@cache
def flags_of(command: str) -> frozenset[str]:
    """The flags of a command by its own help; of a script, all that stand in its text.

    Raises:
        KeyError: there is no such command.
    """
    if command.startswith(("benchmarks", "notebooks")):
        return frozenset(_flags_of_script(command)) | {"--help"}
    name, *words = command.split()
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        COMMANDS[name]([*words, "--help"])
    if not re.match(rf"usage: {command}\s", out.getvalue()):  # of an unknown one it is the list
        raise KeyError(command)
    return frozenset(_in_help(out.getvalue()))


def _in_help(text):
    """Flags at the beginning of the entries of a help; those in the texts beside them are not."""
    for line in text.splitlines():
        entry = re.match(r"[│|\s]{0,3}((?:-\w+, )?--.*)", line)
        for word in re.split(r"[,|\s]+", entry[1]) if entry else ():
            if not word.startswith("-"):
                break
            yield word


def _flags_of_script(name):
    path = ROOT / (name if name.endswith(".py") else name.replace(".", "/") + ".py")
    if path.with_suffix("").is_dir():  # a folder of scripts
        return
    texts = [path.read_text()]
    for module, names in re.findall(r"from (benchmarks[\w.]*) import ([\w, ]+)", texts[0]):
        for part in (module, *(f"{module}.{each.strip()}" for each in names.split(","))):
            other = ROOT / (part.replace(".", "/") + ".py")
            texts += [other.read_text()] if other.exists() else []
    yield from FLAG.findall("\n".join(texts))


def alone(flag: str) -> Use:
    """A flag without a command."""
    return Use(flag, "")


def codes(text: str) -> Iterator[str]:
    """The code blocks and the inline code of a Markdown text."""
    for token in MarkdownIt().enable("table").parse(text):
        if token.type == "fence" and token.info != "python":
            yield token.content.replace("\\\n", " ")
        yield from (part.content for part in token.children or () if part.type == "code_inline")


def uses(text: str) -> list[Use]:
    """All flags of a Markdown text, with their commands."""
    return [use for code in codes(text) for line in code.splitlines() for use in of_code(line)]


def of_code(line: str) -> Iterator[Use]:
    """The flags of a line of code; those of other programs are left out."""
    for piece in re.split(r"\s(?:\||&&|;)\s", line.split(" #")[0]):
        command = command_of(piece)
        if command is not None:
            yield from (Use(flag, command) for flag in FLAG.findall(piece))


def command_of(piece: str) -> str | None:
    """The command of ours that a line calls; empty if it calls none, None if another program."""
    if piece.startswith("-"):
        return ""
    if script := SCRIPT.search(piece):
        return script[1]
    words = [word.rpartition("/")[2] for word in piece.split() if "=" not in word]
    for name, following in zip(words, [*words[1:], ""], strict=False):
        if name == "generate.sh":
            return "qm1b generate"
        if (name := name.replace("DFT", "dft")) in COMMANDS:
            alone = name == "nanodft" or not re.fullmatch("[a-z][a-z-]*", following)
            return name if alone else f"{name} {following}"
    return None if words and words[0] in OTHERS else ""


def commands_in(text: str) -> set[str]:
    """All commands and scripts of ours that a Markdown text calls."""
    lines = (line for code in codes(text) for line in code.splitlines())
    return {command for line in lines if (command := command_of(line))}

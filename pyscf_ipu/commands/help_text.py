"""Help of options without the line breaks of the source, which tyro would print as they stand."""

import ast
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import TypeVar

Commands = TypeVar("Commands", bound=Mapping[str, type])


def with_flowing_help(commands: Commands) -> Commands:
    """The same commands, whose options are described by paragraphs that flow.

    The text below a field becomes its metadata "help", which tyro reads first.  This reads the
    source of the classes, so it is done before a command line is parsed, not on import.
    """
    for command in commands.values():
        _describe(command)
    return commands


def flowing(text: str) -> str:
    """Text whose paragraphs are one line each."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def _describe(command: type) -> None:
    """Give the fields of a dataclass their help, and those of the dataclasses in it."""
    texts = {}
    for one in reversed([one for one in command.__mro__ if is_dataclass(one)]):
        texts |= field_texts(one)
    for field in fields(command):
        if field.name in texts and "help" not in field.metadata:
            help_text = {"help": flowing(texts[field.name])}
            field.metadata = MappingProxyType({**field.metadata, **help_text})
        for inner in (field.default_factory, type(field.default)):
            if isinstance(inner, type) and is_dataclass(inner):
                _describe(inner)


def field_texts(command: type) -> dict[str, str]:
    """The text below each field in the body of a class."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(command))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            found[field.target.id] = below.value.value
    return found

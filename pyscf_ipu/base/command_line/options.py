"""How tyro shows and reads our dataclasses: options in groups, help that flows, plain mistakes.

A command may have `groups`: titles, each with the names of its options.  Options that are in no
group come first.
"""

import ast
import inspect
import textwrap
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from pyscf_ipu.base.errors import UsageError, WrongOption

JsonTarget = Annotated[Path | None, tyro.conf.arg(metavar="[FILE.json]")]
"""The type of --json, which alone prints JSON and before a file name writes it there."""

SeveralPaths = Annotated[
    tyro.conf.Positional[tuple[Path, ...]],
    tyro.conf.arg(metavar="PATH [PATH ...]", help_behavior_hint="(required)"),
]
"""The type of files that stand one after another; the command refuses none at all."""

PLAIN = {int: "a whole number", float: "a number", Path: "a path"}


def registry() -> ConstructorRegistry:
    """The rules for tyro."""
    rules = ConstructorRegistry()
    rules.struct_rule(_struct)
    rules.primitive_rule(_plain)
    rules.primitive_rule(_union)
    rules.primitive_rule(_names)
    return rules


@dataclass(frozen=True, eq=False)
class Group:
    """Options that the help shows together."""

    options: tuple[StructFieldSpec, ...]


@cache
def field_texts(command: type) -> dict[str, str]:
    """The text below each field in the body of a class, each paragraph in one line.

    tyro would show the line breaks of the source.
    """
    texts: dict[str, str] = {}
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(command))).body
    assert isinstance(tree, ast.ClassDef)
    for pair in pairwise(tree.body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(ast.Constant(str(text))):
                parts = inspect.cleandoc(text).split("\n\n")
                texts[name] = "\n\n".join(" ".join(part.split()) for part in parts)
    return texts


def _struct(info: StructTypeInfo) -> StructConstructorSpec | None:
    """The options of a dataclass, by group; None for one of tyro's own."""
    kind: Any = info.type
    if kind is Group:
        return StructConstructorSpec(dict, info.default.options)
    if not is_dataclass(info.type) or kind.__module__.startswith("tyro."):
        return None
    given = info.default if isinstance(info.default, kind) else None
    hints = get_type_hints(kind, include_extras=True)
    options = {f.name: _option(kind, f, hints[f.name], given=given) for f in fields(kind)}
    groups: dict[str, str] = getattr(kind, "groups", {})
    boxes = [
        StructFieldSpec(title, Group, Group(tuple(options.pop(name) for name in names.split())), "")
        for title, names in groups.items()
    ]

    def build(**values: Any) -> object:
        for title in groups:
            values |= values.pop(title)
        try:
            return kind(**values)
        except UsageError as mistake:
            raise WrongOption(str(mistake)) from None

    build.__doc__ = kind.__doc__  # which the help begins with
    return StructConstructorSpec(build, (*options.values(), *boxes))


def _option(kind: type, one: Field[Any], hint: Any, given: object) -> StructFieldSpec:
    """An option; what is None or empty by default has no default to be shown."""
    default: Any = tyro.MISSING_NONPROP
    if given is not None:
        default = getattr(given, one.name)
    elif one.default is not MISSING:
        default = one.default
    elif one.default_factory is not MISSING:
        default = one.default_factory()
    if default is None or default in ((), []):
        hint = Annotated[hint, tyro.conf.arg(help_behavior_hint="")]
    return StructFieldSpec(one.name, hint, default, partial(_help, kind, one.name))


def _help(kind: type, name: str) -> str | None:
    """The text below a field, in its class or in one that it is derived from."""
    texts = (field_texts(owner).get(name) for owner in filter(is_dataclass, kind.__mro__))
    return next(filter(None, texts), None)


def _plain(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    """A number or a path, whose mistakes are told without words of Python."""
    kind: Any = info.type
    if kind not in PLAIN:
        return None

    def read(words: list[str]) -> object:
        with suppress(ValueError):
            if words[0]:  # an empty path would be the folder of the shell
                return kind(words[0])
        raise ValueError(f"{words[0]!r} is not {PLAIN[kind]}")

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=kind.__name__.upper(),
        instance_from_str=read,
        is_instance=lambda value: isinstance(value, (kind, int) if kind is float else kind),
        str_from_instance=lambda value: [str(value)],
    )


def _names(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    """Several words, one at least: tyro would take an option without any as one not given."""
    kind = {tuple: tuple, list: list}.get(get_origin(info.type))
    if kind is None or get_args(info.type)[0] is not str:
        return None

    def read(words: list[str]) -> object:
        if not words:
            raise ValueError("it names nothing: give one word or more, or leave the option out")
        return kind(words)

    def written(value: object) -> list[str]:
        return [str(word) for word in value] if isinstance(value, (tuple, list)) else []

    return PrimitiveConstructorSpec(
        nargs="*",
        metavar="STR [STR ...]",
        instance_from_str=read,
        is_instance=lambda value: isinstance(value, (tuple, list)),
        str_from_instance=written,
    )


def _union(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    """One of several types, which choices and the number of words decide; nobody types None."""
    if get_origin(info.type) not in (Union, UnionType):
        return None
    members = [
        PrimitiveTypeInfo.make(t, info.markers) for t in get_args(info.type) if t != NoneType
    ]
    specs: list[Any] = [ConstructorRegistry.get_primitive_spec(member) for member in members]
    if not all(isinstance(spec, PrimitiveConstructorSpec) for spec in specs):
        return None
    choices = tuple(word for spec in specs for word in spec.choices or ())
    metavar = f"{{{','.join(choices)}}}" if choices else " or ".join(s.metavar for s in specs)

    def read(words: list[str]) -> object:
        for spec in specs:
            if len(words) == spec.nargs and (spec.choices is None or words[0] in spec.choices):
                return spec.instance_from_str(words)
        raise ValueError(f"{' '.join(words)!r} is not {metavar}")

    lengths = tuple(sorted({spec.nargs for spec in specs}))
    return PrimitiveConstructorSpec(
        nargs=lengths[0] if len(lengths) == 1 else lengths,
        metavar=metavar,
        instance_from_str=read,
        is_instance=lambda value: value is None or any(s.is_instance(value) for s in specs),
        str_from_instance=lambda value: next(
            (s.str_from_instance(value) for s in specs if s.is_instance(value)), []
        ),
        choices=choices or None,
    )

"""How tyro shows and reads our dataclasses: options in groups, help that flows, plain mistakes.

A command may have `groups`: titles, each with a sentence and the names of its options.  The options
that no group has come first.
"""

import ast
import inspect
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, field, fields, is_dataclass, make_dataclass
from functools import cache, partial
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

PLAIN = {int: "a whole number", float: "a number", Path: "a path"}


def registry() -> ConstructorRegistry:
    """The rules for tyro."""
    rules = ConstructorRegistry()
    rules.struct_rule(_dataclass)
    rules.primitive_rule(_plain)
    rules.primitive_rule(_union)
    return rules


def flowing(text: str) -> str:
    """Text whose paragraphs are one line each; tyro would show the line breaks of the source."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


@cache
def field_texts(command: type) -> dict[str, str]:
    """The text below each field in the body of a class."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(command))).body
    assert isinstance(tree, ast.ClassDef)
    texts = {}
    for one, below in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(one, ast.AnnAssign)
            and isinstance(one.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            texts[one.target.id] = below.value.value
    return texts


def _dataclass(info: StructTypeInfo) -> StructConstructorSpec | None:
    """The options of a dataclass, by group; None for one of tyro's own."""
    if not is_dataclass(info.type) or info.type.__module__.startswith("tyro."):
        return None
    kind: Any = info.type
    given = info.default if isinstance(info.default, kind) else None
    hints = get_type_hints(kind, include_extras=True)
    options = {f.name: _option(kind, f, hints[f.name], given=given) for f in fields(kind)}
    groups = [
        _group(title, sentence, [options.pop(name) for name in names.split()])
        for title, (sentence, names) in getattr(kind, "groups", {}).items()
    ]

    def build(**values: Any) -> object:
        for group in groups:
            values |= vars(values.pop(group.name))
        return kind(**values)

    build.__doc__ = kind.__doc__  # which the help begins with
    return StructConstructorSpec(build, (*options.values(), *groups))


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
    return StructFieldSpec(one.name, hint, default, partial(_help, kind, one))


def _help(kind: type, one: Field[Any]) -> str | None:
    """The text below a field, in its class or in one that it is derived from."""
    if "help" in one.metadata:
        return one.metadata["help"]()
    for owner in filter(is_dataclass, kind.__mro__):
        if one.name in field_texts(owner):
            return flowing(field_texts(owner)[one.name])
    return None


def _group(title: str, sentence: str, options: Sequence[StructFieldSpec]) -> StructFieldSpec:
    """Options as one struct, which tyro shows in a box of its own."""
    parts: list[tuple[str, Any, Any]] = []
    for option in options:
        rest: dict[str, Any] = {"kw_only": True, "metadata": {"help": option.helptext}}
        if option.default is not tyro.MISSING_NONPROP:
            rest["default_factory"] = partial(_same, option.default)
        parts.append((option.name, option.type, field(**rest)))
    kind = make_dataclass(title.replace(" ", "_"), parts, namespace={"__doc__": sentence})
    return StructFieldSpec(title, kind, tyro.MISSING_NONPROP, sentence)


def _same(value: object) -> object:
    return value


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


def _union(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    """One of several types, which choices and the number of words decide; nobody types None."""
    if get_origin(info.type) not in (Union, UnionType):
        return None
    members = [
        PrimitiveTypeInfo.make(t, info.markers) for t in get_args(info.type) if t != NoneType
    ]
    specs = [ConstructorRegistry.get_primitive_spec(member) for member in members]
    known = [spec for spec in specs if isinstance(spec, PrimitiveConstructorSpec)]
    if len(known) < len(specs):
        return None
    choices = [word for spec in known for word in spec.choices or ()]
    metavar = f"{{{','.join(choices)}}}" if choices else " or ".join(s.metavar for s in known)

    def read(words: list[str]) -> object:
        for spec in known:
            if len(words) == spec.nargs and (spec.choices is None or words[0] in spec.choices):
                return spec.instance_from_str(words)
        raise ValueError(f"{' '.join(words)!r} is not {metavar}")

    def words_of(value: Any) -> list[str]:
        return next((s.str_from_instance(value) for s in known if s.is_instance(value)), [])

    lengths = sorted({spec.nargs for spec in known if isinstance(spec.nargs, int)})
    return PrimitiveConstructorSpec(
        nargs=lengths[0] if len(lengths) == 1 else tuple(lengths),
        metavar=metavar,
        instance_from_str=read,
        is_instance=lambda value: value is None or any(s.is_instance(value) for s in known),
        str_from_instance=words_of,
        choices=tuple(choices) or None,
    )

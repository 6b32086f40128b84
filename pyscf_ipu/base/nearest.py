"""What is not there, and what is nearest to it."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import TypeVar, cast, get_args, get_type_hints

Explained = TypeVar("Explained", bound=Callable)


def explaining(
    mistakes: Mapping[str, str], by_name: Mapping[str, str]
) -> Callable[[Explained], Explained]:
    """Make a decorator for functions and classes whose TypeError says what to give.

    In the signature, as `help` shows it, the keys of a TypedDict stand for a `**` of that type.

    Args:
        mistakes: keywords that people give and that there are not; what to give instead.
        by_name: names of types of which people give a value by position; how to write it.
    """

    def decorate(function: Explained) -> Explained:
        return _explained(function, mistakes, by_name)

    return decorate


def _explained(
    function: Explained, mistakes: Mapping[str, str], by_name: Mapping[str, str]
) -> Explained:
    if isinstance(function, type):
        function.__init__ = _explained(function.__init__, mistakes, by_name)
        return cast(Explained, function)
    signature = _spelt_out(inspect.signature(function))
    name = function.__qualname__.removesuffix(".__init__")
    known = [parameter for parameter in signature.parameters if parameter != "self"]
    named = [p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
    n_positional = len(signature.parameters) - len(named)

    @wraps(function)
    def checked(*args: object, **kwargs: object) -> object:
        if len(args) > n_positional:
            extra = zip(named, args[n_positional:], strict=False)
            written = (_written(key, value, by_name) for key, value in extra)
            raise TypeError(
                f"{name}() takes the level and other options by name: give {', '.join(written)}"
            )
        for given in kwargs:
            if given not in known:
                raise TypeError(
                    f"{name}() got an unexpected keyword argument {given!r}: "
                    f"{nearest_keyword(given, known, mistakes)}"
                )
        return function(*args, **kwargs)

    checked.__signature__ = signature  # type: ignore[attr-defined]
    return cast(Explained, checked)


def nearest_keyword(name: str, known: Iterable[str], mistakes: Mapping[str, str]) -> str:
    """What to give in place of a keyword that there is not, as the end of a sentence."""
    if name in mistakes:
        return mistakes[name]
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(known)}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ " (did you mean 'mixed'?)" for the nearest of some names; "" if none is near."""
    near = get_close_matches(name.lower(), known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _spelt_out(signature: inspect.Signature) -> inspect.Signature:
    """A signature with keyword-only parameters for the keys of `**level: Unpack[Keywords]`."""
    *others, last = signature.parameters.values()
    if last.kind is not last.VAR_KEYWORD:
        return signature
    (keywords,) = get_args(last.annotation)
    spelt_out = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
        for key, hint in get_type_hints(keywords).items()
    ]
    at = sum(p.kind is not p.KEYWORD_ONLY for p in others)
    return signature.replace(parameters=[*others[:at], *spelt_out, *others[at:]])


def _written(name: str, value: object, by_name: Mapping[str, str]) -> str:
    """An argument as it has to be written: `basis="6-31g*"`."""
    kind = type(value).__name__
    if kind in by_name:
        return by_name[kind]
    return f'{name}="{value}"' if isinstance(value, str) else f"{name}={value!r}"

"""Signatures are checked at run time: by jaxtyping where there are arrays, elsewhere by beartype.

With `--jaxtyping-packages` jaxtyping wraps every function: for each call it binds the arguments,
opens a scope for the names of sizes, and checks them in functions of its own, which it compiles at
import.  A function without arrays needs none of that, and most have none.
"""

import dataclasses
import functools
import types
import typing
from collections.abc import Callable

import beartype
import jaxtyping

QUICK = beartype.beartype(conf=beartype.BeartypeConf(violation_type=TypeError))
"""Raises what users get of a wrong type, and what jaxtyping raises: a TypeError."""


CHECKS_ITSELF = {"Settings"}
"""Classes that refuse a wrong field themselves, in sentences that the tests want to see."""


def check_quickly() -> None:
    """From now on, imported functions without arrays are given to the type checker alone."""
    jaxtyping.jaxtyped = functools.partial(_jaxtyped, jaxtyping.jaxtyped)


def _jaxtyped(real: Callable, fn: typing.Any = None, *, typechecker: Callable) -> typing.Any:
    """As `jaxtyping.jaxtyped`, which is `real`."""
    if fn is None:
        return functools.partial(_jaxtyped, real, typechecker=typechecker)
    if isinstance(fn, types.FunctionType) and _has_no_arrays(fn):
        return QUICK(fn)
    if getattr(fn, "__qualname__", None) in CHECKS_ITSELF:
        return fn
    if dataclasses.is_dataclass(fn) and _has_no_arrays(fn.__init__):
        if "__init__" in vars(fn):
            fn.__init__ = QUICK(fn.__init__)
        return fn
    return real(fn, typechecker=typechecker)


def _has_no_arrays(fn: Callable) -> bool:
    """Whether all annotations of a function can be found, and none of them is jaxtyping's."""
    try:
        hints = typing.get_type_hints(fn, include_extras=True)
    except Exception:  # of a name that is only imported for type checkers, or of any hint
        return False
    return not any(map(_is_of_jaxtyping, hints.values()))


def _is_of_jaxtyping(hint: object) -> bool:
    if isinstance(hint, list):  # the arguments of a Callable
        return any(map(_is_of_jaxtyping, hint))
    if type(hint).__module__.startswith("jaxtyping"):
        return True
    return any(map(_is_of_jaxtyping, typing.get_args(hint)))

"""Signatures are checked at run time: by jaxtyping where there are arrays, elsewhere by beartype.

With `--jaxtyping-packages` jaxtyping wraps every function: for each call it binds the arguments,
opens a scope for the names of sizes, and checks them in functions of its own, which it compiles at
import.  A function without arrays needs none of that, and most have none.  Its checks are compiled
at its first call: most functions of a process are never called, and those inside of functions are
made anew each time.
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
    """From now on, imported functions are checked from their first call on, those without arrays by
    the type checker alone."""
    jaxtyping.jaxtyped = functools.partial(_jaxtyped, jaxtyping.jaxtyped)


def _jaxtyped(real: Callable, fn: typing.Any = None, *, typechecker: Callable) -> typing.Any:
    """As `jaxtyping.jaxtyped`, which is `real`."""
    if fn is None:
        return functools.partial(_jaxtyped, real, typechecker=typechecker)
    if isinstance(fn, types.FunctionType):
        real = functools.partial(real, typechecker=typechecker)
        return _from_first_call(fn, lambda fn: QUICK(fn) if _has_no_arrays(fn) else real(fn))
    if getattr(fn, "__qualname__", None) in CHECKS_ITSELF:
        return fn
    if dataclasses.is_dataclass(fn) and _has_no_arrays(fn.__init__):
        if "__init__" in vars(fn):
            fn.__init__ = _from_first_call(fn.__init__, QUICK)
        return fn
    return real(fn, typechecker=typechecker)


def _from_first_call(fn: types.FunctionType, check: Callable) -> types.FunctionType:
    """A function that replaces itself by what `check` makes of it when it is called."""
    checked = None

    @functools.wraps(fn)
    def call(*args, **kwargs):
        __tracebackhide__ = True
        nonlocal checked
        if checked is None:
            checked = check(fn)
        return checked(*args, **kwargs)

    return call


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

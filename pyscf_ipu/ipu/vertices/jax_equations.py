"""What JAX's own equations hold: the programs of loops, branches and calls, and their parameters.

No other module of the simulated IPU reads a parameter of JAX's primitives by its name, because JAX
renames them: in 0.11 `scan` lost `num_consts` and `num_carry`, `closed_call` became `eval_jaxpr`,
and `ClosedJaxpr` became a name of `Jaxpr`.  The tests run on both sides of that change.
"""

import functools
import math
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, jaxprs_in_params
from jax.sharding import AbstractMesh, Mesh

from pyscf_ipu.base.errors import UnknownEquation
from pyscf_ipu.ipu.vertices.equation import traced

KNOWN = "0.10.1 to 0.12"
"""Versions of JAX whose equations this module knows."""

CALLS = frozenset(
    "jit pjit closed_call core_call eval_jaxpr remat checkpoint custom_jvp_call custom_vjp_call "
    "custom_vjp_call_jaxpr remat2 shard_map".split()
)
"""Primitives that do nothing but call a program."""


def _horner(x: Array, *coefficients: Array) -> Array:
    return functools.reduce(lambda total, c: total * x + c, coefficients[::-1])


MEANT: Mapping[str, Callable[..., Array]] = MappingProxyType(
    {
        "one_minus_square": lambda x: (1 + x) * (1 - x),
        "log2": lambda x: jnp.log(x) / math.log(2.0),
        "polynomial": _horner,
        "jax exp_neg_sq": lambda x: jnp.exp(-jnp.square(x)),
    }
)
"""Operations that newer versions have, by those that all have; the cycles are the same.

`exp_neg_sq` is JAX's function in the derivative of erf since 0.12; it adds digits by a series.
"""

Kind = TypeVar("Kind")


class Scan(NamedTuple):
    """A loop over the rows of arrays: operands are constants, carried values and these arrays."""

    body: ClosedJaxpr
    n_consts: int
    n_carry: int
    length: int
    reverse: bool


class While(NamedTuple):
    """A loop that asks: operands are the test's constants, the body's, and the carried values."""

    test: ClosedJaxpr
    body: ClosedJaxpr
    n_test: int
    n_body: int


def parameter(eqn: JaxprEqn, kind: type[Kind], *names: str) -> Kind:
    """A parameter of one of JAX's equations, by the first of its names that is there.

    Raises:
        UnknownEquation: It has none of the names, or the parameter is of another kind.
    """
    name = next((name for name in names if name in eqn.params), None)
    if name is None:
        raise _unknown(eqn, f"without {' or '.join(names)}")
    value = eqn.params[name]
    if not isinstance(value, kind):
        raise _unknown(eqn, f"with a {type(value).__name__} as {name}")
    return value


def scan_of(eqn: JaxprEqn) -> Scan:
    """The parts of a `scan`."""
    if "num_consts" in eqn.params:
        n_consts, n_carry = (parameter(eqn, int, f"num_{kind}") for kind in ("consts", "carry"))
    else:
        groups = getattr(parameter(eqn, object, "ft_in"), "unpack", tuple)()
        if len(groups) != 3:
            raise _unknown(eqn, "with ft_in of another kind")
        n_consts, n_carry = map(len, groups[:2])
    body, length = parameter(eqn, ClosedJaxpr, "jaxpr"), parameter(eqn, int, "length")
    return Scan(body, n_consts, n_carry, length=length, reverse=parameter(eqn, bool, "reverse"))


def while_of(eqn: JaxprEqn) -> While:
    """The parts of a `while`."""
    test, body = (parameter(eqn, ClosedJaxpr, f"{of}_jaxpr") for of in ("cond", "body"))
    n_test, n_body = (parameter(eqn, int, f"{of}_nconsts") for of in ("cond", "body"))
    return While(test, body, n_test, n_body=n_body)


def lanes_of(eqn: JaxprEqn) -> tuple[int, ...]:
    """The shape of a batched `while`, whose test has an answer for each lane; () of others."""
    return parameter(eqn, ClosedJaxpr, "cond_jaxpr").out_avals[0].shape


def branches_of(eqn: JaxprEqn) -> tuple[ClosedJaxpr, ...]:
    """The branches of a `cond`."""
    return parameter(eqn, tuple, "branches")


def solver_of(eqn: JaxprEqn) -> ClosedJaxpr:
    """The solution of a `custom_linear_solve`."""
    solve = getattr(parameter(eqn, tuple, "jaxprs"), "solve", None)
    if not isinstance(solve, ClosedJaxpr):
        raise _unknown(eqn, "without a program that solves")
    return solve


def mesh_of(eqn: JaxprEqn) -> Mesh | AbstractMesh:
    """The devices of a `shard_map`."""
    return cast(Mesh | AbstractMesh, parameter(eqn, object, "mesh"))


def axes_of(eqn: JaxprEqn) -> tuple[int, ...]:
    """The axes that an operation works along: a sum, a running sum, a sort, a concatenation."""
    axes = parameter(eqn, object, "axes", "axis", "dimensions", "dimension")
    return tuple(int(a) for a in (axes if isinstance(axes, tuple) else (cast(int, axes),)))


def called(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The jaxpr that an equation calls, if it does nothing else, or that it means (`MEANT`)."""
    meant = MEANT.get(_name(eqn))
    if meant is not None:
        return traced(meant, eqn)
    if eqn.primitive.name not in CALLS:
        return None
    body = parameter(eqn, object, "jaxpr", "call_jaxpr", "fun_jaxpr")
    return body if isinstance(body, ClosedJaxpr) else ClosedJaxpr(cast(Jaxpr, body), ())


def _name(eqn: JaxprEqn) -> str:
    """The name of an operation: of its primitive, or of a function of JAX with a derivative."""
    if eqn.primitive.name != "custom_jvp_call":
        return eqn.primitive.name
    about = parameter(eqn, ClosedJaxpr, "call_jaxpr").jaxpr.debug_info
    of_jax = str(about.func_filename).startswith(os.path.dirname(jax.__file__))
    return f"jax {about.func_name}" if of_jax else eqn.primitive.name


def refuse_program(eqn: JaxprEqn) -> None:
    """Refuse an equation without a price if it runs a program: all of that would cost nothing.

    The function of two numbers inside a `reduce` is none.

    Raises:
        UnknownEquation: The equation holds a program of arrays.
    """
    bodies: list[Jaxpr] = list(jaxprs_in_params(eqn.params))
    if any(getattr(v.aval, "shape", ()) for body in bodies for v in body.invars):
        raise _unknown(eqn, "which runs a program")


def _unknown(eqn: JaxprEqn, how: str) -> UnknownEquation:
    return UnknownEquation(
        f"JAX {jax.__version__} writes the equation {eqn.primitive.name} {how}, which the "
        f"simulated IPU does not know: install JAX {KNOWN}"
    )

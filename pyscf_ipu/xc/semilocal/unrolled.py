"""Functions of one point, made functions of rows of points along all of their small axes.

XLA's loops over an axis of two spins are not vectorised where something is sliced or stacked, as it
is in every derivative: alone they take up to seven times as long as those of rows of points, and a
cycle of two spins a tenth to a quarter longer.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend import core
from jax.typing import ArrayLike
from jaxtyping import PyTree

MOVES = {
    *("broadcast_in_dim", "concatenate", "copy", "pad", "reshape", "rev"),
    *("slice", "split", "squeeze", "stack", "transpose", "unstack"),
}
"""Operations that only move elements."""


class Rows(NamedTuple):
    """An array with small axes: of each element, in C order, a row of points or a single value."""

    shape: tuple[int, ...]
    rows: list[Array]


def unrolled(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """Make a function of many points, which are the last axis of all arrays.

    Args:
        function: takes and returns the arrays of a single point.

    Raises:
        NotImplementedError: it does something that is neither elementwise nor a sum or a move.
    """

    def of_points(*arrays: Array) -> PyTree:
        point = [jax.ShapeDtypeStruct(x.shape[:-1], x.dtype) for x in arrays]
        traced, result = jax.make_jaxpr(function, return_shape=True)(*point)
        given = [
            Rows(x.shape[:-1], [x[place] for place in np.ndindex(x.shape[:-1])]) for x in arrays
        ]
        results = _evaluated(traced.jaxpr, traced.consts, given)
        n = arrays[0].shape[-1]
        stacked = [
            jnp.stack([jnp.broadcast_to(row, n) for row in x.rows]).reshape(*x.shape, n)
            for x in results
        ]
        return jax.tree.unflatten(jax.tree.structure(result), stacked)

    return of_points


def _constant(x: ArrayLike) -> Rows:
    values = np.asarray(x)
    return Rows(values.shape, [jnp.asarray(one) for one in values.ravel()])


def _evaluated(
    jaxpr: core.Jaxpr, constants: Sequence[ArrayLike], arguments: list[Rows]
) -> list[Rows]:
    """The results of a traced function, operation by operation."""
    known: dict[object, Rows] = dict(zip(jaxpr.constvars, map(_constant, constants), strict=True))
    known |= dict(zip(jaxpr.invars, arguments, strict=True))

    def value(x: object) -> Rows:
        return _constant(x.val) if isinstance(x, core.Literal) else known[x]

    for equation in jaxpr.eqns:
        results = _applied(equation, [value(x) for x in equation.invars])
        known |= dict(zip(equation.outvars, results, strict=True))
    return [value(x) for x in jaxpr.outvars]


def _applied(equation: core.JaxprEqn, operands: list[Rows]) -> list[Rows]:
    """The results of one operation."""
    operation, parameters = equation.primitive, equation.params
    inner = parameters.get("jaxpr", parameters.get("call_jaxpr"))
    if inner is not None:
        return _evaluated(inner.jaxpr, inner.consts, operands)
    if operation.name in MOVES:
        return _moved(equation, operands)
    if operation.name == "reduce_sum":
        return [_summed(equation, operands[0])]
    shape = getattr(equation.outvars[0].aval, "shape", ())
    is_along_axes = operation.name.startswith("cum") or operation.name == "sort"
    if is_along_axes or np.broadcast_shapes(shape, *(x.shape for x in operands)) != shape:
        raise NotImplementedError(f"{operation.name} is neither elementwise, a sum nor a move")
    whole = [_broadcast(x, shape) for x in operands]
    elements = zip(*(x.rows for x in whole), strict=True)
    return [Rows(shape, [operation.bind(*_alike(each), **parameters) for each in elements])]


def _broadcast(x: Rows, shape: tuple[int, ...]) -> Rows:
    """An operand of an elementwise operation, whose axes of one element count as many."""
    places = np.arange(len(x.rows)).reshape(x.shape)
    return Rows(shape, [x.rows[place] for place in np.broadcast_to(places, shape).ravel()])


def _alike(elements: Sequence[Array]) -> Iterator[Array]:
    """Broadcast single values to rows, if there is a row among them."""
    shape = max((jnp.shape(x) for x in elements), key=len)
    return (jnp.broadcast_to(x, shape) for x in elements)


def _moved(equation: core.JaxprEqn, operands: list[Rows]) -> list[Rows]:
    """Let the operation move the elements' numbers, and the elements as these."""
    ends = np.cumsum([len(x.rows) for x in operands])
    numbers = [
        np.arange(end - len(x.rows), end, dtype=np.int32).reshape(x.shape)
        for x, end in zip(operands, ends, strict=True)
    ]
    with jax.ensure_compile_time_eval():
        moved = equation.primitive.bind(*numbers, **equation.params)
    elements = [row for x in operands for row in x.rows]
    results = moved if equation.primitive.multiple_results else [moved]
    return [Rows(x.shape, [elements[place] for place in np.asarray(x).ravel()]) for x in results]


def _summed(equation: core.JaxprEqn, x: Rows) -> Rows:
    """Sums along some axes; zero along empty ones."""
    axes, summed = equation.params["axes"], equation.outvars[0].aval
    kept = [i for i in range(len(x.shape)) if i not in axes]
    shape = tuple(x.shape[i] for i in kept)
    count = math.prod(x.shape[i] for i in axes)
    places = np.arange(len(x.rows)).reshape(x.shape).transpose(*kept, *axes)
    zero = jnp.zeros((), getattr(summed, "dtype", None))
    sums = [
        reduce(jnp.add, [x.rows[i] for i in one]) if count else zero
        for one in places.reshape(math.prod(shape), count)
    ]
    return Rows(shape, sums)

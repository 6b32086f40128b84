"""Whether the lanes of a batched loop are independent, so that each can end by itself.

The axes of the lanes are followed through the body of the loop, from the carried values, which have
them first.  A value that depends on no carried value has none: all lanes may read all of it.
"""

import math
from collections.abc import Callable, Sequence
from typing import SupportsIndex

from jax import lax
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal

from pyscf_ipu.ipu.chip.popops import WORKER_CYCLES
from pyscf_ipu.ipu.vertices.equation import aval
from pyscf_ipu.ipu.vertices.jax_equations import (
    axes_of,
    branches_of,
    lanes_of,
    parameter,
    scan_of,
    while_of,
)
from pyscf_ipu.ipu.vertices.trip_counts import opened

Axes = tuple[int, ...] | None
"""Where the lanes are in an array; None if it is the same for all of them."""

UNMOVED = frozenset("copy stop_gradient slice dynamic_slice dynamic_update_slice".split())
ALONG = frozenset(
    "reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or argmax argmin cumsum "
    "cumprod cummax cummin cumlogsumexp rev sort concatenate split squeeze unstack".split()
)


class _LockStepError(Exception):
    """An operation works across lanes, or is not known to work within them: its name."""


def crossing(eqn: JaxprEqn) -> str:
    """The operation of a batched `while` that works across its lanes; "" if there is none."""
    loop, lanes = while_of(eqn), lanes_of(eqn)
    consts: list[Axes] = [None] * (loop.n_test + loop.n_body)
    carried = [tuple(range(len(lanes)))] * (len(eqn.invars) - len(consts))
    try:
        _while(eqn, [*consts, *carried])
    except _LockStepError as error:
        return str(error)
    return ""


def _block(closed: ClosedJaxpr, args: Sequence[Axes]) -> list[Axes]:
    axes = dict(zip(closed.jaxpr.invars, args, strict=True))
    for eqn in closed.jaxpr.eqns:
        ins = [None if isinstance(x, Literal) else axes.get(x) for x in eqn.invars]
        axes.update(zip(eqn.outvars, _equation(eqn, ins), strict=True))
    return [None if isinstance(x, Literal) else axes.get(x) for x in closed.jaxpr.outvars]


def _equation(eqn: JaxprEqn, ins: list[Axes]) -> list[Axes]:
    name, inner = eqn.primitive.name, opened(eqn)
    if name in ("tile_map", "priced_as"):
        raise _LockStepError(name)
    if inner is not None:
        return _block(inner, ins)
    if name == "cond":
        results = [_block(branch, ins[1:]) for branch in branches_of(eqn)]
        return [_joined(eqn, axes) for axes in zip(*results, strict=True)]
    if name in ("while", "scan"):
        return _while(eqn, ins) if name == "while" else _scan(eqn, ins)
    if name == "optimization_barrier":
        return ins
    return [_joined(eqn, [_moved(eqn, k, axes) for k, axes in enumerate(ins)])] * len(eqn.outvars)


def _moved(eqn: JaxprEqn, operand: int, axes: Axes) -> Axes:
    """Where the lanes of an operand are in the result: all of them, and in order."""
    if axes is None:
        return None
    before, after = aval(eqn.invars[operand]).shape, aval(eqn.outvars[0]).shape
    places = [_place(eqn, operand, a) for a in axes]
    moved = tuple(int(p) for p in places if p is not None)
    if [after[p : p + 1] for p in moved] != [(before[a],) for a in axes]:
        raise _LockStepError(eqn.primitive.name)
    return moved


def _joined(eqn: JaxprEqn, axes: Sequence[Axes]) -> Axes:
    """The lanes of what several operands, branches or turns have in common."""
    different = set(axes) - {None}
    if len(different) > 1:
        raise _LockStepError(eqn.primitive.name)
    return next(iter(different), None)


def _carried(
    eqn: JaxprEqn, carry: list[Axes], turn: Callable[[list[Axes]], list[Axes]]
) -> list[Axes]:
    """The lanes of carried values, which a turn may give to more of them."""
    after = [_joined(eqn, pair) for pair in zip(carry, turn(carry), strict=True)]
    return carry if after == carry else _carried(eqn, after, turn)


def _while(eqn: JaxprEqn, ins: list[Axes]) -> list[Axes]:
    test, body, n_test, n_body = while_of(eqn)
    n = n_test + n_body
    carry = _carried(eqn, ins[n:], lambda carry: _block(body, [*ins[n_test:n], *carry]))
    (asked,) = _block(test, [*ins[:n_test], *carry])
    if lanes_of(eqn) and asked != tuple(range(len(asked or ()))):  # a batch inside, of other lanes
        raise _LockStepError("while")
    return carry


def _scan(eqn: JaxprEqn, ins: list[Axes]) -> list[Axes]:
    body, n_consts, n_carry, _, _ = scan_of(eqn)
    n = n_consts + n_carry
    if any(axes and 0 in axes for axes in ins[n:]):
        raise _LockStepError("scan")
    rows = [axes and tuple(a - 1 for a in axes) for axes in ins[n:]]

    def turn(carry: list[Axes]) -> list[Axes]:
        return _block(body, [*ins[:n_consts], *carry, *rows])

    carry = _carried(eqn, ins[n_consts:n], lambda carry: turn(carry)[:n_carry])
    return [*carry, *(axes and tuple(a + 1 for a in axes) for axes in turn(carry)[n_carry:])]


def _place(eqn: JaxprEqn, operand: int, axis: int) -> SupportsIndex | None:
    """Where an axis of an operand is in the result, if it has the same length; None if nowhere."""
    name, shape, after = eqn.primitive.name, aval(eqn.invars[operand]).shape, aval(eqn.outvars[0])
    if name in WORKER_CYCLES or name in UNMOVED:
        return axis
    if name in ALONG:
        along = axes_of(eqn)
        fewer = after.ndim < len(shape)
        return None if axis in along else axis - fewer * sum(d < axis for d in along)
    if name == "stack":
        return axis + (axis >= axes_of(eqn)[0])
    if name == "broadcast_in_dim":
        return parameter(eqn, tuple, "broadcast_dimensions")[axis]
    if name == "transpose":
        return parameter(eqn, tuple, "permutation").index(axis)
    if name == "pad":
        return None if any(parameter(eqn, tuple, "padding_config")[axis]) else axis
    if name == "reshape":
        outer = math.prod(shape[:axis]), shape[axis]
        places = (d for d, n in enumerate(after.shape) if (math.prod(after.shape[:d]), n) == outer)
        return next(places, None)
    moved = {"dot_general": _product, "gather": _looked_up}
    moved |= {"scatter": _scattered, "scatter-add": _scattered}
    return moved[name](eqn, operand, axis) if name in moved else None


def _product(eqn: JaxprEqn, operand: int, axis: int) -> SupportsIndex | None:
    contracted, batch = parameter(eqn, tuple, "dimension_numbers")
    shared = [(*contracted[k], *batch[k]) for k in (0, 1)]
    if axis in shared[operand]:
        return dict(zip(batch[operand], range(len(batch[0])), strict=True)).get(axis)
    free = axis - sum(d < axis for d in shared[operand])
    return len(batch[0]) + operand * (aval(eqn.invars[0]).ndim - len(shared[0])) + free


def _looked_up(eqn: JaxprEqn, operand: int, axis: int) -> SupportsIndex | None:
    d = parameter(eqn, lax.GatherDimensionNumbers, "dimension_numbers")
    table, index, out = (aval(x).ndim for x in (*eqn.invars[:2], eqn.outvars[0]))
    rows = [k for k in range(out) if k not in d.offset_dims]
    if operand == 1:
        return rows[axis] if axis < index - 1 else None
    if axis in d.operand_batching_dims:
        return rows[d.start_indices_batching_dims[d.operand_batching_dims.index(axis)]]
    gone = (*d.collapsed_slice_dims, *d.operand_batching_dims)
    window = [k for k in range(table) if k not in gone]
    return d.offset_dims[window.index(axis)] if axis in window else None


def _scattered(eqn: JaxprEqn, operand: int, axis: int) -> SupportsIndex | None:
    d = parameter(eqn, lax.ScatterDimensionNumbers, "dimension_numbers")
    table, _, updates = (aval(x).ndim for x in eqn.invars)
    if operand == 0:
        return None if axis in d.scatter_dims_to_operand_dims else axis
    if operand == 2 and axis in d.update_window_dims:
        gone = (*d.inserted_window_dims, *d.operand_batching_dims)
        return [k for k in range(table) if k not in gone][d.update_window_dims.index(axis)]
    if operand == 2:
        axis = [k for k in range(updates) if k not in d.update_window_dims].index(axis)
    pairs = zip(d.scatter_indices_batching_dims, d.operand_batching_dims, strict=True)
    return dict(pairs).get(axis)

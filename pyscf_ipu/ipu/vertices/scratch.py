"""Memory that a vertex uses inside itself, from its own program.

A result of an elementwise operation stays in a register if only other elementwise operations and
sums read it, as in a loop written by hand.  An array that a matrix product, a look-up or a loop
reads or writes is in memory, from the equation that makes it to the last that reads it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var, jaxprs_in_params

from pyscf_ipu.ipu.chip.popops import WORKER_CYCLES
from pyscf_ipu.ipu.vertices.cycles import FREE, REDUCTIONS
from pyscf_ipu.ipu.vertices.equation import aval
from pyscf_ipu.ipu.vertices.trip_counts import opened

STREAMED = frozenset(WORKER_CYCLES) | FREE | REDUCTIONS


@dataclass(frozen=True, eq=False)
class _Array:
    """An array that an equation makes; views show one or several."""

    bytes: int


Shown = frozenset[_Array]


class _Step(NamedTuple):
    """An equation by the arrays it really reads: calls are opened, views are seen through."""

    name: str
    reads: Shown
    writes: tuple[_Array, ...]
    inside: int  # scratch of its own bodies, in bytes


def scratch_bytes(jaxpr: Jaxpr) -> int:
    """The most bytes of intermediates at any moment of a vertex.

    Arguments and results do not count, because they are variables of the program.
    """
    env: dict[Var, Shown] = {}
    steps = list(_steps(jaxpr, env))
    results = frozenset().union(*(_shown(x, env) for x in jaxpr.outvars))
    stored: set[_Array] = set()
    last: dict[_Array, int] = {}
    for i, step in enumerate(steps):
        last.update(dict.fromkeys(step.reads, i))
        if step.name not in STREAMED:
            stored.update(step.reads, step.writes)
        elif step.name in REDUCTIONS:
            stored.update(step.writes)
    stored -= results
    live = most = 0
    ends: Counter[int] = Counter()
    for i, step in enumerate(steps):
        for array in stored.intersection(step.writes, last):
            live += array.bytes
            ends[last[array]] += array.bytes
        most = max(most, live + step.inside)
        live -= ends[i]
    return most


def product_bytes(jaxpr: Jaxpr) -> int:
    """The most bytes of operands and result of any one matrix product inside a vertex."""
    most = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "dot_general":
            arrays = [aval(x) for x in (*eqn.invars, *eqn.outvars)]
            most = max(most, sum(x.size * x.dtype.itemsize for x in arrays))
        inner = opened(eqn)
        bodies = jaxprs_in_params(eqn.params) if inner is None else [inner.jaxpr]
        most = max(most, *map(product_bytes, bodies), 0)
    return most


def tables(closed: ClosedJaxpr) -> Iterator[object]:
    """The arrays that a vertex has as constants, those of the programs that it calls included."""
    yield from closed.consts
    for eqn in closed.jaxpr.eqns:
        inner = opened(eqn)
        if inner is not None:
            yield from tables(inner)
            continue
        for value in eqn.params.values():
            for jaxpr in value if isinstance(value, tuple) else (value,):
                if isinstance(jaxpr, ClosedJaxpr):
                    yield from tables(jaxpr)


def _steps(jaxpr: Jaxpr, env: dict[Var, Shown]) -> Iterator[_Step]:
    """The equations in order; fills `env` with what each variable shows."""
    for eqn in jaxpr.eqns:
        shown = [_shown(x, env) for x in eqn.invars]
        inner = opened(eqn)
        if inner is not None:
            # A call of its own each time: one jaxpr may be called more than once.
            local = dict(zip(inner.jaxpr.invars, shown, strict=True))
            yield from _steps(inner.jaxpr, local)
            results = [_shown(x, local) for x in inner.jaxpr.outvars]
            env.update(zip(eqn.outvars, results, strict=True))
        elif eqn.primitive.name in FREE:
            env.update(dict.fromkeys(eqn.outvars, frozenset().union(*shown)))
        else:
            made = tuple(_Array(aval(v).size * aval(v).dtype.itemsize) for v in eqn.outvars)
            env.update((v, frozenset((x,))) for v, x in zip(eqn.outvars, made, strict=True))
            # Of the bodies of a loop or branch one runs at a time.
            inside = max(map(scratch_bytes, jaxprs_in_params(eqn.params)), default=0)
            yield _Step(eqn.primitive.name, frozenset().union(*shown), made, inside=inside)


def _shown(x: Var | Literal, env: dict[Var, Shown]) -> Shown:
    """The arrays behind a variable; none for arguments and constants, which are not scratch."""
    return frozenset() if isinstance(x, Literal) else env.get(x, frozenset())

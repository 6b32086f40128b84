"""Memory that a vertex uses inside itself, from its own program.

Results of elementwise operations that only other elementwise operations and sums read stay in
registers, as in a loop written by hand.  What a matrix product, a look-up or a loop reads or
writes lies in memory, from the equation that makes it to the last that reads it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from jax.extend.core import Jaxpr, Literal

from pyscf_ipu.ipu.counting import FREE, REDUCTIONS
from pyscf_ipu.ipu.popops import WORKER_CYCLES
from pyscf_ipu.ipu.trips import called

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
    """The most bytes of intermediates at any moment of a vertex; arguments and results are not
    among them, because they are variables of the program."""
    env: dict[Any, Shown] = {}
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


def _steps(jaxpr: Jaxpr, env: dict[Any, Shown]) -> Iterator[_Step]:
    """The equations in order; fills `env` with what each variable shows."""
    for eqn in jaxpr.eqns:
        shown = [_shown(x, env) for x in eqn.invars]
        inner = called(eqn)
        if inner is not None:
            # A call of its own each time: one jaxpr may be called more than once.
            local = dict(zip(inner.jaxpr.invars, shown, strict=True))
            yield from _steps(inner.jaxpr, local)
            found = [_shown(x, local) for x in inner.jaxpr.outvars]
            env.update(zip(eqn.outvars, found, strict=True))
        elif eqn.primitive.name in FREE:
            env.update(dict.fromkeys(eqn.outvars, frozenset().union(*shown)))
        else:
            made = tuple(_Array(_bytes(v)) for v in eqn.outvars)
            env.update((v, frozenset((x,))) for v, x in zip(eqn.outvars, made, strict=True))
            yield _Step(eqn.primitive.name, frozenset().union(*shown), made, _inside(eqn))


def _shown(x: Any, env: dict[Any, Shown]) -> Shown:
    """Arguments and constants are nobody's scratch."""
    return frozenset() if isinstance(x, Literal) else env.get(x, frozenset())


def _inside(eqn: Any) -> int:
    """Scratch of the bodies of a loop or branch, of which one runs at a time."""
    bodies = [
        getattr(p, "jaxpr", p)
        for value in eqn.params.values()
        for p in (value if isinstance(value, tuple) else (value,))
        if hasattr(getattr(p, "jaxpr", p), "eqns")
    ]
    return max((scratch_bytes(body) for body in bodies), default=0)


def _bytes(var: Any) -> int:
    return math.prod(var.aval.shape) * var.aval.dtype.itemsize

"""Stages of a program on IPUs of their own: what `with on_ipu(k)` marks, where the rest goes."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import jax
from jax.extend.core import Jaxpr, JaxprEqn, Var, jaxprs_in_params

from pyscf_ipu.base.errors import UsageError

_MARK = re.compile(r"on_ipu_(\d+)")
LOOPS = frozenset(("while", "scan", "cond"))


@contextmanager
def on_ipu(number: int) -> Iterator[None]:
    """What is traced inside belongs to one stage of a pipeline, on an IPU of its own.

    Derivatives of what is inside belong to it, too.  An argument is on the IPU that uses it first.
    Operations that no stage claims are where most of the data of their operands is.  A `scan` over
    several stages is the loop over micro-batches; any other loop is on one IPU, the last one that
    is named inside.

    Args:
        number: Of the IPU in its replica, from 0.

    Raises:
        UsageError: The number is negative.
    """
    if number < 0:
        raise UsageError(f"on_ipu({number}): IPUs are numbered from 0")
    with jax.named_scope(f"on_ipu_{number}"):
        yield


def marked(eqn: JaxprEqn) -> int | None:
    """The IPU that an equation is marked with, or that anything inside a loop is."""
    own = _MARK.findall(str(eqn.source_info.name_stack))
    if own:
        return int(own[-1])
    if eqn.primitive.name not in LOOPS or spans_stages(eqn):
        return None
    return max(_inside(eqn), default=None)


def spans_stages(eqn: JaxprEqn) -> bool:
    """Whether an equation is a loop over the micro-batches or the updates of a pipeline."""
    return eqn.primitive.name == "scan" and len(_inside(eqn)) > 1


def marks(jaxpr: Jaxpr) -> frozenset[int]:
    """All IPUs that a program names."""
    own = (_MARK.findall(str(eqn.source_info.name_stack)) for eqn in jaxpr.eqns)
    return frozenset(int(m) for names in own for m in names).union(*map(_inside, jaxpr.eqns))


def _inside(eqn: JaxprEqn) -> frozenset[int]:
    return frozenset[int]().union(*map(marks, jaxprs_in_params(eqn.params)))


def first_uses(jaxpr: Jaxpr) -> list[int | None]:
    """The IPU of the first stage that uses each argument of a program."""
    first: dict[Var, int] = {}
    for eqn in reversed(jaxpr.eqns):
        mark, inside = marked(eqn), list(jaxprs_in_params(eqn.params))
        later = next((first[v] for v in eqn.outvars if v in first), None)
        uses = [later if mark is None else mark] * len(eqn.invars)
        if mark is None and len(inside) == 1 and len(inside[0].invars) == len(uses):
            uses = [later if k is None else k for k in first_uses(inside[0])]
        pairs = zip(eqn.invars, uses, strict=True)
        first |= {x: k for x, k in pairs if isinstance(x, Var) and k is not None}
    return [first.get(v) for v in jaxpr.invars]


def phase_of(eqn: JaxprEqn) -> str | None:
    """Whether differentiation made an equation part of a forward or of a backward pass."""
    names = str(eqn.source_info.name_stack)
    return "backward" if "transpose(" in names else "forward" if "jvp(" in names else None

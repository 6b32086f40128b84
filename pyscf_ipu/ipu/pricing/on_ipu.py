"""Stages of a program on IPUs of their own: what `with on_ipu(k)` marks, where the rest goes."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import jax
from jax.extend.core import Jaxpr, JaxprEqn, jaxprs_in_params

from pyscf_ipu.base.errors import UsageError

_MARK = re.compile(r"on_ipu_(\d+)")
LOOPS = frozenset(("while", "scan", "cond"))


@contextmanager
def on_ipu(number: int) -> Iterator[None]:
    """What is traced inside belongs to one stage of a pipeline, on an IPU of its own.

    Derivatives of what is inside belong to it, too.  Operations that no stage claims follow their
    operands: they are on the last IPU that one of these is on.  A loop is on one IPU, the last one
    that is named inside.

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
    if eqn.primitive.name not in LOOPS:
        return None
    marks = [last for inner in jaxprs_in_params(eqn.params) if (last := last_mark(inner)) >= 0]
    return max(marks, default=None)


def last_mark(jaxpr: Jaxpr) -> int:
    """The last IPU that a program names, -1 if it names none."""
    latest = -1
    for eqn in jaxpr.eqns:
        marks = _MARK.findall(str(eqn.source_info.name_stack))
        latest = max(latest, *(int(m) for m in marks), -1)
        for inner in jaxprs_in_params(eqn.params):
            latest = max(latest, last_mark(inner))
    return latest

"""What a jaxpr says by itself: last uses, named scopes, values known at compile time."""

import re

import jax
import numpy as np
from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var
from jax.typing import ArrayLike

from pyscf_ipu.ipu.chip.collectives import COLLECTIVES
from pyscf_ipu.ipu.steps.values import Value
from pyscf_ipu.ipu.vertices.equation import aval

FOLDED = 2**22  # elements up to which a constant is computed when the program is priced
UNFOLDED = COLLECTIVES | set(
    "tile_map axis_index random_seed random_wrap random_unwrap random_bits random_fold_in".split()
)
TRANSFORMS = re.compile(r"^(\w+)\((.*)\)$")
CONTROL = frozenset("while body cond scan branch checkpoint closed_call shard_map".split())


def last_uses(jaxpr: Jaxpr) -> dict[Var, int]:
    """Index of the last equation that uses each variable; results of the block live on."""
    last: dict[Var, int] = dict.fromkeys([*jaxpr.constvars, *jaxpr.invars], -1)
    for i, eqn in enumerate(jaxpr.eqns):
        for x in eqn.invars:
            if not isinstance(x, Literal):
                last[x] = i
    for x in jaxpr.outvars:
        if not isinstance(x, Literal):
            last[x] = len(jaxpr.eqns)
    return last


def stage(eqn: JaxprEqn) -> str:
    """The outermost named scope of an equation; transposed, `forward` is `backward`."""
    for part in str(eqn.source_info.name_stack).split("/"):
        transposed = part.startswith("transpose(")
        while (match := TRANSFORMS.match(part)) is not None:
            if match.group(1) in ("jit", "pjit"):
                part = ""
                break
            part = match.group(2)
        if part and part not in CONTROL:
            return "backward" if transposed and part == "forward" else part
    return ""


def fold(eqn: JaxprEqn, ins: list[Value]) -> list[ArrayLike] | None:
    """The results, if they are known at compile time.

    Only integers and conditions are computed, because they can be indices.  Other constants are
    replaced by zero.
    """
    if any(v.constant is None for v in ins) or eqn.effects or eqn.primitive.name in UNFOLDED:
        return None
    avals = [aval(v) for v in eqn.outvars]
    if sum(a.size for a in avals) > FOLDED:
        return None
    if all(np.issubdtype(a.dtype, np.floating) for a in avals):
        return [np.broadcast_to(np.zeros((), a.dtype), a.shape) for a in avals]
    if any(np.issubdtype(np.asarray(v.constant).dtype, np.floating) for v in ins):
        return None
    with jax.ensure_compile_time_eval():
        params = eqn.primitive.get_bind_params(eqn.params)
        outs = eqn.primitive.bind(*(jax.device_put(v.constant) for v in ins), **params)
    return list(outs) if eqn.primitive.multiple_results else [outs]

"""How often the loops of a program really run, and which branches it takes.

The program is traced again with a counter carried along by every `while` and `cond`.  Loops with
a trip count known at compile time need none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun

Path = tuple[int, ...]
"""Which equation: its place in the program, the branch, its place there, ..."""

INLINED = ("jit", "pjit", "closed_call", "core_call", "remat", "checkpoint", "custom_jvp_call",
           "custom_vjp_call", "custom_vjp_call_jaxpr")  # fmt: skip
Counts = dict[Path, Array]


def called(eqn: Any) -> ClosedJaxpr | None:
    """The jaxpr that an equation merely calls, if it does nothing else."""
    if eqn.primitive.name not in INLINED:
        return None
    for key in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        if key in eqn.params:
            found = eqn.params[key]
            return found if hasattr(found, "consts") else ClosedJaxpr(found, ())
    return None


def sites(jaxpr: Jaxpr, path: Path = ()) -> Iterator[Path]:
    """Every loop and branch whose count is only known when the program runs."""
    for i, eqn in enumerate(jaxpr.eqns):
        here = (*path, i)
        inner = called(eqn)
        if inner is not None:
            yield from sites(inner.jaxpr, here)
        elif eqn.primitive.name == "while":
            yield here
            yield from sites(eqn.params["body_jaxpr"].jaxpr, here)
            # Those of the test are not counted while the loop runs: see `_while`.
        elif eqn.primitive.name == "scan":
            yield from sites(eqn.params["jaxpr"].jaxpr, here)
        elif eqn.primitive.name == "cond":
            for k, branch in enumerate(eqn.params["branches"]):
                yield (*here, k)
                yield from sites(branch.jaxpr, (*here, k))


def counting(closed: ClosedJaxpr) -> Callable[..., Counts]:
    """A function of the program's flat arguments that returns the count of every site."""

    def run(*args: Array) -> Counts:
        return _evaluate(closed.jaxpr, closed.consts, args, ())[1]

    return run


def _evaluate(jaxpr: Jaxpr, consts: Any, args: Any, path: Path) -> tuple[list, Counts]:
    values: dict = dict(zip(jaxpr.constvars, consts, strict=True))
    values |= dict(zip(jaxpr.invars, args, strict=True))
    counts: Counts = {}
    for i, eqn in enumerate(jaxpr.eqns):
        operands = [x.val if isinstance(x, Literal) else values[x] for x in eqn.invars]
        outs, found = _equation(eqn, operands, (*path, i))
        counts |= found
        values |= dict(zip(eqn.outvars, outs, strict=True))
    return [x.val if isinstance(x, Literal) else values[x] for x in jaxpr.outvars], counts


def _equation(eqn: Any, operands: list, path: Path) -> tuple[list, Counts]:
    inner = called(eqn)
    dynamic = {"while": _while, "scan": _scan, "cond": _cond}.get(eqn.primitive.name)
    if inner is not None and any(sites(inner.jaxpr)):
        return _evaluate(inner.jaxpr, inner.consts, operands, path)
    if dynamic is not None and (eqn.primitive.name != "scan" or _inner(eqn)):
        return dynamic(eqn, operands, path)
    outs = eqn.primitive.bind(*operands, **eqn.primitive.get_bind_params(eqn.params))
    return (list(outs) if eqn.primitive.multiple_results else [outs]), {}


def _inner(eqn: Any) -> bool:
    return any(sites(eqn.params["jaxpr"].jaxpr))


def _zeros(paths: Iterator[Path]) -> Counts:
    return {p: jnp.zeros((), jnp.int32) for p in paths}


def _added(total: Counts, more: Counts) -> Counts:
    return {p: n + more.get(p, 0) for p, n in total.items()}


def _while(eqn: Any, operands: list, path: Path) -> tuple[list, Counts]:
    n_cond, n_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    of_cond, of_body = operands[:n_cond], operands[n_cond : n_cond + n_body]

    def proceed(state: Any) -> Array:
        return jaxpr_as_fun(test)(*of_cond, *state[0])[0]

    def step(state: Any) -> Any:
        carry, trips, inner = state
        outs, found = _evaluate(body.jaxpr, body.consts, (*of_body, *carry), path)
        return tuple(outs), trips + 1, _added(inner, found)

    start = (
        tuple(operands[n_cond + n_body :]), jnp.zeros((), jnp.int32),
        _zeros(sites(body.jaxpr, path)),
    )  # fmt: skip
    outs, trips, inner = lax.while_loop(proceed, step, start)
    return list(outs), {path: trips} | inner


def _scan(eqn: Any, operands: list, path: Path) -> tuple[list, Counts]:
    body, n_consts, n_carry = (eqn.params[k] for k in ("jaxpr", "num_consts", "num_carry"))
    consts, carry = operands[:n_consts], operands[n_consts : n_consts + n_carry]

    def step(state: Any, x: Any) -> Any:
        carry, inner = state
        outs, found = _evaluate(body.jaxpr, body.consts, (*consts, *carry, *x), path)
        return (tuple(outs[:n_carry]), _added(inner, found)), tuple(outs[n_carry:])

    start = (tuple(carry), _zeros(sites(body.jaxpr, path)))
    (carry, inner), ys = lax.scan(
        step, start, tuple(operands[n_consts + n_carry :]),
        length=eqn.params["length"], reverse=eqn.params["reverse"],
    )  # fmt: skip
    return [*carry, *ys], inner


def _cond(eqn: Any, operands: list, path: Path) -> tuple[list, Counts]:
    branches = eqn.params["branches"]
    every = [p for k, b in enumerate(branches) for p in ((*path, k), *sites(b.jaxpr, (*path, k)))]

    def taken(k: int) -> Callable[..., Any]:
        def run(*args: Array) -> Any:
            outs, found = _evaluate(branches[k].jaxpr, branches[k].consts, args, (*path, k))
            return tuple(outs), _zeros(iter(every)) | found | {(*path, k): jnp.ones((), jnp.int32)}

        return run

    chosen = [taken(k) for k in range(len(branches))]
    outs, found = lax.switch(operands[0], chosen, *operands[1:])
    return list(outs), found


def run_counts(closed: ClosedJaxpr) -> Callable[..., dict[Path, int]]:
    """`counting`, compiled; returns Python integers."""
    if not any(sites(closed.jaxpr)):
        return lambda *_: {}
    compiled = jax.jit(counting(closed))
    return lambda *args: {p: int(n) for p, n in jax.device_get(compiled(*args)).items()}

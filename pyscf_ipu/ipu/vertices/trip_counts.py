"""Real trips of the loops of a program, and the branches that it takes.

The program is traced again with a counter carried along by every `while` and `cond`.  Loops with
a trip count known at compile time need none.
"""

from collections.abc import Callable, Iterator, Sequence

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from jax.sharding import PartitionSpec

from pyscf_ipu.ipu.vertices.equation import traced
from pyscf_ipu.ipu.vertices.jax_equations import (
    branches_of,
    called,
    mesh_of,
    parameter,
    scan_of,
    while_of,
)

Path = tuple[int, ...]
"""An equation: its place in the program, then the branch, its place there, and so on."""

TEST = -1
"""Stands in a path for the test of a `while`; its equations are numbered as those of the body."""

Counts = dict[Path, Array]
State = tuple[tuple[object, ...], Counts]
Turn = tuple[tuple[object, ...], Array, Array, Counts]
"""What a counted while loop carries: its own values, its trips, whether it goes on, and the counts
of its body and its test."""


def opened(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The jaxpr that an equation calls; of a codelet its portable form, which a vertex runs."""
    if eqn.primitive.name != "codelet":
        return called(eqn)
    return traced(eqn.params["portable"], eqn)


def sites(jaxpr: Jaxpr, path: Path = ()) -> Iterator[Path]:
    """Every loop and branch whose count is only known when the program runs."""
    for i, eqn in enumerate(jaxpr.eqns):
        here = (*path, i)
        inner = called(eqn)
        if inner is not None:
            yield from sites(inner.jaxpr, here)
        elif eqn.primitive.name == "while":
            yield from sites_of_while(eqn, here)
        elif eqn.primitive.name == "scan":
            yield from sites(scan_of(eqn).body.jaxpr, here)
        elif eqn.primitive.name == "cond":
            for k, branch in enumerate(branches_of(eqn)):
                yield (*here, k)
                yield from sites(branch.jaxpr, (*here, k))


def _evaluate(
    jaxpr: Jaxpr, consts: Sequence[object], args: Sequence[object], path: Path
) -> tuple[list[object], Counts]:
    values: dict[Var, object] = dict(zip(jaxpr.constvars, consts, strict=True))
    values |= dict(zip(jaxpr.invars, args, strict=True))
    counts: Counts = {}
    for i, eqn in enumerate(jaxpr.eqns):
        operands = [x.val if isinstance(x, Literal) else values[x] for x in eqn.invars]
        outs, within = _equation(eqn, operands, (*path, i))
        counts |= within
        values |= dict(zip(eqn.outvars, outs, strict=True))
    return [x.val if isinstance(x, Literal) else values[x] for x in jaxpr.outvars], counts


def _equation(eqn: JaxprEqn, operands: list[object], path: Path) -> tuple[list[object], Counts]:
    name, inner = eqn.primitive.name, called(eqn)
    counted = {"while": _while, "scan": _scan, "cond": _cond}.get(name)
    if name == "shard_map" and inner is not None and any(sites(inner.jaxpr)):
        return _sharded(eqn, inner, operands, path=path)
    if inner is not None and any(sites(inner.jaxpr)):
        return _evaluate(inner.jaxpr, inner.consts, operands, path=path)
    if counted is not None and (name != "scan" or any(sites(scan_of(eqn).body.jaxpr))):
        return counted(eqn, operands, path)
    outs = eqn.primitive.bind(*operands, **eqn.primitive.get_bind_params(eqn.params))
    return (list(outs) if eqn.primitive.multiple_results else [outs]), {}


def _zeros(paths: Iterator[Path]) -> Counts:
    return {p: jnp.zeros((), jnp.int32) for p in paths}


def _added(total: Counts, more: Counts) -> Counts:
    return {p: n + more.get(p, 0) for p, n in total.items()}


def _while(eqn: JaxprEqn, operands: list[object], path: Path) -> tuple[list[object], Counts]:
    test, body, n_cond, n_body = while_of(eqn)
    of_cond, of_body = operands[:n_cond], operands[n_cond : n_cond + n_body]

    def asked(carry: tuple[object, ...]) -> tuple[Array, Counts]:
        (go_on,), within = _evaluate(
            test.jaxpr, test.consts, (*of_cond, *carry), path=(*path, TEST)
        )
        return jnp.asarray(go_on), within

    def step(state: Turn) -> Turn:
        carry, trips, _, inner = state
        outs, within = _evaluate(body.jaxpr, body.consts, (*of_body, *carry), path=path)
        go_on, more = asked(tuple(outs))
        return tuple(outs), trips + 1, go_on, _added(inner, within | more)

    # The test runs once more than the body, so it is asked at the end of a turn.
    carry = tuple(operands[n_cond + n_body :])
    go_on, within = asked(carry)
    here = _zeros(s for s in sites_of_while(eqn, path) if s != path)
    start = carry, jnp.zeros((), jnp.int32), go_on, _added(here, within)
    outs, trips, _, inner = lax.while_loop(lambda state: state[2], step, start)
    return list(outs), {path: trips} | inner


def sites_of_while(eqn: JaxprEqn, path: Path) -> Iterator[Path]:
    """The sites of a `while` at `path`: itself, those of its body and those of its test."""
    loop = while_of(eqn)
    yield path
    yield from sites(loop.body.jaxpr, path)
    yield from sites(loop.test.jaxpr, (*path, TEST))


def _sharded(
    eqn: JaxprEqn, body: ClosedJaxpr, operands: list[object], path: Path
) -> tuple[list[object], Counts]:
    """The counts of the first device; those of all are the same but for data."""

    def run(*args: object) -> tuple[tuple[object, ...], Counts]:
        outs, within = _evaluate(body.jaxpr, body.consts, args, path=path)
        return tuple(outs), within

    into, outof = (tuple(parameter(eqn, tuple, f"{of}_specs")) for of in ("in", "out"))
    specs = {"in_specs": into, "out_specs": (outof, PartitionSpec())}
    outs, within = jax.shard_map(run, mesh=mesh_of(eqn), check_vma=False, **specs)(*operands)
    return list(outs), within


def _scan(eqn: JaxprEqn, operands: list[object], path: Path) -> tuple[list[object], Counts]:
    body, n_consts, n_carry, length, reverse = scan_of(eqn)
    consts, carry = operands[:n_consts], operands[n_consts : n_consts + n_carry]

    def step(state: State, x: tuple[object, ...]) -> tuple[State, tuple[object, ...]]:
        carry, inner = state
        outs, within = _evaluate(body.jaxpr, body.consts, (*consts, *carry, *x), path=path)
        return (tuple(outs[:n_carry]), _added(inner, within)), tuple(outs[n_carry:])

    start = (tuple(carry), _zeros(sites(body.jaxpr, path)))
    rows = tuple(operands[n_consts + n_carry :])
    (carry, inner), ys = lax.scan(step, start, rows, length=length, reverse=reverse)
    return [*carry, *ys], inner


def _cond(eqn: JaxprEqn, operands: list[object], path: Path) -> tuple[list[object], Counts]:
    branches = branches_of(eqn)
    every = [p for k, b in enumerate(branches) for p in ((*path, k), *sites(b.jaxpr, (*path, k)))]

    def taken(k: int) -> Callable[..., State]:
        def run(*args: Array) -> State:
            outs, within = _evaluate(branches[k].jaxpr, branches[k].consts, args, path=(*path, k))
            return tuple(outs), _zeros(iter(every)) | within | {(*path, k): jnp.ones((), jnp.int32)}

        return run

    chosen = [taken(k) for k in range(len(branches))]
    outs, within = lax.switch(operands[0], chosen, *operands[1:])
    return list(outs), within


def with_counts(closed: ClosedJaxpr) -> Callable[..., tuple[list[object], Counts]]:
    """The program as a function of its flat arguments that also returns the count of every site."""
    return lambda *args: _evaluate(closed.jaxpr, closed.consts, args, path=())


def run_counts(closed: ClosedJaxpr, quick: bool = False) -> Callable[..., dict[Path, int]]:
    """A function of the program's flat arguments that returns the count of every site.

    With `quick` it is compiled in two thirds of the time, with the least optimisation: right where
    nothing else of the program runs, to which the counts have to belong to the last bit.
    """
    if not any(sites(closed.jaxpr)):
        return lambda *_: {}
    # It runs once: folding the tables of indices takes longer than looking them up.
    options: dict[str, str | int] = {"xla_disable_hlo_passes": "constant_folding"}
    compiled = jax.jit(
        lambda *args: _evaluate(closed.jaxpr, closed.consts, args, path=())[1],
        compiler_options=options | ({"xla_backend_optimization_level": 0} if quick else {}),
    )
    return lambda *args: {p: int(n) for p, n in jax.device_get(compiled(*args)).items()}

"""Real trips of the loops of a program, and the branches that it takes.

The program is traced again with a counter carried along by every `while` and `cond`.  Loops with
a trip count known at compile time need none.

`vmap` of a loop whose test depends on the lane makes one loop for all lanes: its test has an answer
for each, it ends with the last of them, and a lane that has ended keeps its values.  Its turns are
counted, and besides those of each lane.  The vertices of a `tile_map` count for themselves.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun
from jax.sharding import PartitionSpec
from jax.typing import ArrayLike

from pyscf_ipu.ipu.vertices.equation import traced
from pyscf_ipu.ipu.vertices.jax_equations import (
    branches_of,
    called,
    lanes_of,
    mesh_of,
    parameter,
    scan_of,
    while_of,
)

Path = tuple[int, ...]
"""An equation: its place in the program, then the branch, its place there, and so on."""

TEST = -1
"""Stands in a path for the test of a `while`; its equations are numbered as those of the body."""

LANES = -2
"""Ends a path: the counts of the lanes of the outermost batched loop around it."""

AT_ONCE = 1024
"""Vertices that are counted side by side, so that their loops turn together."""

Counts = dict[Path, Array]
RunCounts = dict[Path, np.ndarray]
Values = Sequence[ArrayLike]
Result = tuple[Values, Counts]
Out = TypeVar("Out")
Measures = Mapping[Path, Sequence[tuple[Path, Callable[[Counts], Array]]]]
"""By the path of a block, () for the program: numbers that follow from the counts of one run.

They add up over all runs, among the counts: at the block's path and a number below `LANES`."""


def opened(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The jaxpr that an equation calls; of a codelet its portable form, which a vertex runs."""
    if eqn.primitive.name != "codelet":
        return called(eqn)
    return traced(eqn.params["portable"], eqn)


def counted_vertex(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The vertex of a `tile_map`, unless its cycles are declared."""
    if eqn.primitive.name != "tile_map":
        return None
    declared = eqn.params["declared"]
    return None if declared and declared.primitive.perf_estimate else eqn.params["jaxpr"]


def sites(jaxpr: Jaxpr, path: Path = ()) -> Iterator[Path]:
    """Every loop and branch whose count is only known when the program runs."""
    for i, eqn in enumerate(jaxpr.eqns):
        here = (*path, i)
        inner = called(eqn) or counted_vertex(eqn)
        if inner is not None:
            yield from sites(inner.jaxpr, here)
        elif eqn.primitive.name == "while":
            loop = while_of(eqn)
            yield here
            yield from sites(loop.body.jaxpr, here)
            yield from sites(loop.test.jaxpr, (*here, TEST))
        elif eqn.primitive.name == "scan":
            yield from sites(scan_of(eqn).body.jaxpr, here)
        elif eqn.primitive.name == "cond":
            for k, branch in enumerate(branches_of(eqn)):
                yield (*here, k)
                yield from sites(branch.jaxpr, (*here, k))


def lanes_that_go_on(go_on: Array, after: Values, before: Values) -> list[Array]:
    """The values of a batched loop after a turn: a lane that has ended keeps those before it."""

    pairs = zip(map(jnp.asarray, before), map(jnp.asarray, after), strict=True)
    axes = range(go_on.ndim)
    return [lax.select_n(lax.broadcast_in_dim(go_on, x.shape, axes), x, y) for x, y in pairs]


class _Counter:
    """Runs a program and counts."""

    def __init__(self, measures: Measures) -> None:
        self.measures = measures

    def block(self, closed: ClosedJaxpr, args: Values, path: Path) -> Result:
        jaxpr = closed.jaxpr
        values: dict[Var, ArrayLike] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        values |= dict(zip(jaxpr.invars, args, strict=True))
        counts: Counts = {}
        for i, eqn in enumerate(jaxpr.eqns):
            operands = [x.val if isinstance(x, Literal) else values[x] for x in eqn.invars]
            outs, within = self._equation(eqn, operands, (*path, i))
            counts |= within
            values |= dict(zip(eqn.outvars, outs, strict=True))
        counts |= {key: measure(counts) for key, measure in self.measures.get(path, ())}
        return [x.val if isinstance(x, Literal) else values[x] for x in jaxpr.outvars], counts

    def _equation(self, eqn: JaxprEqn, operands: list[ArrayLike], path: Path) -> Result:
        name, inner = eqn.primitive.name, called(eqn) or counted_vertex(eqn)
        counted = {"while": self._while, "scan": self._scan, "cond": self._cond}.get(name)
        if inner is not None and any(sites(inner.jaxpr)):
            if name == "tile_map":
                return self._vertices(eqn, operands, path)
            if name == "shard_map":
                return self._sharded(eqn, inner, operands, path=path)
            return self.block(inner, operands, path)
        if counted is not None and (name != "scan" or any(sites(scan_of(eqn).body.jaxpr))):
            return counted(eqn, operands, path)
        outs = eqn.primitive.bind(*operands, **eqn.primitive.get_bind_params(eqn.params))
        return (list(outs) if eqn.primitive.multiple_results else [outs]), {}

    def _while(self, eqn: JaxprEqn, operands: list[ArrayLike], path: Path) -> Result:
        (test, body, n_cond, n_body), lanes = while_of(eqn), lanes_of(eqn)
        of_cond, of_body = operands[:n_cond], operands[n_cond : n_cond + n_body]

        def asked(carry: Values) -> tuple[Array, Counts]:
            (go_on,), within = self.block(test, (*of_cond, *carry), (*path, TEST))
            return jnp.asarray(go_on), within

        def turn(carry: Values, here: Array) -> tuple[Values, Array, Counts]:
            outs, within = self.block(body, (*of_body, *carry), path)
            outs = lanes_that_go_on(here, outs, carry) if lanes else outs
            go_on, more = asked(outs)  # it is asked once more than there are turns
            within |= more | {path: jnp.int32(1)}
            return outs, go_on, within | (_by_lane(within, here) if lanes else {})

        carry = operands[n_cond + n_body :]
        go_on, first = asked(carry)
        first |= _by_lane(first, jnp.ones(lanes, bool)) if lanes else {}
        run, (*_, shapes) = _traced(turn, carry, go_on)

        def step(state: tuple[Values, Array, Counts]) -> tuple[Values, Array, Counts]:
            outs, go_on, within = run(*state[:2])
            return outs, go_on, _added(state[2], within)

        start = carry, go_on, _added(jax.tree.map(jnp.zeros_like, shapes), first)
        outs, _, counts = lax.while_loop(lambda state: jnp.any(state[1]), step, start)
        return outs, counts

    def _vertices(self, eqn: JaxprEqn, operands: list[ArrayLike], path: Path) -> Result:
        vertex, n = eqn.params["jaxpr"], eqn.params["n_consts"]
        consts, rows = operands[:n], tuple(operands[n:])

        def run(row: Values) -> Result:
            return self.block(vertex, (*consts, *row), path)

        return lax.map(run, rows, batch_size=min(AT_ONCE, len(eqn.params["tiles"])))

    def _sharded(
        self, eqn: JaxprEqn, body: ClosedJaxpr, operands: list[ArrayLike], path: Path
    ) -> Result:
        """The counts of the first device; those of all are the same but for data."""

        def run(*args: ArrayLike) -> tuple[tuple[ArrayLike, ...], Counts]:
            outs, within = self.block(body, args, path)
            return tuple(outs), within

        into, outof = (tuple(parameter(eqn, tuple, f"{of}_specs")) for of in ("in", "out"))
        specs = {"in_specs": into, "out_specs": (outof, PartitionSpec())}
        outs, within = jax.shard_map(run, mesh=mesh_of(eqn), check_vma=False, **specs)(*operands)
        return list(outs), within

    def _scan(self, eqn: JaxprEqn, operands: list[ArrayLike], path: Path) -> Result:
        body, n_consts, n_carry, length, reverse = scan_of(eqn)
        n = n_consts + n_carry
        consts, carry, rows = operands[:n_consts], operands[n_consts:n], operands[n:]
        first = [jax.ShapeDtypeStruct(np.shape(x)[1:], jnp.result_type(x)) for x in rows]

        def turn(*args: ArrayLike) -> Result:
            return self.block(body, (*consts, *args), path)

        run, (_, shapes) = _traced(turn, *carry, *first)

        def step(state: Result, x: Values) -> tuple[Result, Values]:
            outs, within = run(*state[0], *x)
            return (outs[:n_carry], _added(state[1], within)), outs[n_carry:]

        start = carry, jax.tree.map(jnp.zeros_like, shapes)
        (carry, counts), ys = lax.scan(step, start, rows, length=length, reverse=reverse)
        return [*carry, *ys], counts

    def _cond(self, eqn: JaxprEqn, operands: list[ArrayLike], path: Path) -> Result:
        def taken(k: int, branch: ClosedJaxpr, *args: ArrayLike) -> Result:
            outs, within = self.block(branch, args, (*path, k))
            return outs, within | {(*path, k): jnp.int32(1)}

        ways = [
            _traced(functools.partial(taken, k, branch), *operands[1:])
            for k, branch in enumerate(branches_of(eqn))
        ]
        zeros = {p: jnp.zeros_like(n) for _, (_, shapes) in ways for p, n in shapes.items()}

        def chosen(run: Callable[..., Result], *args: ArrayLike) -> Result:
            outs, within = run(*args)
            return outs, zeros | within

        runs = [functools.partial(chosen, run) for run, _ in ways]
        return lax.switch(operands[0], runs, *operands[1:])


def _traced(fn: Callable[..., Out], *args: object) -> tuple[Callable[..., Out], Out]:
    """The function, which is traced only here, and the shapes of its results."""
    closed, shape = jax.make_jaxpr(fn, return_shape=True)(*args)
    tree, run = jax.tree.structure(shape), jaxpr_as_fun(closed)

    def again(*args: object) -> Out:
        return jax.tree.unflatten(tree, map(jnp.asarray, run(*jax.tree.leaves(args))))

    return again, shape


def _by_lane(counts: Counts, here: Array) -> Counts:
    """The counts of one turn for every lane `here`, over all lanes of loops inside."""

    def of_lanes(n: Array) -> Array:
        inner = here.ndim if n.shape[: here.ndim] == here.shape else 0
        return jnp.where(here, n.sum(tuple(range(inner, n.ndim))), 0)

    whole = {p: n for p, n in counts.items() if n.dtype == jnp.int32 and p[-1] != LANES}
    return {(*p, LANES): of_lanes(counts.get((*p, LANES), n)) for p, n in whole.items()}


def _added(total: Counts, more: Counts) -> Counts:
    return {p: n + more[p] if p in more else n for p, n in total.items()}


def with_counts(
    closed: ClosedJaxpr, measures: Measures = MappingProxyType({})
) -> Callable[..., Result]:
    """The program as a function of its flat arguments that also returns the count of every site."""
    return lambda *args: _Counter(measures).block(closed, args, ())


def run_counts(
    closed: ClosedJaxpr, quick: bool = False, measures: Measures = MappingProxyType({})
) -> Callable[..., RunCounts]:
    """A function of the program's flat arguments that returns the count of every site.

    With `quick` it is compiled in two thirds of the time, with the least optimisation: right where
    nothing else of the program runs, to which the counts have to belong to the last bit.
    """
    if not any(sites(closed.jaxpr)):
        return lambda *_: {}
    # It runs once: folding the tables of indices takes longer than looking them up.
    options: dict[str, str | int] = {"xla_disable_hlo_passes": "constant_folding"}
    options |= {"xla_backend_optimization_level": 0} if quick else {}
    run = with_counts(closed, measures)
    compiled = jax.jit(lambda *args: run(*args)[1], compiler_options=options)
    return lambda *args: jax.device_get(compiled(*args))

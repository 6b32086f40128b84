"""Cycles of a vertex, counted from its own program.

A vertex is a JAX function of one tile's rows.  Its cycles are an interval.  The low end counts the
floating-point issue slots that hand-written code needs: every elementwise operation at PopLibs's
cycles per 64-bit vector, matrix products at the rate of the matrix unit, moves that only rename
elements free (loads and address arithmetic go through the other pipeline).  The high end is what a
C++ vertex was measured to take: matrix products at the rate of the vector unit, and everything
times `Target.compiled_code_factor`.

Loops count by their trips.  What runs as often as data decide, the turns of a `while` and the
branches of a `cond`, is a part of its own, which each worker pays as often as it runs it.
An operation without a figure is listed, and counts nothing: the result is then a lower bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params

from pyscf_ipu.ipu.chip.popops import (
    BRANCH,
    GATHER_OFFSET,
    HALF_VECTOR,
    VECTOR,
    WORKER_CYCLES,
    op_cost,
)
from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.vertices.equation import aval, is_half, refuse_types, size
from pyscf_ipu.ipu.vertices.jax_equations import (
    branches_of,
    called,
    lanes_of,
    parameter,
    refuse_program,
    scan_of,
    solver_of,
    while_of,
)
from pyscf_ipu.ipu.vertices.lanes import crossing
from pyscf_ipu.ipu.vertices.trip_counts import LANES, TEST, Path, opened
from pyscf_ipu.tiles.primitive import SUBROUTINE

Operations = tuple[tuple[object, ...], ...]
"""Of each operation its name, which operands it has, by number, and the operations of its loops."""

Routine = tuple[str, Operations]
"""The name of a subroutine, and its operations in order."""

VIEWS = frozenset("reshape squeeze expand_dims broadcast_in_dim transpose slice split".split())
"""What only gives a pointer and strides to the operation that reads it."""

FREE = frozenset(
    "reshape squeeze expand_dims broadcast_in_dim transpose slice concatenate pad rev iota copy "
    "stop_gradient optimization_barrier split stack unstack empty".split()
)
REDUCTIONS = frozenset(
    "reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or argmax argmin cumsum "
    "cumprod cummax cummin cumlogsumexp".split()
)
MOVES = frozenset("dynamic_slice dynamic_update_slice gather scatter scatter-add sort".split())
_CONVERSIONS = frozenset("convert_element_type select_n random_bits".split())
_OTHERS = frozenset("dot_general conv_general_dilated scatter-add scatter_add sort top_k".split())
ARITHMETIC = (WORKER_CYCLES.keys() - _CONVERSIONS) | REDUCTIONS | _OTHERS
"""What computes, in dtypes that have arithmetic; all else also moves those that are only stored."""


@dataclass(frozen=True)
class VertexCost:
    """The work of one vertex."""

    vector_cycles: float | int = 0
    """Worker cycles of peak code, without matrix products."""
    multiply_adds: float | int = 0
    """Multiply-adds of the matrix products."""
    equations: int = 0
    """Length of the program."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Operations without a figure."""
    half_multiply_adds: float | int = 0
    """Those of `multiply_adds` that are in float16."""
    flops: float | int = 0
    """Floating-point operations: one for an element of an operation, two for a multiply-add."""
    routines: Mapping[Routine, int] = field(default_factory=dict)
    """Subroutines (`tiles.subroutine`) by their code, and their lengths without their own ones."""
    parts: Mapping[Path, VertexCost] = field(default_factory=dict)
    """What one more of each count costs; not in the cycles above, but in length and subroutines."""

    def __add__(self, other: VertexCost) -> VertexCost:
        return VertexCost(
            self.vector_cycles + other.vector_cycles,
            self.multiply_adds + other.multiply_adds,
            self.equations + other.equations,
            unknown=self.unknown + other.unknown,
            half_multiply_adds=self.half_multiply_adds + other.half_multiply_adds,
            flops=self.flops + other.flops,
            routines={**self.routines, **other.routines},
            parts={**self.parts, **other.parts},
        )

    def times(self, n: int) -> VertexCost:
        return replace(
            self,
            vector_cycles=self.vector_cycles * n,
            multiply_adds=self.multiply_adds * n,
            half_multiply_adds=self.half_multiply_adds * n,
            flops=self.flops * n,
        )

    def counted(self, path: Path) -> VertexCost:
        """This as often as a count says."""
        code = VertexCost(equations=self.equations, unknown=self.unknown, routines=self.routines)
        return replace(code, parts={path: replace(self, parts={}), **self.parts})

    def low(self, target: Target) -> float:
        single = 2.0 * (self.multiply_adds - self.half_multiply_adds)
        half = 2.0 * self.half_multiply_adds
        products = single / float(target.fp32_amp_flops_per_cycle)
        if half:
            products += half / float(target.fp16_amp_flops_per_cycle)
        return self.vector_cycles + products

    def high(self, target: Target) -> float:
        flops = 2.0 * self.multiply_adds
        plain = self.vector_cycles + flops / float(target.fp32_vector_flops_per_cycle)
        return plain * float(target.compiled_code_factor)


def count(
    jaxpr: Jaxpr, known: Sequence[bool] = (), *, path: Path | None = None, lanes: int = 0
) -> VertexCost:
    """The cost of a vertex program.

    Args:
        jaxpr: The program.
        known: Whether each argument is a compile-time constant.  The compiler works out whatever
            depends on constants alone, so that it costs nothing.
        path: Its path in the program that is run to count.  None: nothing counts its loops.
        lanes: Its arrays are of this many lanes of a batched loop, and the cost is of one lane.
    """
    total = VertexCost()
    flags = [*known, *[False] * (len(jaxpr.invars) - len(known))]
    constant = {v for v, k in zip(jaxpr.invars, flags, strict=True) if k} | set(jaxpr.constvars)
    for i, eqn in enumerate(jaxpr.eqns):
        given = [hasattr(x, "val") or x in constant for x in eqn.invars]
        refuse_types(eqn, stored=all(given) or eqn.primitive.name not in ARITHMETIC)
        if all(given) and eqn.primitive.name not in ("while", "cond"):
            constant |= set(eqn.outvars)
        else:
            here = None if path is None else (*path, i)
            total = total + _equation(eqn, given, path=here, lanes=lanes)
    return total


def lane_cost(eqn: JaxprEqn, path: Path) -> VertexCost:
    """The cost of one lane of a batched `while`, as a vertex of its own."""
    return _while(eqn, path, math.prod(lanes_of(eqn)))


def _equation(eqn: JaxprEqn, known: list[bool], path: Path | None, lanes: int) -> VertexCost:
    name, inner = eqn.primitive.name, opened(eqn)
    if inner is not None:
        counts = path if called(eqn) else None
        cost = count(inner.jaxpr, known, path=counts, lanes=lanes)
        label = str(eqn.params.get("name", ""))  # of `jit`; other calls have none
        if not label.startswith(SUBROUTINE):
            return cost
        routine = label, _operations(inner.jaxpr)
        call = 1  # pointers and lengths, as an operation has them
        routines = {routine: cost.equations, **cost.routines}
        return replace(cost, equations=call, routines=routines)
    if name == "scan":
        loop = scan_of(eqn)
        body = count(loop.body.jaxpr, known[: loop.n_consts], path=path, lanes=lanes)
        return body.times(loop.length)
    if name == "cond":
        return _cond(eqn, known, path=path, lanes=lanes)
    if name == "while":
        return _while(eqn, path, lanes)
    if name == "custom_linear_solve":
        return count(solver_of(eqn).jaxpr, lanes=lanes)
    if name in FREE or (name == "gather" and known[1]):
        return VertexCost()
    return _operation(eqn, max(1, lanes))


def _cond(eqn: JaxprEqn, known: list[bool], path: Path | None, lanes: int) -> VertexCost:
    """The branches that are taken; the most expensive one, if nothing counts them."""
    if path is None:
        branches = [count(b.jaxpr, known[1:], lanes=lanes) for b in branches_of(eqn)]
        return max(branches, key=lambda b: b.vector_cycles + b.multiply_adds)
    total = VertexCost(BRANCH)
    for k, branch in enumerate(branches_of(eqn)):
        cost = count(branch.jaxpr, known[1:], path=(*path, k), lanes=lanes)
        total = total + cost.counted((*path, k, LANES) if lanes else (*path, k))
    return total


def _while(eqn: JaxprEqn, path: Path | None, lanes: int) -> VertexCost:
    """A worker has the lanes of a batched loop in turn, unless they depend on each other."""
    loop, batch = while_of(eqn), lanes_of(eqn)
    if path is None:
        return count(loop.body.jaxpr, lanes=lanes) + VertexCost(unknown=Counter({"while": 1}))
    each = lanes
    if batch and (lanes or not crossing(eqn)):
        each = max(lanes, math.prod(batch))
    test = count(loop.test.jaxpr, path=(*path, TEST), lanes=each)
    turn = VertexCost(BRANCH) + test + count(loop.body.jaxpr, path=path, lanes=each)
    first = replace(test, equations=0, parts={})  # it is asked once more than there are turns
    return turn.counted((*path, LANES) if each else path) + first.times(each // max(1, lanes) or 1)


def _operation(eqn: JaxprEqn, lanes: int) -> VertexCost:
    name, half = eqn.primitive.name, is_half(eqn)
    if name == "dot_general":
        n = multiply_adds(eqn) / lanes
        return VertexCost(0.0, n, 1, half_multiply_adds=n * half, flops=2.0 * n)
    if name in REDUCTIONS:
        n = size(eqn.invars[0]) / lanes
        return VertexCost(n / (HALF_VECTOR if half else VECTOR), 0.0, 1, flops=n)
    if name in MOVES:
        offsets = size(eqn.invars[1]) / lanes if name in ("gather", "scatter", "scatter-add") else 1
        # An update costs what is new in it.
        moved = {"dynamic_update_slice": 1, "scatter": 2, "scatter-add": 2}.get(name)
        elements = size(eqn.outvars[0] if moved is None else eqn.invars[moved]) / lanes
        return VertexCost(GATHER_OFFSET * min(offsets, elements) + elements, 0.0, 1)
    if name in WORKER_CYCLES:
        cost, n = op_cost(name, half), size(eqn.outvars[0]) / lanes
        return VertexCost(math.ceil(n / cost.elements) * cost.cycles, 0.0, 1, flops=n)
    refuse_program(eqn)
    return VertexCost(equations=1, unknown=Counter({name: 1}))


def _operations(jaxpr: Jaxpr) -> Operations:
    """A program's operations, views seen through; those of its loops and calls among them.

    Two programs with the same are the same code, which runs over arrays of different lengths and
    strides: those are arguments, as the numbers in a table of constants are.
    """
    number: dict[Var, int] = {}
    for v in (*jaxpr.constvars, *jaxpr.invars):
        number[v] = len(number)
    next_one, operations = len(number), []
    for eqn in jaxpr.eqns:
        operands = tuple(-1 if isinstance(x, Literal) else number[x] for x in eqn.invars)
        if eqn.primitive.name in VIEWS:
            number.update(dict.fromkeys(eqn.outvars, operands[0]))
            continue
        bodies = tuple(map(_operations, jaxprs_in_params(eqn.params)))
        operations.append((eqn.primitive.name, operands, bodies))
        for v in eqn.outvars:
            number[v], next_one = next_one, next_one + 1
    return tuple(operations)


def multiply_adds(eqn: JaxprEqn) -> float:
    """Multiply-adds of a `dot_general`."""
    (contract, _), _ = parameter(eqn, tuple, "dimension_numbers")
    inner = math.prod(aval(eqn.invars[0]).shape[d] for d in contract)
    return float(size(eqn.outvars[0]) * inner)

"""Matrix products, sorting and dense solvers that a program calls as one primitive."""

import functools
import math

import numpy as np
from jax import lax
from jax.extend.core import JaxprEqn

from pyscf_ipu.ipu.chip.amp import matmul_cycles
from pyscf_ipu.ipu.chip.popops import VECTOR
from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.pricing.pricer import Pricer
from pyscf_ipu.ipu.steps.compute_sets import Work
from pyscf_ipu.ipu.steps.steps import Value
from pyscf_ipu.ipu.vertices.equation import aval, is_half, size
from pyscf_ipu.ipu.vertices.jax_equations import parameter

REFERENCE_SWEEPS = 12  # PySCF-IPU calls ipu_jacobi_eigh with num_iters=12
MOST_RESULT = 0.75
"""Share of a product's memory that the result of a block takes at most."""
Size = tuple[int, int, int]
"""Rows, inner dimension and columns."""
SCALAR_CYCLES = 4  # estimated: load, multiply, add and store of a dependent scalar step


def dot(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """A block of the product on every tile, the sum over the inner axis perhaps split."""
    (contract, _), (batch, _) = parameter(eqn, tuple, "dimension_numbers")
    left = aval(eqn.invars[0]).shape
    b = math.prod(left[d] for d in batch)
    inner = math.prod(left[d] for d in contract)
    rows = math.prod(left) // max(1, b * inner)
    columns = size(eqn.outvars[0]) // max(1, b * rows)
    product(p, "dot_general", ins, n=(b, rows, inner, columns), half=is_half(eqn))
    return p.results(eqn)


def convolution(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """Price the product of all windows with the filters, as PopLibs's vertex computes it."""
    numbers = parameter(eqn, lax.ConvDimensionNumbers, "dimension_numbers")
    kernel, out = aval(eqn.invars[1]).shape, aval(eqn.outvars[0]).shape
    groups = math.prod(parameter(eqn, int, f"{of}_group_count") for of in ("feature", "batch"))
    columns = kernel[numbers.rhs_spec[0]]
    inner = math.prod(kernel) // max(1, columns)
    rows = math.prod(out) // max(1, columns)
    n = groups, rows, inner, -(-columns // groups)
    product(p, "conv_general_dilated", ins, n=n, half=is_half(eqn))
    return p.results(eqn)


def product(
    p: Pricer, name: str, ins: list[Value], n: tuple[int, int, int, int], half: bool
) -> None:
    """`b` products of [rows, inner] by [inner, columns].

    Operands and result of a tile's block may take `Pricer.available` of its memory.  A block that
    needs more is cut along its inner dimension into parts that run one after another, each behind
    its own exchange.
    """
    b, rows, inner, columns = n
    p.half = p.half or half
    dtype, itemsize = ("float16", 2.0) if half else ("float32", 4.0)
    fits = MOST_RESULT * _room(p) / itemsize
    plan = _split(p.target, max(1, p.n_tiles // b), n[1:], dtype=dtype, fits=fits)
    tiles = min(p.n_tiles, b * plan.tiles)
    each = math.ceil(b * plan.tiles / tiles)
    used = np.zeros(p.n_tiles)
    used[:tiles] = 1.0
    result = itemsize * each * plan.rows * plan.columns
    operands = itemsize * each * plan.inner * (plan.rows + plan.columns)
    parts = _parts(p, each * plan.inner, operands, result=result)
    share = used * itemsize * each * plan.inner / parts
    cycles = each * plan.cycles
    if parts > 1:
        turn = max(1, plan.inner * each // parts)
        cycles = matmul_cycles(plan.rows, turn, plan.columns, dtype=dtype)
    flops = 2.0 * b * rows * inner * columns
    work = Work(flops / parts, tiles * (operands + result) / parts)
    with p.repeated(parts, f"{name}, in parts that fit"):
        p.fetch(ins[0], share * plan.rows)
        p.fetch(ins[1], share * plan.columns)
        p.library(name, used * cycles, f"PopLibs ConvPartial1x1, {dtype}", work=work)
        p.tracker.need_scratch(p.stage, used * result, used * (operands / parts + result))
    if plan.parts > 1:
        arriving = plan.rows * plan.columns / plan.parts * (plan.parts - 1)
        p.move(used * itemsize * arriving, used * itemsize * plan.rows * plan.columns)
        adds = p.workers * math.ceil(arriving / p.workers / VECTOR) + 100.0
        work = Work(tiles * arriving, itemsize * tiles * arriving)
        p.library(name, used * adds, "sum of the parts, an addition per element", work=work)


def _parts(p: Pricer, most: int, operands: float, result: float) -> int:
    """Turns, up to `most`, in which a tile multiplies its block, whose result stays."""
    # A result that leaves less does not fit anyway.
    room = max(_room(p) - result, (1.0 - MOST_RESULT) * _room(p))
    return min(most, math.ceil(operands / room))


def _room(p: Pricer) -> float:
    return p.available * float(p.target.memory_bytes_per_tile)


class _Block:
    """A tile's share of a product: rows x inner x columns, `parts` tiles to one result."""

    def __init__(self, target: Target, n: Size, cut: Size, dtype: str) -> None:
        self.rows, self.inner, self.columns = (-(-a // c) for a, c in zip(n, cut, strict=True))
        self.parts, self.tiles = cut[1], math.prod(cut)
        self.cycles = matmul_cycles(self.rows, self.inner, self.columns, dtype=dtype)
        rate = float(target.exchange_bytes_per_cycle)
        moved = self.inner * (self.rows + self.columns)
        moved += self.rows * self.columns if self.parts > 1 else 0
        itemsize = 2.0 if dtype == "float16" else 4.0
        self.total = self.cycles + itemsize * moved / rate + 300.0 * (self.parts > 1)


@functools.lru_cache(maxsize=4096)
def _split(target: Target, tiles: int, n: Size, dtype: str, fits: float) -> _Block:
    """The cheapest way to cut a product into blocks, of a few hundred.

    Blocks with results of more than `fits` elements are taken if there are no others.
    """
    rows, inner, columns = n
    best = _Block(target, n, (1, 1, 1), dtype=dtype)
    for k in _cuts(inner, min(tiles, max(16, rows * columns))):
        for i in _cuts(rows, tiles):
            j = max(1, min(columns, tiles // (i * k)))
            if i * k <= tiles:
                block = _Block(target, n, (i, k, j), dtype=dtype)
                best = min(best, block, key=lambda x: (x.rows * x.columns > fits, x.total))
    return best


def _cuts(n: int, most: int) -> list[int]:
    out, c = [], 1
    while c <= min(n, most):
        out.append(c)
        c = max(c + 1, int(c * 1.5))
    return out


def eigh(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """The solver of PySCF-IPU: twelve cold sweeps of Jacobi rotations on N + 1 tiles.

    Per rotation set, TessellateIPU's tests bound the vertices by 310 (rotations), 1550 (columns of
    length 256) and 1550 (eigenvectors of length 512) cycles; the last two are scaled to N.
    """
    *batch, n, _ = aval(eqn.invars[0]).shape
    n += n % 2
    turns = math.ceil(math.prod(batch) * (n + 1) / p.n_tiles)  # matrices side by side, then again
    rounds = REFERENCE_SWEEPS * max(1, n - 1) * turns
    rate, sync = (
        float(x) for x in (p.target.exchange_bytes_per_cycle, p.target.max_ipu_sync_delay)
    )
    columns, vectors = 280 + (1550 - 280) * n / 256, 280 + (1550 - 280) * n / 512
    used = np.zeros(p.n_tiles)
    used[: min(n + 1, p.n_tiles)] = 1.0
    p.fetch(ins[0], used * 8.0 * n)
    compute = rounds * (310 + 2 * columns + vectors)
    exchange = rounds * (2 * 8.0 * n + 8.0 * n) / rate
    source = "TessellateIPU's test bounds, scaled to N; 12 sweeps as PySCF-IPU"
    work = Work(9.0 * n * n * (n - 1) * REFERENCE_SWEEPS * math.prod(batch))
    p.library("jacobi_eigh", used * compute, source, how="estimated", work=work)
    p.other("exchange", "jacobi_eigh", exchange, origin=("estimated", source))
    p.other("sync", "jacobi_eigh", rounds * 3 * sync, origin=("estimated", source))
    return p.results(eqn)


def dense(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """Small factorisations and solves: by one worker of one tile, a scalar step after the other."""
    shapes = [aval(x).shape for x in eqn.invars]
    n = max((s[-2] for s in shapes if len(s) > 1), default=1)
    # Of a solution, its right-hand sides alone; batches count as columns.
    solves = eqn.primitive.name in ("triangular_solve", "custom_linear_solve")
    given = shapes[-len(eqn.outvars) :] if solves else shapes
    columns = max((math.prod(s) / n for s in given), default=1.0)
    per_column = {"lu": n * n / 3, "cholesky": n * n / 6, "lu_pivots_to_permutation": 1.0}
    multiply_adds = columns * per_column.get(eqn.primitive.name, float(n * n))
    used = np.zeros(p.n_tiles)
    used[min(1, p.n_tiles - 1)] = 1.0
    for v in ins:
        p.fetch(v, used * v.size * v.itemsize)
    cycles = p.workers * SCALAR_CYCLES * multiply_adds
    source = "multiply-adds of the textbook algorithm, four worker cycles each"
    work = Work(2.0 * multiply_adds)
    p.library(eqn.primitive.name, used * cycles, source, how="estimated", work=work)
    return p.results(eqn)


def sort(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """A bitonic network over the tiles that hold the array."""
    n = max(2, aval(eqn.invars[0]).shape[parameter(eqn, int, "dimension")])
    stages = math.ceil(math.log2(n)) * (math.ceil(math.log2(n)) + 1) / 2
    out = p.results(eqn)
    _network(p, "sort", ins, stages=stages, held=out[0].place.elements * len(out))
    return out


def top_k(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """A bitonic network that keeps the k largest: sorts runs of k, then halves their number."""
    shape, k = aval(eqn.invars[0]).shape, max(2, parameter(eqn, int, "k"))
    n, of_k = max(2, shape[-1]), math.ceil(math.log2(k))
    stages = of_k * (of_k + 1) / 2 + max(0, math.ceil(math.log2(n)) - of_k) * (1 + of_k)
    # A value travels with its index.
    _network(p, "top_k", ins, stages=stages, held=2.0 * ins[0].bytes() / ins[0].itemsize)
    return p.results(eqn)


def _network(p: Pricer, name: str, ins: list[Value], stages: float, held: np.ndarray) -> None:
    """Comparisons of a sorting network on elements [n_tiles], with an exchange for each stage."""
    rate, sync = (
        float(x) for x in (p.target.exchange_bytes_per_cycle, p.target.max_ipu_sync_delay)
    )
    if not held.any():  # a view: its elements come first, evenly
        held = np.full(p.n_tiles, ins[0].size / p.n_tiles)
    for v in ins:
        if v.view:
            p.fetch(v, held * v.itemsize)
    each = 14.0 / 4.0 * held + 100.0 * (held > 0)  # PopLibs's comparison, and a vertex around it
    source = "bitonic network, an exchange per stage"
    p.library(name, stages * each, source, how="estimated")
    p.other("exchange", name, stages * 4.0 * float(held.max()) / rate, origin=("estimated", source))
    p.other("sync", name, stages * sync, origin=("estimated", source))

"""Matrix products, sorting and dense solvers that a program calls as one primitive."""

import functools
import math

import numpy as np
from jax.extend.core import JaxprEqn

from pyscf_ipu.ipu.chip.amp import matmul_cycles
from pyscf_ipu.ipu.chip.popops import VECTOR
from pyscf_ipu.ipu.chip.target import Target
from pyscf_ipu.ipu.pricing.pricer import Pricer
from pyscf_ipu.ipu.steps.steps import Value
from pyscf_ipu.ipu.vertices.equation import aval, size

REFERENCE_SWEEPS = 12  # PySCF-IPU calls ipu_jacobi_eigh with num_iters=12
SCALAR_CYCLES = 4  # estimated: load, multiply, add and store of a dependent scalar step


def dot(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """A block of the product on every tile, the sum over the inner axis perhaps split."""
    (contract, _), (batch, _) = eqn.params["dimension_numbers"]
    left = aval(eqn.invars[0]).shape
    b = math.prod(left[d] for d in batch)
    inner = math.prod(left[d] for d in contract)
    rows = math.prod(left) // max(1, b * inner)
    columns = size(eqn.outvars[0]) // max(1, b * rows)
    plan = _split(p.target, max(1, p.n_tiles // b), rows, inner, columns)
    tiles = min(p.n_tiles, b * plan.tiles)
    each = math.ceil(b * plan.tiles / tiles)
    used = np.zeros(p.n_tiles)
    used[:tiles] = 1.0
    p.fetch(ins[0], used * 4.0 * each * plan.rows * plan.inner)
    p.fetch(ins[1], used * 4.0 * each * plan.inner * plan.columns)
    p.library("dot_general", used * each * plan.cycles, "PopLibs ConvPartial1x1, float32")
    if plan.parts > 1:
        arriving = plan.rows * plan.columns / plan.parts * (plan.parts - 1)
        p.move(used * 4.0 * arriving, used * 4.0 * plan.rows * plan.columns)
        adds = p.workers * math.ceil(arriving / p.workers / VECTOR) + 100.0
        p.library("dot_general", used * adds, "sum of the parts, an addition per element")
    return p.results(eqn)


class _Block:
    """A tile's share of a product: rows x inner x columns, `parts` tiles to one result."""

    def __init__(self, target: Target, n: tuple[int, int, int], cut: tuple[int, int, int]) -> None:
        self.rows, self.inner, self.columns = (
            math.ceil(a / c) for a, c in zip(n, cut, strict=True)
        )
        self.parts, self.tiles = cut[1], math.prod(cut)
        self.cycles = matmul_cycles(self.rows, self.inner, self.columns, "float32")
        rate = float(target.exchange_bytes_per_cycle)
        moved = self.inner * (self.rows + self.columns)
        moved += self.rows * self.columns if self.parts > 1 else 0
        self.total = self.cycles + 4.0 * moved / rate + 300.0 * (self.parts > 1)


@functools.lru_cache(maxsize=4096)
def _split(target: Target, tiles: int, rows: int, inner: int, columns: int) -> _Block:
    """The cheapest way to cut a product into blocks, of a few hundred."""
    best = _Block(target, (rows, inner, columns), (1, 1, 1))
    for k in _cuts(inner, 16):
        for i in _cuts(rows, tiles):
            j = max(1, min(columns, tiles // (i * k)))
            if i * k <= tiles:
                found = _Block(target, (rows, inner, columns), (i, k, j))
                best = min(best, found, key=lambda x: x.total)
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
    p.library("jacobi_eigh", used * compute, source, "estimated")
    p.other("exchange", "jacobi_eigh", exchange, ("estimated", source))
    p.other("sync", "jacobi_eigh", rounds * 3 * sync, ("estimated", source))
    return p.results(eqn)


def dense(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """Small factorisations and solves: by one worker of one tile, a scalar step after the other."""
    shapes = [aval(x).shape for x in eqn.invars]
    n = max((s[-2] for s in shapes if len(s) > 1), default=1)
    columns = max((math.prod(s) / n for s in shapes), default=1.0)  # batches count as columns
    per_column = {"lu": n * n / 3, "cholesky": n * n / 6, "lu_pivots_to_permutation": 1.0}
    flops = columns * per_column.get(eqn.primitive.name, float(n * n))
    used = np.zeros(p.n_tiles)
    used[min(1, p.n_tiles - 1)] = 1.0
    for v in ins:
        p.fetch(v, used * v.size * v.itemsize)
    cycles = p.workers * SCALAR_CYCLES * flops
    source = "multiply-adds of the textbook algorithm, four worker cycles each"
    p.library(eqn.primitive.name, used * cycles, source, "estimated")
    return p.results(eqn)


def sort(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """A bitonic network over the tiles that hold the array."""
    n = max(2, aval(eqn.invars[0]).shape[eqn.params["dimension"]])
    stages = math.ceil(math.log2(n)) * (math.ceil(math.log2(n)) + 1) / 2
    out = p.results(eqn)
    held = out[0].place.elements * len(out)
    rate, sync = (
        float(x) for x in (p.target.exchange_bytes_per_cycle, p.target.max_ipu_sync_delay)
    )
    for v in ins:
        if v.view:
            p.fetch(v, out[0].bytes())
    each = 14.0 / 4.0 * held + 100.0 * (held > 0)  # PopLibs's comparison, and a vertex around it
    source = "bitonic network, an exchange per stage"
    p.library("sort", stages * each, source, "estimated")
    p.other("exchange", "sort", stages * 4.0 * float(held.max()) / rate, ("estimated", source))
    p.other("sync", "sort", stages * sync, ("estimated", source))
    return out

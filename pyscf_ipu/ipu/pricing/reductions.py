"""Reductions: every tile reduces what it has, then partial results are exchanged, once or twice.

The plan is PopLibs's in outline (popops, ReductionPlan): partial results of the first stage go
either straight to the tiles that own the result, or by way of intermediate tiles that each sum a
group, whichever takes fewer cycles.
"""

import math

import numpy as np
from jax.extend.core import JaxprEqn

from pyscf_ipu.ipu.chip.popops import HALF_VECTOR, VECTOR, reduction_cycles, unary_1d
from pyscf_ipu.ipu.pricing.pricer import Pricer
from pyscf_ipu.ipu.steps.compute_sets import Work
from pyscf_ipu.ipu.steps.places import on_tiles, spread
from pyscf_ipu.ipu.steps.steps import Value
from pyscf_ipu.ipu.vertices.equation import size
from pyscf_ipu.ipu.vertices.jax_equations import axes_of

SOURCE = "PopLibs ReductionPlan: a vector a cycle per worker, and a vertex around it"


def reduce(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """Any reduction of one array, or a running one, over some of its axes."""
    value = ins[0]
    name = eqn.primitive.name
    m = max(1, size(eqn.outvars[0]))
    axes = axes_of(eqn)
    rows = value.place.key[0] == "tiles" and not value.view
    held = value.place.elements
    if value.view or value.constant is not None:
        # Reduced where its elements are taken from: spread out evenly.
        held = np.full(p.n_tiles, value.size / p.n_tiles)
        p.fetch(value, held * value.itemsize)
    work = Work(float(held.sum()), float(held.sum()) * value.itemsize)
    p.library(name, _sum(p, held, value.itemsize), SOURCE, work=work)
    if name.startswith("cum"):
        # Sums of the tiles before, and another pass to add them.
        _combine(p, name, np.where(held > 0, 1.0, 0.0), m=p.n_tiles, itemsize=value.itemsize)
        p.library(name, _sum(p, held, value.itemsize), SOURCE, work=work)
        return p.results(eqn)
    if rows and 0 not in axes:
        tiles = value.place.key[1]
        return p.results(eqn, on_tiles(tiles, m // len(tiles), p.n_tiles))
    partials = np.minimum(held, m)
    _combine(p, name, partials, m=m, itemsize=value.itemsize)
    return p.results(eqn, spread(m, p.n_tiles))


def _sum(p: Pricer, elements: np.ndarray, itemsize: int = 4) -> np.ndarray:
    """Tile cycles in which the workers add up what a tile holds."""
    vector = HALF_VECTOR if itemsize == 2 else VECTOR
    inside = p.workers * reduction_cycles(1, np.ceil(elements / p.workers), vector)
    return np.where(elements > 0, unary_1d("abs", np.ones_like(elements)) + inside, 0.0)


def _combine(p: Pricer, name: str, partials: np.ndarray, m: int, itemsize: int) -> None:
    """Bring `partials` results of every tile together into m."""
    total, sources = float(partials.sum()), int((partials > 0).sum())
    if sources <= 1:
        return
    owners = min(m, p.n_tiles)
    rate = float(p.target.exchange_bytes_per_cycle)
    sync = float(p.target.max_ipu_sync_delay)
    direct = math.ceil(total / owners)
    group = max(2, round(math.sqrt(sources)))
    results = math.ceil(total / group)  # of the intermediate tiles, together
    first = math.ceil(results / p.n_tiles) * group
    second = math.ceil(results / owners)
    two = (first + second) * itemsize / rate + sync + float(_sum(p, np.array([first]))[0])
    counts = [first, second] if two < direct * itemsize / rate else [direct]
    held = partials
    for k, arriving in enumerate(counts):
        n = owners if k == len(counts) - 1 else min(p.n_tiles, results)
        incoming = np.zeros(p.n_tiles)
        incoming[:n] = arriving
        p.move(incoming * itemsize, held * itemsize)
        p.library(name, _sum(p, incoming), SOURCE)
        held = np.zeros(p.n_tiles)
        held[:n] = results / n

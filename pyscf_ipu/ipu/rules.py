"""What each primitive of JAX costs on an IPU: elementwise operations, views, vertices, look-ups.

A rule takes the pricer, an equation and the values of its operands; it fetches what has to travel,
adds to a compute set, and returns the values of the results.  `RULES` is the registry; a program
with primitives of its own passes a larger one to `simulate`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from pyscf_ipu.ipu.counting import FREE, REDUCTIONS, count
from pyscf_ipu.ipu.layout import Place, linear, on_tiles, spread
from pyscf_ipu.ipu.linear_algebra import dense, dot, eigh, sort
from pyscf_ipu.ipu.memory import BYTES_PER_INSTRUCTION, INSTRUCTIONS_PER_EQUATION
from pyscf_ipu.ipu.popops import WORKER_CYCLES, WORKERS, gather_cycles, scatter_add_cycles
from pyscf_ipu.ipu.pricing import Pricer, Rule
from pyscf_ipu.ipu.reductions import reduce
from pyscf_ipu.ipu.scratch import scratch_bytes
from pyscf_ipu.ipu.steps import Value


def elementwise(p: Pricer, eqn: Any, ins: list[Value]) -> list[Value]:
    """Where most of its elements are already; joins the fused vertex of that place."""
    aval = eqn.outvars[0].aval
    size = math.prod(aval.shape)
    there = [v for v in ins if v.size == size and v.constant is None and not v.view]
    on = max(there, key=lambda v: v.place.key[0] == "tiles", default=None)
    place = on.place if on is not None else linear(size, aval.dtype.itemsize, p.n_tiles)
    for v in ins:
        if v.constant is None and (v.view or v.place.key != place.key):
            p.fetch(v, np.minimum(place.elements, v.distinct) * v.itemsize)
    p.elementwise(place).add_operation(eqn.primitive.name)
    return [p.new(v.aval, eqn.primitive.name, place) for v in eqn.outvars]


def view(p: Pricer, eqn: Any, ins: list[Value]) -> list[Value]:
    """Other names for the same elements."""
    value, after = ins[0], eqn.outvars[0].aval
    kept = eqn.primitive.name in ("reshape", "squeeze", "expand_dims")
    if kept and not value.view and value.constant is None:
        # The order of elements is the same: if their places are too, it is not even a view.
        if value.place.key[0] != "tiles":
            return [_renamed(p, value)]
        tiles = _regrouped(value.place.key[1], after.shape[0] if after.shape else 0)
        if tiles is not None:
            return [_renamed(p, value, dataclasses.replace(value.place, key=("tiles", tiles)))]
    return [p.view(ins, v.aval) for v in eqn.outvars]


def _regrouped(tiles: tuple[int, ...], rows: int) -> tuple[int, ...] | None:
    """Tiles of `rows` longer rows made of successive ones; None if those lie on several tiles."""
    if rows == 0 or len(tiles) % rows:
        return None
    groups = np.reshape(tiles, (rows, -1))
    alike = bool(np.all(groups == groups[:, :1]))
    return tuple(int(t) for t in groups[:, 0]) if alike else None


def _renamed(p: Pricer, v: Value, place: Place | None = None) -> Value:
    """One more variable that holds the same buffers."""
    p.memory.use(v.buffers)
    return dataclasses.replace(v, place=place or v.place)


def gather(p: Pricer, eqn: Any, ins: list[Value]) -> list[Value]:
    """With indices known at compile time a view; else PopLibs's multiSlice."""
    if all(v.constant is not None for v in ins[1:]):
        return [p.view(ins[:1], v.aval) for v in eqn.outvars]
    aval = eqn.outvars[0].aval
    place = linear(math.prod(aval.shape), aval.dtype.itemsize, p.n_tiles)
    p.fetch(ins[0], place.elements * ins[0].itemsize)
    offsets = min(max(1, ins[1].size), math.prod(aval.shape))
    for v in ins[1:]:
        p.fetch(v, np.where(place.elements > 0, min(v.size, place.elements.max()) * v.itemsize, 0))
    row = math.prod(aval.shape) / offsets
    # A tile looks up its own part: of one long row, or of several short ones.
    rows = np.ceil(place.elements / row / WORKERS)
    part = np.minimum(row, np.ceil(place.elements / WORKERS))
    cycles = WORKERS * gather_cycles(rows, part)
    p.library(eqn.primitive.name, np.where(place.elements > 0, cycles, 0.0), "PopLibs multiSlice")
    return [p.new(aval, eqn.primitive.name, place)]


def update(p: Pricer, eqn: Any, ins: list[Value]) -> list[Value]:
    """dynamic_update_slice: the new elements go to where the old ones are."""
    old, new = ins[0], ins[1]
    aval = eqn.outvars[0].aval
    place = old.place if old.constant is None and not old.view else None
    out = p.new(aval, eqn.primitive.name, place)
    part = np.minimum(out.place.elements, new.size)
    p.fetch(new, part * new.itemsize)
    if place is None:
        p.fetch(old, out.bytes())
    cycles = part * new.itemsize / float(p.target.memcpy_bytes_per_cycle)
    p.library(eqn.primitive.name, cycles, "bytes at memcpy_bytes_per_cycle")
    return [out]


def scatter(p: Pricer, eqn: Any, ins: list[Value]) -> list[Value]:
    """Updates travel to the elements that they change; exactly, if the indices are known."""
    old, index, new = ins
    aval = eqn.outvars[0].aval
    size = math.prod(aval.shape)
    adds = eqn.primitive.name != "scatter"
    place = spread(size, p.n_tiles) if old.constant is not None or old.view else old.place
    share = place.elements / size
    arriving = new.size * share
    if index.constant is not None and index.constant.shape[-1:] == (1,) and len(aval.shape) == 1:
        places = index.constant.ravel()
        hits = np.bincount(places[(places >= 0) & (places < size)], minlength=size)
        run = place.elements.max(initial=1.0)
        owner = np.minimum(np.arange(size) // max(1, int(run)), p.n_tiles - 1)
        arriving = np.bincount(owner, hits, minlength=p.n_tiles).astype(float)
    p.fetch(new, arriving * new.itemsize)
    p.fetch(index, np.where(arriving > 0, index.size * share, 0.0) * index.itemsize)
    per_worker = np.ceil(arriving / WORKERS)
    cycles = WORKERS * scatter_add_cycles(per_worker, 1) if adds else arriving
    p.library(eqn.primitive.name, np.where(arriving > 0, cycles, 0.0), "PopLibs multiUpdate")
    return [p.new(aval, eqn.primitive.name, place)]


def place(p: Pricer, eqn: Any, ins: list[Value]) -> list[Value]:
    """tile_put_* and tile_gather: the rows travel to their tiles."""
    (value,) = ins
    aval, tiles = eqn.outvars[0].aval, eqn.params["tiles"]
    row = math.prod(aval.shape[1:])
    where = on_tiles(tiles, row, p.n_tiles)
    if not value.view and value.place.key == where.key and eqn.params["how"] == "sharded":
        return [_renamed(p, value)]
    incoming = where.elements
    if eqn.params["how"] == "replicated":  # one copy serves all workers of a tile
        incoming = np.where(where.elements > 0, float(row), 0.0)
        where = Place(("replicated", tiles), incoming)
    elif eqn.params["how"] == "gather" and value.kept_place() is not None:
        incoming = incoming - _already_there(value, eqn, p.n_tiles)
    p.fetch(value, np.minimum(incoming, value.distinct) * value.itemsize)
    # It is there before the next compute set, even if that is already open.
    return [dataclasses.replace(p.new(aval, "tile_place", where), made_in=None)]


def _already_there(value: Value, eqn: Any, n_tiles: int) -> np.ndarray:
    """Elements of a tile_gather whose source is on the tile that wants them: [n_tiles]."""
    tiles, index = np.array(eqn.params["tiles"]), eqn.params["indices"].value
    source = np.array(value.place.key[1])[index.reshape(len(tiles), -1)]
    row = value.size / len(value.place.key[1])
    return np.bincount(tiles, (source == tiles[:, None]).sum(1) * row, minlength=n_tiles)


def tile_map(p: Pricer, eqn: Any, ins: list[Value]) -> list[Value]:
    """One vertex per tile entry, in the compute set that is open if it does not depend on it."""
    tiles, n_consts = eqn.params["tiles"], eqn.params["n_consts"]
    jaxpr = eqn.params["jaxpr"].jaxpr
    for v in ins:
        if not p.ready(v):
            p.flush()
    here = np.bincount(tiles, minlength=p.n_tiles) > 0
    for i, v in enumerate(ins):
        if v.constant is not None:
            continue
        if i < n_consts:
            p.fetch(v, np.where(here, float(v.size), 0.0) * v.itemsize)
        elif v.view or v.place.key not in (("tiles", tiles), ("replicated", tiles)):
            p.fetch(v, on_tiles(tiles, v.size // len(tiles), p.n_tiles).bytes(v.itemsize))
    cost = count(jaxpr, [v.constant is not None for v in ins])
    declared, shared = eqn.params["declared"], eqn.params["shared"]
    cycles = declared.cycles(p.target) if declared else None
    price = DECLARED if cycles else COUNTED
    if cycles is None:
        cycles = cost.low(p.target), cost.high(p.target)
        for name, n in cost.unknown.items():
            p.note_unknown(f"{eqn.params['name']}: {name}", n)
    p.vertices().add_vertices(eqn.params["name"], tiles, cycles, shared, *price)
    _note_memory(p, eqn, cost.equations)
    rows = [math.prod(v.aval.shape[1:]) for v in eqn.outvars]
    return [
        p.new(v.aval, eqn.params["name"], on_tiles(tiles, row, p.n_tiles))
        for v, row in zip(eqn.outvars, rows, strict=True)
    ]


COUNTED = "counted", "the vertex's own program (counting.py)"
DECLARED = "estimated", "declared with the vertex (create_ipu_tile_primitive)"


def _note_memory(p: Pricer, eqn: Any, equations: int) -> None:
    """Code of a vertex, and its scratch memory, of which each worker needs its own."""
    counts = np.bincount(eqn.params["tiles"], minlength=p.n_tiles)
    code = equations * INSTRUCTIONS_PER_EQUATION * BYTES_PER_INSTRUCTION
    p.note_code(eqn.params["name"], code * (counts > 0))
    declared = eqn.params["declared"]
    scratch = declared.scratch_bytes() if declared else None
    if scratch is None:
        scratch = scratch_bytes(eqn.params["jaxpr"].jaxpr)
    workers = np.minimum(counts, 1 if eqn.params["shared"] else WORKERS)
    p.memory.scratch(scratch * workers)


def barrier(p: Pricer, eqn: Any, ins: list[Value]) -> list[Value]:
    """What follows waits; nothing moves."""
    p.flush()
    return [_renamed(p, v) for v in ins]


RULES: Mapping[str, Rule] = MappingProxyType(
    dict.fromkeys(WORKER_CYCLES, elementwise)
    | dict.fromkeys(FREE, view)
    | dict.fromkeys(REDUCTIONS, reduce)
    | {
        "gather": gather, "dynamic_slice": gather, "dynamic_update_slice": update,
        "scatter": scatter, "scatter-add": scatter, "scatter_add": scatter,
        "tile_place": place, "tile_map": tile_map, "optimization_barrier": barrier,
        "dot_general": dot, "eigh": eigh, "sort": sort,
        "lu": dense, "lu_pivots_to_permutation": dense, "triangular_solve": dense,
        "custom_linear_solve": dense, "cholesky": dense, "householder_product": dense,
    }
)  # fmt: skip

"""The cost of each primitive of JAX on an IPU: elementwise operations, views, vertices, look-ups.

A rule takes the pricer, an equation and the values of its operands; it fetches what has to travel,
adds to a compute set, and returns the values of the results.  `RULES` is the registry; a program
with primitives of its own passes a larger one to `simulate`.
"""

import dataclasses
import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from jax.extend.core import JaxprEqn

from pyscf_ipu.ipu.chip.collectives import COLLECTIVES, SCATTERING
from pyscf_ipu.ipu.chip.popops import WORKER_CYCLES, gather_cycles, scatter_add_cycles
from pyscf_ipu.ipu.pricing.linear_algebra import convolution, dense, dot, eigh, sort, top_k
from pyscf_ipu.ipu.pricing.pricer import Pricer, Rule
from pyscf_ipu.ipu.pricing.reductions import reduce
from pyscf_ipu.ipu.pricing.streaming import streaming
from pyscf_ipu.ipu.steps.compute_sets import Parts, Work
from pyscf_ipu.ipu.steps.places import Place, linear, on_tiles, spread
from pyscf_ipu.ipu.steps.steps import Value
from pyscf_ipu.ipu.steps.tile_memory import use
from pyscf_ipu.ipu.vertices.cycles import FREE, REDUCTIONS, VertexCost, count, lane_cost
from pyscf_ipu.ipu.vertices.equation import aval, is_half, size
from pyscf_ipu.ipu.vertices.jax_equations import lanes_of, while_of
from pyscf_ipu.ipu.vertices.lanes import crossing
from pyscf_ipu.ipu.vertices.scratch import product_bytes, scratch_bytes, tables


def elementwise(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """Computed where most of its elements already are, by the fused vertex of that place."""
    out = aval(eqn.outvars[0])
    for v in ins:
        if v.place.key[0] == "streaming":
            p.fetch(v, v.place.elements)  # which refuses it
    placed = [v for v in ins if v.size == out.size and v.constant is None and not v.view]
    on = max(placed, key=lambda v: v.place.key[0] == "tiles", default=None)
    place = on.place if on is not None else linear(out.size, out.dtype.itemsize, p.n_tiles)
    for v in ins:
        p.note_constant(v, place.elements)
        if v.constant is None and (v.view or v.place.key != place.key):
            p.fetch(v, np.minimum(place.elements, v.distinct) * v.itemsize)
    half = is_half(eqn)
    compute_set = p.elementwise(place, half)
    # What the same vertex has just made is still in a register.
    loaded = sum(v.itemsize for v in ins if v.constant is None and p.ready(v))
    compute_set.add_operation(eqn.primitive.name, half, loaded * float(place.elements.sum()))
    return p.results(eqn, place)


def view(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """Other names for the same elements."""
    value, after = ins[0], aval(eqn.outvars[0])
    same_order = eqn.primitive.name in ("reshape", "squeeze", "expand_dims")
    if same_order and not value.view and value.constant is None:
        # Elements in the same order at the same places: not even a view.
        if value.place.key[0] != "tiles":
            return [_renamed(p, value)]
        tiles = _regrouped(value.place.key[1], after.shape[0] if after.shape else 0)
        if tiles is not None:
            return [_renamed(p, value, dataclasses.replace(value.place, key=("tiles", tiles)))]
    return [p.view(ins, v.aval) for v in eqn.outvars]


def _regrouped(tiles: tuple[int, ...], rows: int) -> tuple[int, ...] | None:
    """The tile of each of `rows` longer rows, which join successive ones; None if one would need
    several tiles."""
    if rows == 0 or len(tiles) % rows:
        return None
    groups = np.reshape(tiles, (rows, -1))
    alike = bool(np.all(groups == groups[:, :1]))
    return tuple(int(t) for t in groups[:, 0]) if alike else None


def _renamed(p: Pricer, v: Value, place: Place | None = None) -> Value:
    """One more variable that holds the same buffers."""
    use(v.buffers)
    return dataclasses.replace(v, place=place or v.place)


def gather(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """A view if the indices are known at compile time; else PopLibs's multiSlice."""
    if all(v.constant is not None for v in ins[1:]):
        return [p.view(ins[:1], v.aval) for v in eqn.outvars]
    out = aval(eqn.outvars[0])
    place = linear(out.size, out.dtype.itemsize, p.n_tiles)
    p.fetch(ins[0], place.elements * ins[0].itemsize)
    offsets = min(max(1, ins[1].size), out.size)
    for v in ins[1:]:
        p.fetch(v, np.where(place.elements > 0, min(v.size, place.elements.max()) * v.itemsize, 0))
    row = out.size / offsets
    # A tile looks up its own part: of one long row, or of several short ones.
    rows = np.ceil(place.elements / row / p.workers)
    part = np.minimum(row, np.ceil(place.elements / p.workers))
    cycles = p.workers * gather_cycles(rows, part)
    p.library(eqn.primitive.name, np.where(place.elements > 0, cycles, 0.0), "PopLibs multiSlice")
    return p.results(eqn, place)


def update(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """dynamic_update_slice: the new elements go to where the old ones are."""
    old, new = ins[0], ins[1]
    place = old.place if old.constant is None and not old.view else None
    (out,) = p.results(eqn, place)
    part = np.minimum(out.place.elements, new.size)
    p.fetch(new, part * new.itemsize, kept=True)
    if place is None:
        p.fetch(old, out.bytes(), kept=True)
    cycles = part * new.itemsize / float(p.target.memcpy_bytes_per_cycle)
    p.library(eqn.primitive.name, cycles, "bytes at memcpy_bytes_per_cycle")
    return [out]


def scatter(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """Updates travel to the elements that they change; exactly, if the indices are known."""
    old, index, new = ins
    shape, n = aval(eqn.outvars[0]).shape, size(eqn.outvars[0])
    adds = eqn.primitive.name != "scatter"
    place = spread(n, p.n_tiles) if old.constant is not None or old.view else old.place
    share = place.elements / n
    arriving = new.size * share
    if index.constant is not None and index.constant.shape[-1:] == (1,) and len(shape) == 1:
        places = index.constant.ravel()
        hits = np.bincount(places[(places >= 0) & (places < n)], minlength=n)
        run = place.elements.max(initial=1.0)
        owner = np.minimum(np.arange(n) // max(1, int(run)), p.n_tiles - 1)
        arriving = np.bincount(owner, hits, minlength=p.n_tiles).astype(float)
    p.fetch(new, arriving * new.itemsize)
    p.fetch(index, np.where(arriving > 0, index.size * share, 0.0) * index.itemsize)
    per_worker = np.ceil(arriving / p.workers)
    cycles = p.workers * scatter_add_cycles(per_worker, 1) if adds else arriving
    p.library(eqn.primitive.name, np.where(arriving > 0, cycles, 0.0), "PopLibs multiUpdate")
    return p.results(eqn, place)


def place(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """tile_put_* and tile_gather: the rows travel to their tiles."""
    (value,) = ins
    tiles = eqn.params["tiles"]
    row = math.prod(aval(eqn.outvars[0]).shape[1:])
    where = on_tiles(tiles, row, p.n_tiles)
    if not value.view and value.place.key == where.key and eqn.params["how"] == "sharded":
        return [_renamed(p, value)]
    incoming = where.elements
    if eqn.params["how"] == "replicated":  # one copy serves all workers of a tile
        incoming = np.where(where.elements > 0, float(row), 0.0)
        where = Place(("replicated", tiles), incoming)
    elif eqn.params["how"] == "gather" and value.kept_place() is not None:
        incoming = incoming - _already_there(value, eqn, p.n_tiles)
    p.fetch(value, np.minimum(incoming, value.distinct) * value.itemsize, kept=True)
    # It arrives before the next compute set, even if that is already open.
    return [dataclasses.replace(v, made_in=None) for v in p.results(eqn, where)]


def _already_there(value: Value, eqn: JaxprEqn, n_tiles: int) -> np.ndarray:
    """Elements of a tile_gather whose source is on the tile that wants them: [n_tiles]."""
    tiles, index = np.array(eqn.params["tiles"]), eqn.params["indices"].value
    source = np.array(value.place.key[1])[index.reshape(len(tiles), -1)]
    row = value.size / len(value.place.key[1])
    return np.bincount(tiles, (source == tiles[:, None]).sum(1) * row, minlength=n_tiles)


def tile_map(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """One vertex per tile entry, in the open compute set unless it depends on that."""
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
    cost = count(jaxpr, [v.constant is not None for v in ins], path=p.path)
    declared, shared = eqn.params["declared"], eqn.params["shared"]
    loaded, stored = (
        float(sum(size(v) * aval(v).dtype.itemsize for v in some))
        for some in (eqn.invars[n_consts:], eqn.outvars)
    )
    cycles, price = declared.cycles(p.target) if declared else None, DECLARED
    work, n, name = Work(cost.flops * len(tiles), loaded + stored), len(tiles), eqn.params["name"]
    if cycles is None:
        cycles, price = (cost.low(p.target), cost.high(p.target)), COUNTED
        for operation, times in cost.unknown.items():
            p.note_unknown(f"{name}: {operation}", times)
        work = work._replace(loaded=loaded / n, stored=stored / n, parts=_parts(p, cost))
    p.vertices().add_vertices(name, tiles, cycles, shared=shared, origin=price, work=work)
    _note_memory(p, eqn, cost, ins=ins)
    return [p.new(v.aval, name, on_tiles(tiles, size(v) // n, p.n_tiles)) for v in eqn.outvars]


def _parts(p: Pricer, cost: VertexCost) -> Parts:
    return {at: (c.low(p.target), c.high(p.target), c.flops) for at, c in cost.parts.items()}


def lanes(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """A batched loop with a vertex for each lane, which ends by itself; [] if that cannot be.

    Lanes lie on the tiles in equal runs; those of one tile go to its workers in turn.
    """
    shape, loop = lanes_of(eqn), while_of(eqn)
    n = math.prod(shape)
    run = max(1, -(-n // p.n_tiles))
    tiles = tuple(k // run for k in range(n))
    here = np.bincount(tiles, minlength=p.n_tiles)
    rows = [  # elements of each operand for a lane, and for a tile
        v.size / n if i >= loop.n_test + loop.n_body or aval(x).shape[: len(shape)] == shape else 0
        for i, (v, x) in enumerate(zip(ins, eqn.invars, strict=True))
    ]
    bodies = loop.body.jaxpr, loop.test.jaxpr
    scratch, operands = (max(map(f, bodies)) / n for f in (scratch_bytes, product_bytes))
    busy = np.minimum(here, p.workers)
    stored = 2 * sum(row * v.itemsize for row, v in zip(rows, ins, strict=True))
    shared = sum(
        v.size * v.itemsize
        for v, row in zip(ins, rows, strict=True)
        if not row and v.constant is None
    )
    needed = shared + (here * stored + busy * scratch).max()
    fits = needed <= float(p.target.memory_bytes_per_tile)
    across = crossing(eqn)
    cost = VertexCost() if across else lane_cost(eqn, p.path)
    if across or cost.unknown or not fits:
        refused = across or ", ".join(cost.unknown) or "part in the memory of a tile"
        why = f"no vertex of one lane does its {refused}"
        p.notes.append(f"a loop over a batch of {n} is in lock-step: {why}")
        return []
    p.flush()
    for v, row in zip(ins, rows, strict=True):
        if v.constant is None:
            p.fetch(v, np.where(here > 0, here * row if row else v.size, 0.0) * v.itemsize)
    cycles, name = (cost.low(p.target), cost.high(p.target)), "while by lane"
    work = Work(cost.flops * n, stored * n, parts=_parts(p, cost))
    p.vertices().add_vertices(name, tiles, cycles, shared=False, origin=COUNTED, work=work)
    p.note_code((name, p.path), here > 0, cost.equations)
    p.tracker.need_scratch(p.stage, scratch * busy, operands * busy)
    return [p.new(v.aval, name, on_tiles(tiles, size(v) // n, p.n_tiles)) for v in eqn.outvars]


COUNTED = "counted", "the vertex's own program (counting.py)"
DECLARED = "estimated", "declared with the vertex (create_ipu_tile_primitive)"


def _note_memory(p: Pricer, eqn: JaxprEqn, cost: VertexCost, ins: list[Value]) -> None:
    """Code and tables of a vertex, and its scratch memory, of which each worker needs its own."""
    counts = np.bincount(eqn.params["tiles"], minlength=p.n_tiles)
    p.note_code(eqn.params["name"], counts > 0, cost.equations)
    for routine, equations in cost.routines.items():
        p.note_code(routine, counts > 0, equations)
    for v in (*ins[: eqn.params["n_consts"]], *map(p.constant, tables(eqn.params["jaxpr"]))):
        p.note_constant(v, np.where(counts > 0, float(v.size), 0.0))
    declared = eqn.params["declared"]
    scratch = declared.scratch_bytes() if declared else None
    if scratch is None:
        scratch = scratch_bytes(eqn.params["jaxpr"].jaxpr)
    workers = np.minimum(counts, 1 if eqn.params["shared"] else p.workers)
    operands = product_bytes(eqn.params["jaxpr"].jaxpr)
    p.tracker.need_scratch(p.stage, scratch * workers, operands * workers)


def barrier(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """The end of the open compute set; nothing moves."""
    p.flush()
    return [_renamed(p, v) for v in ins]


def collective(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """The replicas exchange what each of them has; one replica has no one to exchange with."""
    if p.replicas == 1:
        return [_renamed(p, v) if v.size == size(x) else p.view([v], x.aval)
                for v, x in zip(ins, eqn.outvars, strict=True)]  # fmt: skip
    name = eqn.primitive.name
    if not p.collecting:
        p.flush()
    outs, here = [], p.ipu
    for v, x in zip(ins, eqn.outvars, strict=True):
        if v.constant is None:
            p.ipu = v.ipu
            p.collect(name, float(v.size * v.itemsize), v.ipu)
        same = v.size == size(x) and name not in SCATTERING
        outs.append(p.new(x.aval, name, v.kept_place() if same else None))
    p.ipu = here
    return outs


def number(p: Pricer, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
    """A number that a tile has at hand: which replica it belongs to, or a key of random numbers."""
    return [p.view(ins, v.aval) if ins else p.new(v.aval, eqn.primitive.name) for v in eqn.outvars]


_DENSE = (
    "lu lu_pivots_to_permutation triangular_solve custom_linear_solve cholesky householder_product"
)

_AT_HAND = (
    "axis_index random_seed random_wrap random_unwrap random_fold_in random_clone random_split "
    "pvary bitcast_convert_type reduce_precision"
)

RULES: Mapping[str, Rule] = MappingProxyType(
    dict.fromkeys(WORKER_CYCLES, elementwise)
    | dict.fromkeys(FREE, view)
    | dict.fromkeys(REDUCTIONS, reduce)
    | dict.fromkeys(_DENSE.split(), dense)
    | dict.fromkeys(("gather", "dynamic_slice"), gather)
    | dict.fromkeys(("scatter", "scatter-add", "scatter_add"), scatter)
    | {"dynamic_update_slice": update, "tile_place": place, "tile_map": tile_map}
    | dict.fromkeys(COLLECTIVES, collective)
    | dict.fromkeys(_AT_HAND.split(), number)
    | {"optimization_barrier": barrier, "dot_general": dot, "eigh": eigh, "sort": sort}
    | {"while": lanes, "streaming": streaming, "conv_general_dilated": convolution, "top_k": top_k}
)
"""The rule of every primitive that has one."""

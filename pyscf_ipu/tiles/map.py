"""`tile_map`: one compute set, one vertex per tile, as a JAX primitive.

The primitive keeps the compute set visible in the jaxpr, where a simulator can price it.  Its
lowering decides how the vertices run: one after another on a CPU, whose caches are small and
whose threads serve whole molecules, and side by side on a GPU.
"""

import dataclasses
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir
from jaxtyping import PyTree

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.numerics.arrays import Axes, HostArray, Operands, Tangents
from pyscf_ipu.tiles.array import TileShardedArray
from pyscf_ipu.tiles.primitive import Declared, TilePrimitive

tile_map_p = Primitive("tile_map")
tile_map_p.multiple_results = True


def tile_map(
    vertex: Callable[..., PyTree],
    *args: TileShardedArray,
    name: str | None = None,
    together: bool | int = False,
    shared: bool = False,
) -> PyTree:
    """Run `vertex` once per tile on the rows of `args`; one compute set.

    Args:
        vertex: pure function of arrays (one row of each argument) to a pytree of arrays; or a
            TilePrimitive, which says what it costs on a simulated IPU.
        args: sharded over identical `tiles`; a repeated tile id is another worker of that tile.
        name: what to call the compute set in profiles; default: the vertex's own name.
        together: on a CPU too, compute all vertices side by side: right for elementwise vertices,
            whose arrays are read once, so that a cache cannot help and a loop only costs.  A
            number: this many vertices at a time, right for small vertices whose intermediates fit
            in a cache.
        shared: the workers of a tile share the work of each vertex (Poplar's MultiVertex);
            otherwise a vertex has one worker.  Only the price on a simulated IPU depends on it.

    Returns:
        The vertex's pytree with a TileShardedArray at every leaf.

    Raises:
        UsageError: there is no argument, the tiles differ (there is no implicit exchange), or
            fewer than one vertex is to be computed at a time.
    """
    if not args:
        raise UsageError("tile_map needs at least one TileShardedArray to know its tiles")
    tiles = args[0].tiles
    for a in args[1:]:
        if a.tiles != tiles:
            raise UsageError(
                "tile_map arguments lie on different tiles: bring them together with tile_gather"
            )
    if together is not False and together < 1:
        raise UsageError(f"together={together}: compute at least one vertex at a time")
    if together is not True and together == 1:
        together = False  # 1 == True: parameters that compare equal must mean the same
    rows = tuple(jax.ShapeDtypeStruct(a.tile_shape, a.dtype) for a in args)
    declared = Declared(vertex, rows) if isinstance(vertex, TilePrimitive) else None
    closed, out_shape = jax.make_jaxpr(vertex, return_shape=True)(*rows)
    label = name or getattr(vertex, "name", None) or getattr(vertex, "__name__", "vertex")
    outs = tile_map_p.bind(
        *closed.consts,
        *[a.array for a in args],
        jaxpr=_close(closed),
        n_consts=len(closed.consts),  # captured arrays become leading, replicated operands
        tiles=tiles,
        name=label,
        together=together,
        shared=shared,
        declared=declared,
    )
    leaves = [TileShardedArray(o, tiles) for o in outs]
    return jax.tree.unflatten(jax.tree.structure(out_shape), leaves)


def _close(closed: ClosedJaxpr) -> ClosedJaxpr:
    if not closed.consts:
        return closed
    n = len(closed.consts)

    def vertex(*operands: Array) -> list:
        return jaxpr_as_fun(ClosedJaxpr(closed.jaxpr, operands[:n]))(*operands[n:])

    consts = [jax.ShapeDtypeStruct(c.shape, c.dtype) for c in closed.consts]
    return jax.make_jaxpr(vertex)(*consts, *closed.in_avals)


def _run(
    *operands: Array, jaxpr: ClosedJaxpr, n_consts: int, together: bool | int, **_: object
) -> list[Array]:
    """Vertices one after another, unless they are to be computed together."""
    if together is True:
        return _run_side_by_side(*operands, jaxpr=jaxpr, n_consts=n_consts)
    if together > 1:
        return _run_some_at_a_time(*operands, jaxpr=jaxpr, n_consts=n_consts, size=together)
    vertex = jaxpr_as_fun(jaxpr)
    consts, rows = operands[:n_consts], operands[n_consts:]
    return list(lax.map(lambda row: tuple(vertex(*consts, *row)), tuple(rows)))


def _run_side_by_side(
    *operands: Array, jaxpr: ClosedJaxpr, n_consts: int, **_: object
) -> list[Array]:
    vertex = jaxpr_as_fun(jaxpr)
    axes = [None] * n_consts + [0] * (len(operands) - n_consts)
    return list(jax.vmap(vertex, in_axes=axes)(*operands))


def _run_some_at_a_time(
    *operands: Array, jaxpr: ClosedJaxpr, n_consts: int, size: int
) -> list[Array]:
    """`size` vertices side by side; the last row is repeated to fill the last group."""
    consts, rows = operands[:n_consts], operands[n_consts:]
    n = rows[0].shape[0]
    size = min(size, n)
    pad = -n % size

    def grouped(x: Array) -> Array:
        filled = jnp.concatenate([x, jnp.broadcast_to(x[-1:], (pad, *x.shape[1:]))]) if pad else x
        return filled.reshape(-1, size, *x.shape[1:])

    def group(some: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(_run_side_by_side(*consts, *some, jaxpr=jaxpr, n_consts=n_consts))

    outs = lax.map(group, tuple(grouped(x) for x in rows))
    return [x.reshape(-1, *x.shape[2:])[:n] for x in outs]


def _abstract(
    *operands: ShapedArray, jaxpr: ClosedJaxpr, tiles: tuple[int, ...], **_: object
) -> list[ShapedArray]:
    return [a.update(shape=(len(tiles), *a.shape)) for a in jaxpr.out_avals]


def _batch(
    args: Operands,
    dims: Axes,
    *,
    jaxpr: ClosedJaxpr,
    n_consts: int,
    declared: Declared | None,
    **params: object,
) -> tuple[list[Array], list[int]]:
    """A batch of molecules: each vertex does its part for the whole batch."""
    moved, axes = [], []
    for i, (x, d) in enumerate(zip(args, dims, strict=True)):
        shared = i < n_consts
        if d is None:
            moved.append(x)
            axes.append(None)
        else:
            moved.append(jnp.moveaxis(x, d, 0 if shared else 1))
            axes.append(0)
    rows = [
        jax.ShapeDtypeStruct(x.shape if i < n_consts else x.shape[1:], x.dtype)
        for i, x in enumerate(moved)
    ]
    if declared is not None:
        size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
        declared = dataclasses.replace(declared, times=declared.times * size)
    batched = jax.make_jaxpr(jax.vmap(jaxpr_as_fun(jaxpr), in_axes=axes))(*rows)
    outs = tile_map_p.bind(
        *batched.consts,
        *moved,
        jaxpr=_close(batched),
        n_consts=len(batched.consts) + n_consts,
        declared=declared,
        **params,
    )
    return outs, [1] * len(outs)


def _jvp(
    primals: Operands, tangents: Tangents, *, jaxpr: ClosedJaxpr, n_consts: int, **params: object
) -> tuple[list[Array], list[Array]]:
    """Tangents are one more compute set, linear in the tangent operands."""
    outs = tile_map_p.bind(*primals, jaxpr=jaxpr, n_consts=n_consts, **params)
    moving = {i: t for i, t in enumerate(tangents) if not isinstance(t, ad.Zero)}
    live = list(moving)
    if any(i < n_consts for i in live):
        raise NotImplementedError(
            "tile_map vertices cannot be differentiated with respect to captured arrays: "
            "pass them as arguments (tile_put_replicated)"
        )
    vertex = jaxpr_as_fun(jaxpr)
    n = len(primals)

    def tangent_vertex(*operands: Array) -> tuple:
        values, directions = list(operands[:n]), operands[n:]

        def along(*moving: Array) -> tuple:
            for i, m in zip(live, moving, strict=True):
                values[i] = m
            return tuple(vertex(*values))

        return tuple(jax.jvp(along, tuple(values[i] for i in live), directions)[1])

    rows = [x if i < n_consts else x[0] for i, x in enumerate(primals)]
    closed = jax.make_jaxpr(tangent_vertex)(*rows, *[t[0] for t in moving.values()])
    d_outs = tile_map_p.bind(
        *closed.consts,
        *primals,
        *moving.values(),
        jaxpr=_close(closed),
        n_consts=n_consts + len(closed.consts),
        **params | {"declared": None},  # another vertex than the one that was declared
    )
    return outs, d_outs


def _transpose(
    cotangents: Tangents,
    *operands: HostArray | ad.UndefinedPrimal,
    jaxpr: ClosedJaxpr,
    n_consts: int,
    **params: object,
) -> list[Array | None]:
    """Transpose a linear compute set: the cotangents meet the same residuals, tile by tile."""
    known = {i: x for i, x in enumerate(operands) if not isinstance(x, ad.UndefinedPrimal)}
    linear = [i for i in range(len(operands)) if i not in known]
    vertex = jaxpr_as_fun(jaxpr)
    n_known = len(known)

    def transposed(*rows: Array) -> tuple:
        residuals, cts = iter(rows[:n_known]), list(rows[n_known:])
        fixed = [None if i in linear else next(residuals) for i in range(len(operands))]

        def forward(*moving: Array) -> tuple:
            values = list(fixed)
            for i, m in zip(linear, moving, strict=True):
                values[i] = m
            return tuple(vertex(*values))

        avals = [
            jax.ShapeDtypeStruct(jaxpr.in_avals[i].shape, jaxpr.in_avals[i].dtype) for i in linear
        ]
        return tuple(jax.linear_transpose(forward, *avals)(tuple(cts)))

    cts = [ad.instantiate_zeros(c) for c in cotangents]
    rows = [x if i < n_consts else x[0] for i, x in known.items()]
    closed = jax.make_jaxpr(transposed)(*rows, *[c[0] for c in cts])
    outs = iter(
        tile_map_p.bind(
            *closed.consts,
            *known.values(),
            *cts,
            jaxpr=_close(closed),
            n_consts=n_consts + len(closed.consts),
            **params,
        )
    )
    return [next(outs) if i in linear else None for i in range(len(operands))]


tile_map_p.def_impl(lambda *operands, **params: jax.jit(partial(_run, **params))(*operands))
tile_map_p.def_abstract_eval(_abstract)
batching.primitive_batchers[tile_map_p] = _batch
ad.primitive_jvps[tile_map_p] = _jvp
ad.primitive_transposes[tile_map_p] = _transpose
mlir.register_lowering(tile_map_p, mlir.lower_fun(_run, multiple_results=True))
for _platform in ("cuda", "rocm"):
    mlir.register_lowering(
        tile_map_p, mlir.lower_fun(_run_side_by_side, multiple_results=True), platform=_platform
    )

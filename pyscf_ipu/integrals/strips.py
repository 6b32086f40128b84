"""Pair data in the order of the tile plan: chunks of primitive pairs, dealt into strips."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pyscf_ipu.codelets import codelet
from pyscf_ipu.codelets.frozen import Constant
from pyscf_ipu.integrals.shell_pairs import PairData, angular_parts, class_pairs
from pyscf_ipu.numerics.arrays import Floats, FloatSnc, FloatSncfh, HostArray, taken
from pyscf_ipu.numerics.hermite import n_hermite
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes.atoms import Atoms, Shells
from pyscf_ipu.shapes.layout import Layout
from pyscf_ipu.shapes.tile_plan import Strips, TilePlan


class StripData(NamedTuple):
    """One pair class: S strips of nb chunks of c primitive pairs; f AO products, h Hermites."""

    p: FloatSnc  # total exponents; 1 where padded
    centre: Pair  # [S, nb, c, 3] Bohr
    hermite: FloatSncfh  # coefficients E; 0 where padded
    kinetic: Float[Array, " rows"]  # kinetic energy integrals of the class


BuildStrips = Callable[[Atoms], tuple[StripData, ...]]
"""Hermite data of every pair class of one molecule."""


def pair_strips(atoms: Atoms) -> tuple[StripData, ...]:
    """Hermite data of every pair class of one molecule."""
    plan = atoms.plan

    def portable(*operands: Array) -> list[Array]:
        shells = shells_of(plan.layout, operands)
        members = [class_pairs(plan.layout, shells, s.pair_class) for s in plan.strips]
        return jax.tree.leaves(in_strips(plan, members))

    shapes: list[tuple[int, ...]] = []
    for s in plan.strips:
        size = (*s.source.shape, s.chunk)
        e = (*size, s.n_products, n_hermite(s.pair_class.order))
        shapes += [size, (*size, 3), (*size, 3), e, (s.n_rows,)]
    operands, attributes = member_operands(atoms)
    arrays = codelet("pair_strips", portable, *operands, shape=tuple(shapes), **attributes)
    classes = zip(*[iter(arrays)] * 5, strict=True)
    return tuple(StripData(p, Pair(hi, lo), e, kinetic=t) for p, hi, lo, e, t in classes)


def shells_of(layout: Layout, operands: Sequence[Array]) -> tuple[Shells, ...]:
    """The shells of every group from the first of `member_operands`."""
    groups = zip(*[iter(operands[: 6 * len(layout.groups)])] * 6, strict=True)
    return tuple(Shells(Pair(*x[:2]), Pair(*x[2:4]), Pair(*x[4:])) for x in groups)


def member_operands(atoms: Atoms) -> tuple[list[HostArray], dict[str, Constant]]:
    """Operands and attributes of the codelets that take all members of all pair classes.

    Of every group exponents, coefficients and centres, each in two words; then of all shell pairs
    their two shells, where their chunks lie in the strips of their class, and where they lie among
    its pairs.
    """
    plan = atoms.plan
    words: list[HostArray] = [w for shells in atoms.shells for pair in shells for w in pair]
    members = [(c, m) for c, s in enumerate(plan.strips) for m in s.pair_class.members]
    indices = (
        [m.first for _, m in members],
        [m.second for _, m in members],
        [chunk_places(s) for s in plan.strips],
        [pair_places(s) for s in plan.strips],
    )
    table = [(m.a, m.b, c, len(m.first)) for c, m in members]
    attributes = {"members": np.array(table, np.int32).ravel(), **angular_parts(plan.layout)}
    return words + [np.concatenate(x).astype(np.int32) for x in indices], attributes


def chunk_places(strips: Strips) -> Int[np.ndarray, " places"]:
    """Where each chunk of a class's list lies in the strips, one behind another."""
    places = np.zeros(strips.source.size + 1, np.int32)
    places[strips.source.ravel()] = np.arange(strips.source.size)
    return places[:-1]


def pair_places(strips: Strips) -> Int[np.ndarray, " pairs"]:
    """Where each shell pair of a class lies among those of the strips, one behind another."""
    return strips.pair_strip * strips.pairs_per_strip + strips.pair_place


def in_strips(plan: TilePlan, members: Iterable[tuple[PairData, ...]]) -> tuple[StripData, ...]:
    """The Hermite data of every member of every class in the order of the plan."""
    return tuple(_deal(*x) for x in zip(plan.strips, members, strict=True))


def sum_to_pairs(strips: Strips, per_chunk: Floats, axis: int) -> Floats:
    """Sum the chunks of each shell pair inside every strip, along `axis`; S is the one before."""
    if strips.one_chunk_per_pair:
        return per_chunk
    moved = jnp.moveaxis(per_chunk, (axis - 1, axis), (0, 1))
    padded = jnp.pad(moved, [(0, int(d == 1)) for d in range(moved.ndim)])
    strip = np.arange(strips.n_strips, dtype=np.int32)[:, None]
    # Chunk by chunk: as a product with a matrix of zeros and ones this was quadratic in the pairs.
    summed = sum(taken(padded, strip, places) for places in strips.members())
    return jnp.moveaxis(jnp.asarray(summed), (0, 1), (axis - 1, axis))


def _deal(strips: Strips, members: tuple[PairData, ...]) -> StripData:
    chunks = [_chunks(m, strips) for m in members]
    empty = _empty_chunk(chunks[0])
    p, hi, lo, hermite = (
        taken(jnp.concatenate([*parts, pad]), strips.source)
        for parts, pad in zip(zip(*chunks, strict=True), empty, strict=True)
    )
    return StripData(p, Pair(hi, lo), hermite, kinetic=_kinetic_rows(strips, members))


def _chunks(data: PairData, strips: Strips) -> tuple[Floats, ...]:
    """Cut the primitive pairs of each shell pair into chunks: [n * chunks, c, ...]."""
    n, k = data.p.shape
    c = strips.chunk
    pad = -k % c
    extra = strips.n_products - data.hermite.shape[2]
    p = jnp.pad(data.p, ((0, 0), (0, pad)), constant_values=1.0)
    hi, lo = (jnp.pad(w, ((0, 0), (0, pad), (0, 0))) for w in data.centre)
    hermite = jnp.pad(data.hermite, ((0, 0), (0, pad), (0, extra), (0, 0)))
    return tuple(x.reshape(n * (k + pad) // c, c, *x.shape[2:]) for x in (p, hi, lo, hermite))


def _empty_chunk(like: tuple[Floats, ...]) -> tuple[Floats, ...]:
    p, *rest = like
    return (jnp.ones_like(p[:1]), *(jnp.zeros_like(x[:1]) for x in rest))


def _kinetic_rows(strips: Strips, members: tuple[PairData, ...]) -> Float[Array, " rows"]:
    """Per-pair integrals in the row order of the class; unused places are 0."""
    padded = [
        jnp.pad(m.kinetic, ((0, 0), (0, strips.n_products - m.kinetic.shape[1]))) for m in members
    ]
    values = jnp.concatenate([*padded, jnp.zeros_like(padded[0][:1])])
    places = strips.n_strips * strips.pairs_per_strip
    pair_at = np.full(places, len(strips.pair_strip), np.int32)
    place = pair_places(strips)
    pair_at[place] = np.arange(len(place))
    return taken(values, pair_at).ravel()

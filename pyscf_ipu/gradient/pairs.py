"""From derivatives by Hermite data to derivatives by nuclei, shell pair by shell pair.

E and the kinetic energy of a pair depend on A - B only, along which they are differentiated
forwards: three directions, where a reverse pass would scatter into the tables of every product.
A centre P = (aA + bB)/p moves with both nuclei.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from pyscf_ipu.codelets import codelet
from pyscf_ipu.integrals.shell_pairs import shell_pairs_vertex
from pyscf_ipu.integrals.strips import (
    StripData,
    chunk_places,
    member_operands,
    pair_places,
    shells_of,
)
from pyscf_ipu.numerics.arrays import FloatA3, taken
from pyscf_ipu.numerics.two_words import Pair, difference
from pyscf_ipu.shapes.atoms import Atoms, Shells
from pyscf_ipu.shapes.layout import KindPair, Layout, ShellGroup
from pyscf_ipu.shapes.tile_plan import Strips, TilePlan, primitives_of, products_of

FloatN3 = Float[Array, "n 3"]


def by_nuclei(atoms: Atoms, by_strips: list[StripData]) -> FloatA3:
    """Derivatives by the nuclei, from those by the data of every class except its exponents."""
    plan, layout = atoms.plan, atoms.layout
    members = [m for s in plan.strips for m in s.pair_class.members]
    ends = [
        np.concatenate([layout.groups[m.a].atom[m.first] for m in members]).astype(np.int32),
        np.concatenate([layout.groups[m.b].atom[m.second] for m in members]).astype(np.int32),
    ]
    operands, attributes = member_operands(atoms)
    first = len(operands) + len(ends)

    def portable(*operands: Array) -> FloatA3:
        shells, data = shells_of(layout, operands), operands[first:]
        given = zip(*[iter(data)] * 3, strict=True)
        return _by_nuclei(plan, shells, [_PairGradient(*x) for x in given])

    data = [x for s in by_strips for x in (s.centre.hi, s.hermite, s.kinetic)]
    shape = (layout.shape.n_atoms, 3)
    return codelet("pair_gradient", portable, *operands, *ends, *data, shape=shape, **attributes)


class _PairGradient(NamedTuple):
    """Derivatives by the data of n shell pairs, see `shell_pairs.PairData`, or of strips."""

    centre: Float[Array, "*pairs k 3"]
    hermite: Float[Array, "*pairs k f h"]
    kinetic: Float[Array, "..."]


def _by_nuclei(
    plan: TilePlan, shells: tuple[Shells, ...], by_strips: list[_PairGradient]
) -> FloatA3:
    """The portable form of the codelet "pair_gradient", member by member."""
    layout = plan.layout
    out = jnp.zeros((layout.shape.n_atoms, 3), by_strips[0].hermite.dtype)
    for strips, given in zip(plan.strips, by_strips, strict=True):
        members = strips.pair_class.members
        for member, mine in zip(members, _undeal(strips, layout, given), strict=True):
            one = layout.groups[member.a].atom[member.first]
            two = layout.groups[member.b].atom[member.second]
            on_a, on_b = _by_centres(layout, shells, member, given=mine, apart=one != two)
            out = out.at[one].add(on_a).at[two].add(on_b)
    return out


def _undeal(strips: Strips, layout: Layout, given: _PairGradient) -> list[_PairGradient]:
    """The inverse of `strips._deal`: from chunks in strips to the shell pairs of every member."""
    where = chunk_places(strips)
    flat = [x.reshape(-1, *x.shape[2:]) for x in (given.centre, given.hermite)]
    kinetic = given.kinetic.reshape(-1, strips.n_products)
    place = pair_places(strips)
    out, pair, chunk = [], 0, 0
    for m in strips.pair_class.members:
        n, k, f = len(m.first), primitives_of(layout, m), products_of(layout, m)
        end = chunk + n * -(-k // strips.chunk)
        centre, hermite = (taken(x, where[chunk:end]) for x in flat)
        out.append(
            _PairGradient(
                centre.reshape(n, -1, 3)[:, :k],
                hermite.reshape(n, -1, *hermite.shape[2:])[:, :k, :f],
                taken(kinetic, place[pair : pair + n])[:, :f],
            )
        )
        pair, chunk = pair + n, end
    return out


def _by_centres(
    layout: Layout,
    shells: tuple[Shells, ...],
    member: KindPair,
    given: _PairGradient,
    apart: Bool[np.ndarray, " n"],
) -> tuple[FloatN3, FloatN3]:
    """Derivatives by the two nuclei of every shell pair; if it is not `apart`, A - B is 0."""
    a, b = layout.groups[member.a], layout.groups[member.b]
    one, two = shells[member.a].at(member.first), shells[member.b].at(member.second)
    by_displacement = by_displacement_vertex(
        a, b, one, two=two, hermite=given.hermite, kinetic=given.kinetic
    )
    by_displacement = by_displacement * jnp.asarray(apart, given.hermite.dtype)[:, None]
    ea, eb = one.exponents.value(), two.exponents.value()
    share = ea[:, :, None] / (ea[:, :, None] + eb[:, None, :])  # of A in the centre
    share = share.reshape(len(apart), -1, 1)
    on_a = (share * given.centre).sum(1)
    return on_a + by_displacement, given.centre.sum(1) - on_a - by_displacement


def by_displacement_vertex(
    a: ShellGroup,
    b: ShellGroup,
    one: Shells,
    two: Shells,
    hermite: Float[Array, "n k f h"],
    kinetic: Float[Array, "n f"],
) -> FloatN3:
    """Derivatives by A - B at fixed centres P: forwards along three directions."""
    displacement = difference(one.centre, two.centre)
    zero = jnp.zeros_like(displacement)
    fixed = two._replace(centre=Pair(zero, zero))

    def data(displacement: FloatN3) -> tuple[Array, Array]:
        pairs = shell_pairs_vertex(a, b, one._replace(centre=Pair(displacement, zero)), b=fixed)
        return pairs.hermite, pairs.kinetic

    def along(axis: Float[Array, "3"]) -> Float[Array, " n"]:
        direction = jnp.broadcast_to(axis, displacement.shape)
        _, (by_hermite, by_kinetic) = jax.jvp(data, (displacement,), (direction,))
        return (hermite * by_hermite).sum((1, 2, 3)) + (kinetic * by_kinetic).sum(1)

    return jax.vmap(along, out_axes=1)(jnp.eye(3, dtype=displacement.dtype))

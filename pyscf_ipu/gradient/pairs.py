"""From derivatives by Hermite data to derivatives by nuclei, shell pair by shell pair.

E and the kinetic energy of a pair depend on A - B only, along which they are differentiated
forwards: three directions, where a reverse pass would scatter into the tables of every product.
A centre P = (aA + bB)/p moves with both nuclei.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pyscf_ipu.codelets import codelet
from pyscf_ipu.layout import KindPair, Layout, ShellGroup
from pyscf_ipu.pairs import Shells, angular_parts, shell_pairs_vertex
from pyscf_ipu.precision import Pair, difference
from pyscf_ipu.strips import StripData
from pyscf_ipu.tiles import Strips, TilePlan
from pyscf_ipu.tiles.plan import primitives_of, products_of


def by_nuclei(plan: TilePlan, shells: tuple[Shells, ...], by_strips: list[StripData]) -> Array:
    """The derivative by the nuclei [A, 3] from those by the data of every class.

    by_strips  shaped like `strips.pair_strips`; `p` and the low words of the centres are not read.
    """
    layout = plan.layout
    out = jnp.zeros((layout.shape.n_atoms, 3), by_strips[0].p.dtype)
    for strips, given in zip(plan.strips, by_strips, strict=True):
        members = strips.pair_class.members
        for member, mine in zip(members, _undeal(strips, layout, given), strict=True):
            one = layout.groups[member.a].atom[member.first]
            two = layout.groups[member.b].atom[member.second]
            on_a, on_b = _by_centres(layout, member, shells, mine, one != two)
            out = out.at[one].add(on_a).at[two].add(on_b)
    return out


class _PairGradient(NamedTuple):
    """By the centres [n, k, 3], E [n, k, f, h] and kinetic energies [n, f] of n shell pairs."""

    centre: Array
    hermite: Array
    kinetic: Array


def _undeal(strips: Strips, layout: Layout, given: StripData) -> list[_PairGradient]:
    """The inverse of `strips._deal`: from chunks in strips to the shell pairs of every member."""
    where = np.zeros(strips.source.max() + 1, np.int32)
    where[strips.source.ravel()] = np.arange(strips.source.size)
    flat = [x.reshape(-1, *x.shape[2:]) for x in (given.centre.hi, given.hermite)]
    kinetic = given.kinetic.reshape(-1, strips.n_products)
    place = strips.pair_strip * strips.pairs_per_strip + strips.pair_place
    out, pair, chunk = [], 0, 0
    for m in strips.pair_class.members:
        n, k, f = len(m.first), primitives_of(layout, m), products_of(layout, m)
        end = chunk + n * -(-k // strips.chunk)
        centre, hermite = (x[where[chunk:end]] for x in flat)
        out.append(
            _PairGradient(
                centre.reshape(n, -1, 3)[:, :k],
                hermite.reshape(n, -1, *hermite.shape[2:])[:, :k, :f],
                kinetic[place[pair : pair + n], :f],
            )
        )
        pair, chunk = pair + n, end
    return out


def _by_centres(
    layout: Layout,
    member: KindPair,
    shells: tuple[Shells, ...],
    given: _PairGradient,
    apart: np.ndarray,
) -> tuple[Array, Array]:
    """By the two nuclei of every shell pair of a member: [n, 3] each.

    apart [n]: whether the two are different ones; a pair on one nucleus has no A - B.
    """
    a, b = layout.groups[member.a], layout.groups[member.b]
    one = Shells(*(words.at(member.first) for words in shells[member.a]))
    two = Shells(*(words.at(member.second) for words in shells[member.b]))
    by_displacement = _by_displacement(a, b, member, shells, given)
    by_displacement = by_displacement * jnp.asarray(apart, given.hermite.dtype)[:, None]
    ea, eb = one.exponents.value(), two.exponents.value()
    share = ea[:, :, None] / (ea[:, :, None] + eb[:, None, :])  # of A in the centre
    share = share.reshape(len(apart), -1, 1)
    on_a = (share * given.centre).sum(1)
    return on_a + by_displacement, given.centre.sum(1) - on_a - by_displacement


def _by_displacement(
    a: ShellGroup,
    b: ShellGroup,
    member: KindPair,
    shells: tuple[Shells, ...],
    given: _PairGradient,
) -> Array:
    """By A - B, at fixed centres P: [n, 3]."""

    def portable(*operands: Array) -> Array:
        words = [Pair(*operands[i : i + 2]) for i in range(0, 12, 2)]
        first, second, hermite, kinetic = operands[12:]
        one = Shells(*(w.at(first) for w in words[:3]))
        two = Shells(*(w.at(second) for w in words[3:]))
        return by_displacement_vertex(a, b, one, two, hermite, kinetic)

    words = (w for i in (member.a, member.b) for pair in shells[i] for w in pair)
    return codelet(
        "pair_gradient", portable, *words, member.first, member.second, given.hermite,
        given.kinetic, shape=(len(member.first), 3), **angular_parts(a, b),
    )  # fmt: skip


def by_displacement_vertex(
    a: ShellGroup, b: ShellGroup, one: Shells, two: Shells, hermite: Array, kinetic: Array
) -> Array:
    """The portable form of the codelet "pair_gradient": forwards along three directions."""
    displacement = difference(one.centre, two.centre)
    zero = jnp.zeros_like(displacement)
    fixed = two._replace(centre=Pair(zero, zero))

    def data(displacement: Array) -> tuple[Array, Array]:
        found = shell_pairs_vertex(a, b, one._replace(centre=Pair(displacement, zero)), fixed)
        return found.hermite, found.kinetic

    def along(axis: Array) -> Array:
        direction = jnp.broadcast_to(axis, displacement.shape)
        _, (by_hermite, by_kinetic) = jax.jvp(data, (displacement,), (direction,))
        return (hermite * by_hermite).sum((1, 2, 3)) + (kinetic * by_kinetic).sum(1)

    return jax.vmap(along, out_axes=1)(jnp.eye(3, dtype=displacement.dtype))

"""The integrals of density fitting: (P|ab) of auxiliary functions and AO products, and (P|Q).

An auxiliary shell is a charge distribution as a shell pair is, on one centre: so both are the
integrals of `integrals.electron_repulsion`, one block for an auxiliary group and a strip of kets
(J. L. Whitten, J. Chem. Phys. 58, 4496 (1973), doi:10.1063/1.1679012; O. Vahtras, J. Almlof,
M. W. Feyereisen, Chem. Phys. Lett. 213, 514 (1993), doi:10.1016/0009-2614(93)89151-7).
"""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pyscf_ipu.codelets import codelet
from pyscf_ipu.codelets.look_up import look_up
from pyscf_ipu.integrals.electron_repulsion import (
    EriSide,
    eri_side,
    eri_vertex,
    with_segments,
    without_segments,
)
from pyscf_ipu.integrals.strips import StripData, sum_to_pairs
from pyscf_ipu.numerics.arrays import Floats, HostArray
from pyscf_ipu.numerics.boys import packed_fits
from pyscf_ipu.numerics.interaction import COULOMB, Interaction
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.shapes.auxiliary import AuxiliaryGroup, AuxiliaryLayout
from pyscf_ipu.shapes.tile_plan import Strips, TilePlan
from pyscf_ipu.tiles import tile_gather, tile_map

LETTERS = "spdfghi"
FloatRF = Float[Array, "R F"]
"""Rows of AO products (or auxiliary functions), auxiliary functions."""


class Auxiliary(NamedTuple):
    """The auxiliary functions of one molecule: a side of one strip per group."""

    layout: AuxiliaryLayout
    sides: tuple[EriSide, ...]  # per group: [1, n, K], [1, n, K, 3] twice, [1, n, K, f, h]


def auxiliary_of(atoms: Atoms, layout: AuxiliaryLayout) -> Auxiliary:
    """Look the auxiliary functions up, in the dtype of the atoms."""
    slots, tables = atoms.layout.slots, atoms.tables
    wanted = [
        [(getattr(tables[c].auxiliary[s], name), slots[c]) for c, s in group.source]
        for group in layout.groups
        for name in ("exponents", "hermite")
    ]
    values = [pair.astype(atoms.dtype).value() for pair in look_up(atoms.element, wanted)]
    sides = []
    for group, p, hermite in zip(layout.groups, values[::2], values[1::2], strict=True):
        centre = Pair(*(_per_primitive(w[group.atom], p) for w in atoms.nuclei))
        sides.append(EriSide(p[None], centre.hi, centre.lo, hermite=hermite[None]))
    return Auxiliary(layout, tuple(sides))


def _per_primitive(centre: Floats, p: Floats) -> Float[Array, "1 n K 3"]:
    return jnp.broadcast_to(centre[:, None], (*p.shape, 3))[None]


class Kets(NamedTuple):
    """One class of kets: its side, how chunks belong to its members, its place in the result."""

    side: EriSide
    segment: np.ndarray
    order: int
    members: int  # shell pairs, or shells, of a strip
    first_row: int
    strips: Strips | None  # None: one chunk a member


def three_index(
    plan: TilePlan, strips: tuple[StripData, ...], auxiliary: Auxiliary, of: Interaction = COULOMB
) -> FloatRF:
    """(P|ab) in Hartree over rows of the plan and auxiliary functions; unused rows are 0."""
    return _integrals(pair_kets(plan, strips), plan.n_rows, auxiliary, of=of)


def pair_kets(plan: TilePlan, strips: tuple[StripData, ...]) -> list[Kets]:
    """The AO products as kets."""
    return [
        Kets(
            eri_side(d),
            s.segment,
            s.pair_class.order,
            members=s.pairs_per_strip,
            first_row=s.first_row,
            strips=s,
        )
        for s, d in zip(plan.strips, strips, strict=True)
    ]


def metric(auxiliary: Auxiliary, of: Interaction = COULOMB) -> Float[Array, "F F"]:
    """(P|Q) in Hartree; functions that do not exist have 1 on the diagonal, and nothing else."""
    v = _integrals(auxiliary_kets(auxiliary), auxiliary.layout.n_functions, auxiliary, of=of)
    v = 0.5 * (v + v.T)
    return v + jnp.diag(jnp.where(jnp.diagonal(v) == 0, 1.0, 0.0).astype(v.dtype))


def auxiliary_kets(auxiliary: Auxiliary) -> list[Kets]:
    """The auxiliary functions as kets."""
    return [
        Kets(
            side,
            one_each(group),
            group.kind.l,
            members=group.n_shells,
            first_row=group.first,
            strips=None,
        )
        for group, side in zip(auxiliary.layout.groups, auxiliary.sides, strict=True)
    ]


def one_each(group: AuxiliaryGroup) -> np.ndarray:
    """Which member a chunk belongs to: each is one."""
    return np.arange(group.n_shells, dtype=np.int32)[None]


def _integrals(kets: list[Kets], rows: int, auxiliary: Auxiliary, of: Interaction) -> FloatRF:
    sides = auxiliary.sides

    def portable(*operands: Array) -> FloatRF:
        arrays = without_segments(operands)
        return _blocks(kets, arrays[len(sides) :], auxiliary, sides=arrays[: len(sides)], of=of)

    return codelet(
        "fitting_integrals",
        portable,
        *operands(kets, auxiliary),
        shape=(rows, auxiliary.layout.n_functions),
        **work(kets, auxiliary, of),
    )


def operands(kets: list[Kets], auxiliary: Auxiliary) -> list[HostArray]:
    """What native codelets read: five arrays of every group, then of every class of kets."""
    sides = [*auxiliary.sides, *(k.side for k in kets)]
    segments = [one_each(group) for group in auxiliary.layout.groups]
    return with_segments(sides, [*segments, *(k.segment for k in kets)])


def work(
    kets: list[Kets], auxiliary: Auxiliary, of: Interaction, derivative: int = 0
) -> dict[str, np.ndarray]:
    """What they read beside the arrays."""
    orders = range(auxiliary.layout.order + max(k.order for k in kets) + 1 + derivative)
    return {
        "auxiliary": _sizes([(g.n_shells, g.first) for g in auxiliary.layout.groups]),
        "kets": _sizes([(k.members, k.first_row) for k in kets]),
        "boys": packed_fits(orders, auxiliary.sides[0].p.dtype),
        "interaction": np.array(of),
    }


def _sizes(sizes: list[tuple[int, int]]) -> np.ndarray:
    return np.array(sizes, np.int32).ravel()


def _blocks(
    kets: list[Kets],
    ket_sides: list[EriSide],
    auxiliary: Auxiliary,
    sides: list[EriSide],
    of: Interaction,
) -> FloatRF:
    """The portable form of the codelet "fitting_integrals": a tile per group and strip of kets."""
    rows = []
    for ket, ket_side in zip(kets, ket_sides, strict=True):
        columns = []
        for group, side in zip(auxiliary.layout.groups, sides, strict=True):
            columns.append(_block(ket, ket_side, group, side=side, of=of))
        rows.append(jnp.concatenate(columns, axis=1))
    return jnp.concatenate(rows)


def _block(
    ket: Kets, ket_side: EriSide, group: AuxiliaryGroup, side: EriSide, of: Interaction
) -> FloatRF:
    """All strips of one class of kets with one group."""
    n = ket_side.p.shape[0]
    tiles, strips = range(n), np.arange(n)
    bra = [tile_gather(x, np.zeros(n, np.int32), tiles) for x in side]
    kets = [tile_gather(x, strips, tiles) for x in ket_side]
    vertex = partial(eri_vertex, (group.kind.l, ket.order), of)
    integrals = tile_map(vertex, *bra, *kets, name=f"fit_{LETTERS[group.kind.l]}_{ket.order}").array
    integrals = integrals.transpose(0, 3, 4, 1, 2).reshape(
        *integrals.shape[:1], *integrals.shape[3:], -1
    )
    if ket.strips is not None:
        integrals = sum_to_pairs(ket.strips, integrals, axis=1)
    return integrals.reshape(-1, integrals.shape[-1])  # [S * members * products, n * f]

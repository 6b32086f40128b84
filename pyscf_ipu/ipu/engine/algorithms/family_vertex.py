"""The vertices of the quartet families: shells in, three blocks of the supermatrix out; and G d.

A vertex gets four shells per family, a few dozen words, and computes the Hermite data of their
six pairs itself: sending those would move a hundred times as much.  Pairs of equal kinds, and
quartets of equal kinds, are computed side by side.  Formulas: `pyscf_ipu.integrals.shell_pairs` and
`pyscf_ipu.integrals.electron_repulsion`, whose sources are given there.

Shape legend: m families; k, B, C primitive pairs; f, g AO products; h Hermites.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pyscf_ipu.integrals.shell_pairs import contract, hermite_products, hermite_table, pair_geometry
from pyscf_ipu.ipu.engine.algorithms.family_cost import PAIRINGS, PAIRS, SideShape, Slices, oriented
from pyscf_ipu.ipu.vertices.short_code import SHORT
from pyscf_ipu.numerics.hermite import SIDE_CONSTANT, hermite_coulomb, hermite_sign, product_index
from pyscf_ipu.numerics.interaction import COULOMB, Interaction
from pyscf_ipu.numerics.two_words import Pair, compensated_dot, scaled
from pyscf_ipu.shapes.atoms import Shells
from pyscf_ipu.shapes.layout import ShellGroup
from pyscf_ipu.tiles import subroutine

Groups = tuple[ShellGroup, ShellGroup, ShellGroup, ShellGroup]


class Side(NamedTuple):
    """n shell pairs as a bra or a ket: exponent p [n, k], centre Pair [n, k, 3] Bohr, and Hermite
    coefficients [f, h, n, k] with the prefactor sqrt(2) pi^(5/4) / p."""

    p: Array
    centre: Pair
    hermite: Array


def shell_rows(shells: Shells, slices: int) -> Array:
    """All numbers of a shell in one row, its primitives in `slices` parts: [n * slices, width].

    Row i * slices + s is slice s of shell i; `unpack_rows` reads it.
    """
    n, depth, contractions = shells.coefficients.hi.shape
    k = depth // slices
    exponents = [w.reshape(n * slices, k) for w in shells.exponents]
    coefficients = [w.reshape(n * slices, k * contractions) for w in shells.coefficients]
    centres = [jnp.repeat(w, slices, axis=0) for w in shells.centre]
    return jnp.concatenate([*exponents, *coefficients, *centres], axis=1)


def unpack_rows(group: ShellGroup, slices: int, rows: Array) -> Shells:
    """The shells [m] of rows [m, width] of `shell_rows`."""
    k = group.kind.n_prim // slices
    contractions = sum(n for _, n in group.kind.parts)
    widths = [k, k, k * contractions, k * contractions, 3, 3]
    e_hi, e_lo, c_hi, c_lo, *centre = jnp.split(rows, np.cumsum(widths)[:-1].tolist(), axis=1)
    shape = (rows.shape[0], k, contractions)
    return Shells(Pair(e_hi, e_lo), Pair(c_hi.reshape(shape), c_lo.reshape(shape)), Pair(*centre))


def pair_side(group_a: ShellGroup, group_b: ShellGroup, a: Shells, b: Shells) -> Side:
    """One shell of each group per pair.

    As `shell_pairs.shell_pairs_vertex`, but without the kinetic energy, which needs the Hermite
    coefficients of one order more on both shells: for s shells twelve times the table.
    """
    kind_a, kind_b = group_a.kind, group_b.kind
    g = subroutine(pair_geometry)(a=a, b=b)
    table = hermite_table(kind_a.l_max, kind_b.l_max, g.p, pa=g.pa, pb=g.pb)
    products = hermite_products(table, kind_a, kind_b)
    prefactor = g.overlap * scaled(1.0 / g.p, SIDE_CONSTANT)
    both = products * prefactor
    both = contract(
        both, group_a, group_b, coeff_a=a.coefficients, coeff_b=b.coefficients, charge=g.charge
    )
    return Side(*g.flat(), both)


def quartets(
    order_bra: int, order_ket: int, bra: Side, ket: Side, of: Interaction = COULOMB
) -> Array:
    """(bra|ket) of n shell quartets: [n, f, g] Hartree."""
    p, q = bra.p[:, :, None], ket.p[:, None, :]
    total = p + q
    r = [
        (bra.centre.hi[:, :, None, d] - ket.centre.hi[:, None, :, d])
        + (bra.centre.lo[:, :, None, d] - ket.centre.lo[:, None, :, d])
        for d in range(3)
    ]
    order = order_bra + order_ket
    coulomb = subroutine(hermite_coulomb, order=order, of=of, arithmetic=SHORT)
    table = coulomb(alpha=p * q / total, prefactor=1.0 / jnp.sqrt(total), r=r)
    rows = product_index(order_bra, order_ket)
    half = jnp.einsum("fhnb,hknbc->fknc", bra.hermite, table[rows], precision="highest")
    sign = jnp.asarray(hermite_sign(order_ket), q.dtype)[:, None, None]
    return jnp.einsum("fknc,gknc->nfg", half, ket.hermite * sign, precision="highest")


def family_eri_vertex(
    groups: Groups, slices: Slices, exchange: Interaction, *operands: Array
) -> Array:
    """The blocks G[ab,cd], G[ac,bd], G[ad,bc] of m families: [m, 3, fa * fb * fc * fd] Hartree.

    Args:
        groups: Of the four shells.
        slices: Of the primitives of each shell; the result is the share of one slice of each.
        exchange: The interaction of exact exchange.
        *operands: Rows [m, width] of the four shells (`shell_rows`), and the weight [m, 3] of each
            block.
    """
    *rows, weight = operands
    shells = [unpack_rows(g, s, x) for g, s, x in zip(groups, slices, rows, strict=True)]
    m = weight.shape[0]
    f = [g.kind.n_functions for g in groups]
    sides = _six_sides(groups, shells)
    shapes = [(m, *(f[x] for x in (*bra, *ket))) for bra, ket in PAIRINGS]

    def blocks(of: Interaction) -> list[Array]:
        quartets = _three_quartets(groups, sides, of)
        return [b.reshape(s) for b, s in zip(quartets, shapes, strict=True)]

    mixed = coulomb = blocks(COULOMB)
    if exchange.long_range:
        mixed = _mix(coulomb, blocks(exchange), 1.0)
    elif exchange.full:
        mixed = _mix(coulomb, coulomb, exchange.full)
    flat = [x.reshape(m, -1) for x in mixed]
    return jnp.stack(flat, axis=1) * weight[:, :, None]


def _six_sides(groups: Groups, shells: list[Shells]) -> dict[tuple[int, int], Side]:
    """Hermite data of the six pairs; pairs of equal kinds in one go."""
    alike: dict[tuple, list[tuple[int, int]]] = {}
    for x, y in PAIRS:
        key = groups[x].kind, groups[y].kind, *(_depth(shells[z]) for z in (x, y))
        alike.setdefault(key, []).append((x, y))
    by_pair = {}
    for pairs in alike.values():
        x, y = pairs[0]
        a, b = (_stacked([shells[pair[z]] for pair in pairs]) for z in (0, 1))
        make = subroutine(pair_side, group_a=groups[x], group_b=groups[y])
        side = make(a=a, b=b)
        by_pair |= dict(zip(pairs, _unstacked(side, len(pairs)), strict=True))
    return by_pair


def _depth(shells: Shells) -> int:
    return shells.exponents.hi.shape[1]


def _stacked(parts: list[Shells]) -> Shells:
    return jax.tree.map(lambda *words: jnp.concatenate(words), *parts)


def _unstacked(side: Side, count: int) -> list[Side]:
    if count == 1:
        return [side]
    p = jnp.split(side.p, count)
    hi, lo = (jnp.split(w, count) for w in side.centre)
    hermite = jnp.split(side.hermite, count, axis=2)
    return [Side(p[i], Pair(hi[i], lo[i]), hermite[i]) for i in range(count)]


def _three_quartets(
    groups: Groups, sides: dict[tuple[int, int], Side], of: Interaction
) -> list[Array]:
    """(ab|cd), (ac|bd), (ad|bc): [m, f, g] each.  Quartets of equal shape in one go."""
    shapes = {
        (x, y): SideShape.of(groups[x].kind, groups[y].kind, sides[x, y].p.shape[1])
        for x, y in PAIRS
    }
    alike: dict[tuple[SideShape, SideShape], list[int]] = {}
    for t, (bra, ket) in enumerate(PAIRINGS):
        alike.setdefault(oriented(shapes[bra], shapes[ket]), []).append(t)
    by_type: dict[int, Array] = {}
    for (first, second), which in alike.items():
        turned = [shapes[PAIRINGS[t][0]] != first for t in which]
        pairs = [
            PAIRINGS[t][::-1] if x else PAIRINGS[t] for t, x in zip(which, turned, strict=True)
        ]
        one, other = (_concatenated([sides[pair[z]] for pair in pairs]) for z in (0, 1))
        orders = {"order_bra": first.order, "order_ket": second.order}
        make = subroutine(quartets, **orders, of=of)
        blocks = jnp.split(make(bra=one, ket=other), len(which))
        for t, x, block in zip(which, turned, blocks, strict=True):
            by_type[t] = block.swapaxes(1, 2) if x else block
    return [by_type[t] for t in range(3)]


def _concatenated(sides: list[Side]) -> Side:
    p = jnp.concatenate([s.p for s in sides])
    hi, lo = (jnp.concatenate([s.centre[w] for s in sides]) for w in (0, 1))
    return Side(p, Pair(hi, lo), jnp.concatenate([s.hermite for s in sides], axis=2))


def _mix(coulomb: list[Array], exchange: list[Array], fraction: float) -> list[Array]:
    """G[ij,kl] = (ij|kl) - x/4 [(ik|jl) + (il|jk)] for the blocks ab-cd, ac-bd and ad-bc."""

    def alike(blocks: list[Array]) -> tuple[Array, Array, Array]:
        ab, ac, ad = blocks
        return ab, ac.transpose(0, 1, 3, 2, 4), ad.transpose(0, 1, 3, 4, 2)

    ab, ac, ad = alike(exchange)
    scale = -0.25 * fraction
    others = ac + ad, ab + ad, ab + ac
    mixed = [j + scale * k for j, k in zip(alike(coulomb), others, strict=True)]
    return [mixed[0], mixed[1].transpose(0, 1, 3, 2, 4), mixed[2].transpose(0, 1, 4, 2, 3)]


def family_product_vertex(
    products: tuple[int, ...], blocks: Array, d: Array
) -> tuple[Array, Array]:
    """G d of m families: [m, places], and their share of 1/2 d G d in two words: [2].

    Args:
        products: AO products of the pairs in the order of PAIRS; places are their sum.
        blocks: [m, 3, products of a bra times those of its ket].
        d: [m, places] density of the six pairs.
    """
    parts = jnp.split(d, np.cumsum(products)[:-1].tolist(), axis=1)
    out, bra_out, bra_in = [], [], []
    for t in range(3):
        bra, ket = parts[2 * t], parts[2 * t + 1]
        block = blocks[:, t].reshape(-1, products[2 * t], products[2 * t + 1])
        up = jnp.einsum("mfg,mg->mf", block, ket, precision="highest")
        out += [up, jnp.einsum("mfg,mf->mg", block, bra, precision="highest")]
        bra_out.append(up)
        bra_in.append(bra)
    # Each block is applied in both directions, so that 1/2 d G d is one of the two alone.
    energy = compensated_dot(*(jnp.concatenate(x, axis=1) for x in (bra_out, bra_in)))
    return jnp.concatenate(out, axis=1), jnp.stack(energy)

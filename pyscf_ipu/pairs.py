"""Shell pairs as Hermite charge distributions: the form from which every integral is taken.

For primitives a on A and b on B with p = a + b and P = (aA + bB)/p, a product of two Gaussians is
sum_tuv E_tuv Lambda_tuv(p, P).  Contraction coefficients, normalisation and the cartesian to
spherical transform are folded into E once, so that a contracted AO product is only a set of
(p, P, E) (McMurchie & Davidson 1978; Helgaker, Jorgensen, Olsen, sec. 9.5).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from pyscf_ipu.hermite import hermite_powers
from pyscf_ipu.layout import Layout, PairClass, ShellGroup
from pyscf_ipu.precision import Pair, difference, two_sum
from pyscf_ipu.tables import ClassTable, Conformer


class Shells(NamedTuple):
    """The shells of one group: exponents [n, K], coefficients [n, K, contractions], centres."""

    exponents: Array
    coefficients: Array
    centre: Pair  # [n, 3] Bohr


class PairData(NamedTuple):
    """Primitive pairs of n shell pairs; k primitive pairs each, f AO products, h Hermites.

    p        [n, k] total exponent.
    centre   Pair [n, k, 3] Bohr.
    hermite  [n, k, f, h] coefficients E.
    kinetic  [n, f] integral -1/2 <a| nabla^2 |b>, contracted.
    """

    p: Array
    centre: Pair
    hermite: Array
    kinetic: Array


def gather_shells(
    layout: Layout, tables: tuple[ClassTable, ...], mol: Conformer, dtype: type
) -> tuple[Shells, ...]:
    """Look up the shells of one molecule, group by group."""
    slots = layout.shape.slot_class()
    out = []
    for group in layout.groups:
        exponents, coefficients = [], []
        for c, s in group.source:
            rows = mol.element[np.nonzero(slots == c)[0]]
            exponents.append(tables[c].exponents[s].astype(dtype).value()[rows])
            coefficients.append(tables[c].coefficients[s].astype(dtype).value()[rows])
        out.append(
            Shells(
                jnp.concatenate(exponents),
                jnp.concatenate(coefficients),
                mol.positions.at(group.atom).astype(dtype),
            )
        )
    return tuple(out)


def class_pairs(
    layout: Layout, pair_class: PairClass, shells: tuple[Shells, ...]
) -> list[PairData]:
    """Hermite data of every member of a pair class, padded to a common number of AO products."""
    return [
        _pair_data(
            layout.groups[m.a],
            layout.groups[m.b],
            _take(shells[m.a], m.first),
            _take(shells[m.b], m.second),
        )
        for m in pair_class.members
    ]


def _take(shells: Shells, index: np.ndarray) -> Shells:
    return Shells(shells.exponents[index], shells.coefficients[index], shells.centre.at(index))


def _pair_data(group_a: ShellGroup, group_b: ShellGroup, a: Shells, b: Shells) -> PairData:
    kind_a, kind_b = group_a.kind, group_b.kind
    ea, eb = a.exponents[:, :, None], b.exponents[:, None, :]
    p = ea + eb
    ab = difference(a.centre, b.centre)  # [n, 3]
    overlap = jnp.exp(-(ea * eb / p) * jnp.sum(ab * ab, -1)[:, None, None])
    # P - A and P - B from A - B: no cancellation.  The centre itself keeps its rounding error in
    # the low word, because the Coulomb integrals see differences of centres.
    pa = (-eb / p)[..., None] * ab[:, None, None, :]
    pb = (ea / p)[..., None] * ab[:, None, None, :]
    hi = a.centre.hi[:, None, None, :]
    rounded = two_sum(jnp.broadcast_to(hi, pa.shape), pa)
    centre = Pair(rounded.hi, rounded.lo + a.centre.lo[:, None, None, :])

    table = hermite_table(kind_a.l_max, kind_b.l_max + 2, p, pa, pb)  # [i][j] -> [t, n, Ka, Kb, 3]
    products = _hermite_products(
        table, kind_a.components, kind_b.components, kind_a.l_max + kind_b.l_max
    )
    kinetic = _kinetic(table, kind_a.components, kind_b.components, eb) * (math.pi / p) ** 1.5
    both = jnp.concatenate([products, kinetic[:, :, None]], axis=2) * overlap
    both = _contract(both, group_a, group_b, a.coefficients, b.coefficients)

    n, k = p.shape[0], p.shape[1] * p.shape[2]
    f, h = both.shape[0], both.shape[1]
    both = both.reshape(f, h, n, k).transpose(2, 3, 0, 1)
    return PairData(
        p.reshape(n, k),
        Pair(centre.hi.reshape(n, k, 3), centre.lo.reshape(n, k, 3)),
        both[..., :-1],
        both[..., -1].sum(1),
    )


def hermite_table(la: int, lb: int, p: Array, pa: Array, pb: Array) -> list[list[list[Array]]]:
    """E_t^{ij} of one dimension for i <= la, j <= lb: table[i][j][t], each [n, Ka, Kb, 3].

    The Gaussian overlap factor is left out.  Helgaker, Jorgensen, Olsen, eq. 9.5.6-7.
    """
    half = (0.5 / p)[..., None]
    zero = jnp.zeros_like(pa)

    def step(row: list[Array], shift: Array) -> list[Array]:
        padded = [zero, *row, zero, zero]
        return [
            half * padded[t] + shift * padded[t + 1] + (t + 1.0) * padded[t + 2]
            for t in range(len(row) + 1)
        ]

    table: list[list[list[Array]]] = []
    for i in range(la + 1):
        first = [jnp.ones_like(pa)] if i == 0 else step(table[i - 1][0], pa)
        row = [first]
        for _ in range(lb):
            row.append(step(row[-1], pb))
        table.append(row)
    return table


Powers = tuple[tuple[int, int, int], ...]


def _hermite_products(table: list, comps_a: Powers, comps_b: Powers, order: int) -> Array:
    """E_tuv of every product of cartesian components: [ca, cb, h, n, Ka, Kb]."""
    n_i, n_j, n_t = len(table), len(table[0]) - 2, order + 1
    zero = jnp.zeros_like(table[0][0][0])
    dense = jnp.stack(
        [
            jnp.stack([jnp.stack([*table[i][j], *[zero] * n_t][:n_t]) for j in range(n_j)])
            for i in range(n_i)
        ]
    )  # [i, j, t, n, Ka, Kb, 3]
    a, b, h = (np.array(x) for x in (comps_a, comps_b, hermite_powers(order)))

    def dimension(d: int) -> Array:
        return dense[..., d][a[:, None, None, d], b[None, :, None, d], h[None, None, :, d]]

    return dimension(0) * dimension(1) * dimension(2)


def _kinetic(table: list, comps_a: Powers, comps_b: Powers, eb: Array) -> Array:
    """-1/2 nabla^2 on the ket, without the factor (pi/p)^(3/2): [ca, cb, n, Ka, Kb]."""
    b = eb[..., None]

    def one(i: int, j: int) -> Array:
        value = -2.0 * b * b * table[i][j + 2][0] + (2 * j + 1.0) * b * table[i][j][0]
        return value - 0.5 * j * (j - 1) * table[i][j - 2][0] if j > 1 else value

    rows = []
    for x in comps_a:
        for y in comps_b:
            s = [table[x[d]][y[d]][0][..., d] for d in range(3)]
            t = [one(x[d], y[d])[..., d] for d in range(3)]
            rows.append(t[0] * s[1] * s[2] + s[0] * t[1] * s[2] + s[0] * s[1] * t[2])
    return jnp.stack(rows).reshape(len(comps_a), len(comps_b), *rows[0].shape)


def _contract(
    values: Array, group_a: ShellGroup, group_b: ShellGroup, coeff_a: Array, coeff_b: Array
) -> Array:
    """Fold coefficients and spherical transform in: [ca, cb, h, n, Ka, Kb] -> [fa*fb, h, n, Ka*Kb]."""
    ca = jnp.moveaxis(coeff_a[..., radial_index(group_a)], -1, 0)  # [ca, n, Ka]
    cb = jnp.moveaxis(coeff_b[..., radial_index(group_b)], -1, 0)
    values = values * ca[:, None, None, :, :, None] * cb[None, :, None, :, None, :]
    for axis, group in ((0, group_a), (1, group_b)):
        matrix = jnp.asarray(group.kind.transform(), values.dtype)
        values = jnp.moveaxis(
            jnp.tensordot(matrix, values, ((1,), (axis,)), precision="highest"), 0, axis
        )
    fa, fb, h, n, ka, kb = values.shape
    return values.reshape(fa * fb, h, n, ka * kb)


def radial_index(group: ShellGroup) -> np.ndarray:
    """Column of the coefficient table that each cartesian component uses."""
    index, column = [], 0
    for l, contractions in group.kind.parts:
        for _ in range(contractions):
            index += [column] * ((l + 1) * (l + 2) // 2)
            column += 1
    return np.array(index)

"""Shell pairs as Hermite charge distributions: the form from which every integral is taken.

For primitives a on A and b on B with p = a + b and P = (aA + bB)/p, a product of two Gaussians is
sum_tuv E_tuv Lambda_tuv(p, P).  Contraction coefficients, normalisation and the cartesian to
spherical transform are folded into E once, so that a contracted AO product is only a set of
(p, P, E) (McMurchie & Davidson 1978; Helgaker, Jorgensen, Olsen, sec. 9.5).
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pyscf_ipu.elements.basis import ShellKind
from pyscf_ipu.numerics.arrays import Floats, Lanes
from pyscf_ipu.numerics.hermite import hermite_powers
from pyscf_ipu.numerics.two_words import Pair, difference, scaled, split, two_product, two_sum
from pyscf_ipu.shapes.atoms import Shells
from pyscf_ipu.shapes.layout import Layout, PairClass, ShellGroup

Powers = tuple[tuple[int, int, int], ...]
FloatKK = Float[Array, "n Ka Kb"]
FloatKK3 = Float[Array, "n Ka Kb 3"]
Table = Float[Array, "i j t n Ka Kb 3"]


class PairData(NamedTuple):
    """Primitive pairs of n shell pairs; k primitive pairs each, f AO products, h Hermites."""

    p: Float[Array, "n k"]  # total exponents
    centre: Pair  # [n, k, 3] Bohr
    hermite: Float[Array, "n k f h"]  # coefficients E
    kinetic: Float[Array, "n f"]  # 1/2 <grad a | grad b>, contracted


def class_pairs(
    layout: Layout, shells: tuple[Shells, ...], pair_class: PairClass
) -> tuple[PairData, ...]:
    """Hermite data of every member of a pair class, from the shells of every group."""
    groups = layout.groups
    return tuple(
        shell_pairs_vertex(
            groups[m.a], groups[m.b], shells[m.a].at(m.first), b=shells[m.b].at(m.second)
        )
        for m in pair_class.members
    )


def angular_parts(layout: Layout) -> dict[str, np.ndarray]:
    """What native codelets read of the groups of shells beside the arrays.

    `groups` has the number of cartesian components and of functions of each.
    """
    kinds = [group.kind for group in layout.groups]
    sizes = [(len(kind.components), kind.n_functions) for kind in kinds]
    return {
        "groups": np.array(sizes, np.int32).ravel(),
        "powers": np.concatenate([_powers(group) for group in layout.groups]),
        "transforms": np.concatenate([kind.transform().ravel() for kind in kinds]),
    }


def _powers(group: ShellGroup) -> np.ndarray:
    """Powers of x, y and z and the coefficient column of every cartesian component: [c * 4]."""
    columns = radial_index(group)[:, None]
    return np.concatenate([np.array(group.kind.components), columns], 1, dtype=np.int32).ravel()


def shell_pairs_vertex(group_a: ShellGroup, group_b: ShellGroup, a: Shells, b: Shells) -> PairData:
    """Hermite data of pairs of shells, one of each group per pair."""
    kind_a, kind_b = group_a.kind, group_b.kind
    g = pair_geometry(a, b)
    table = hermite_table(kind_a.l_max + 1, kind_b.l_max + 1, g.p, pa=g.pa, pb=g.pb)
    products = hermite_products(table, kind_a, kind_b)
    kinetic = _kinetic(table, kind_a.components, kind_b.components, sa=a, sb=b) * gaussian_integral(
        g.p
    )
    both = jnp.concatenate([products, kinetic[:, :, None]], axis=2) * g.overlap
    both = contract(
        both, group_a, group_b, coeff_a=a.coefficients, coeff_b=b.coefficients, charge=g.charge
    )
    both = both.transpose(2, 3, 0, 1)
    p, centre = g.flat()
    return PairData(p, centre, both[..., :-1], kinetic=both[..., -1].sum(1))


class PairGeometry(NamedTuple):
    """Primitive pairs of n shell pairs; vectors in Bohr."""

    p: FloatKK  # total exponent
    charge: FloatKK  # relative correction for its rounding
    overlap: FloatKK  # Gaussian overlap factor
    pa: FloatKK3  # P - A
    pb: FloatKK3  # P - B
    centre: Pair  # P

    def flat(self) -> tuple[Float[Array, "n k"], Pair]:
        """Exponents and centres [n, k, 3], all primitive pairs along one axis."""
        n, ka, kb = self.p.shape
        return self.p.reshape(n, ka * kb), Pair(*(w.reshape(n, ka * kb, 3) for w in self.centre))


def pair_geometry(a: Shells, b: Shells) -> PairGeometry:
    """The Gaussian product theorem for one shell of each side per pair."""
    ea, eb = a.exponents.hi[:, :, None], b.exponents.hi[:, None, :]
    p, p_error = two_sum(ea, eb)
    p_error = p_error + a.exponents.lo[:, :, None] + b.exponents.lo[:, None, :]
    ab = difference(a.centre, b.centre)  # [n, 3]
    overlap = jnp.exp(-(ea * eb / p) * jnp.sum(ab * ab, -1)[:, None, None])
    # P - A and P - B from A - B: no cancellation.  The centre itself keeps its rounding error in
    # the low word, because the Coulomb integrals see differences of centres.
    pa = (-eb / p)[..., None] * ab[:, None, None, :]
    pb = (ea / p)[..., None] * ab[:, None, None, :]
    rounded = two_sum(jnp.broadcast_to(a.centre.hi[:, None, None, :], pa.shape), pa)
    centre = Pair(rounded.hi, rounded.lo + a.centre.lo[:, None, None, :])
    # What is computed with is exp(-p r^2) with the rounded p; keep the charge of the true one.
    return PairGeometry(p, -1.5 * p_error / p, overlap, pa=pa, pb=pb, centre=centre)


def gaussian_integral(p: Lanes) -> Lanes:
    """(pi/p)^(3/2): the integral of a Gaussian of exponent p."""
    return scaled(1.0 / (p * jnp.sqrt(p)), math.pi**1.5)


def hermite_table(la: int, lb: int, p: FloatKK, pa: FloatKK3, pb: FloatKK3) -> Table:
    """E_t^{ij} of each dimension for i <= la, j <= lb; 0 for t > i + j.

    The Gaussian overlap factor is left out.  Helgaker, Jorgensen, Olsen, eq. 9.5.6-7.
    """
    half = (0.5 / p)[..., None]
    degree = np.arange(1.0, la + lb + 2).reshape(-1, 1, 1, 1, 1)

    def step(row: Array, shift: FloatKK3) -> Array:
        """One power more: [t, ...] -> [t + 1, ...].  Whole rows, so that the program is short."""
        lower = _shifted(half * row, 1, 0)
        upper = jnp.asarray(degree[: row.shape[0]], row.dtype)[:-1] * row[1:]
        return lower + _shifted(shift * row, 0, 1) + _shifted(upper, 0, 2)

    column = [jnp.ones_like(pa)[None]]
    for _ in range(la):
        column.append(step(column[-1], pa))
    table = []
    for first in column:
        row = [first]
        for _ in range(lb):
            row.append(step(row[-1], pb))
        table.append(jnp.stack([_shifted(x, 0, la + lb + 1 - x.shape[0]) for x in row]))
    return jnp.stack(table)


def _shifted(x: Floats, before: int, after: int, axis: int = 0) -> Floats:
    """Zeros put before and after along one axis."""
    return jnp.pad(x, [(before, after) if d == axis else (0, 0) for d in range(x.ndim)])


def hermite_products(
    table: Table, kind_a: ShellKind, kind_b: ShellKind
) -> Float[Array, "ca cb h n Ka Kb"]:
    """E_tuv of every product of cartesian components."""
    powers = kind_a.components, kind_b.components, hermite_powers(kind_a.l_max + kind_b.l_max)
    a, b, h = (np.array(x, np.int32) for x in powers)

    def dimension(d: int) -> Array:
        return table[..., d][a[:, None, None, d], b[None, :, None, d], h[None, None, :, d]]

    return dimension(0) * dimension(1) * dimension(2)


def _kinetic(
    table: Table, comps_a: Powers, comps_b: Powers, sa: Shells, sb: Shells
) -> Float[Array, "ca cb n Ka Kb"]:
    """1/2 <grad a | grad b> without the factor (pi/p)^(3/2).

    The symmetric form has no cancellation between tight and diffuse primitives; applying nabla^2
    to one side costs a factor b/a in relative accuracy, which float32 does not have.
    """
    a, b = sa.exponents.hi[:, :, None, None], sb.exponents.hi[:, None, :, None]
    overlap = table[:, :, 0]  # [i, j, n, Ka, Kb, 3]
    n_i, n_j = overlap.shape[0] - 1, overlap.shape[1] - 1
    i = jnp.asarray(np.arange(n_i).reshape(-1, 1, 1, 1, 1, 1), overlap.dtype)
    j = jnp.asarray(np.arange(n_j).reshape(-1, 1, 1, 1, 1), overlap.dtype)
    up_down = _shifted(overlap[1:, : n_j - 1], 1, 0, axis=1)
    down_up = _shifted(overlap[: n_i - 1, 1:], 1, 0)
    down_down = _shifted(_shifted(overlap[: n_i - 1, : n_j - 1], 1, 0), 1, 0, axis=1)
    kinetic = 2.0 * a * b * overlap[1:, 1:] - j * a * up_down - i * b * down_up
    kinetic = kinetic + 0.5 * i * j * down_down
    x, y = np.array(comps_a, np.int32)[:, None], np.array(comps_b, np.int32)[None]
    s = [overlap[x[..., d], y[..., d]][..., d] for d in range(3)]
    t = [kinetic[x[..., d], y[..., d]][..., d] for d in range(3)]
    return t[0] * s[1] * s[2] + s[0] * t[1] * s[2] + s[0] * s[1] * t[2]


def contract(
    values: Float[Array, "ca cb h n Ka Kb"],
    group_a: ShellGroup,
    group_b: ShellGroup,
    coeff_a: Pair,
    coeff_b: Pair,
    charge: FloatKK,
) -> Float[Array, "products h n k"]:
    """Fold coefficients and spherical transform in.

    The product of two coefficients, and the relative correction `charge`, enter in two
    words: they scale a whole charge distribution, the same in every molecule.
    """
    a = _components(coeff_a, group_a, (slice(None), None, slice(None), slice(None), None))
    b = _components(coeff_b, group_b, (None, slice(None), slice(None), None, slice(None)))
    weight = two_product(*jnp.broadcast_arrays(a.hi, b.hi))
    rest = weight.lo + a.hi * b.lo + a.lo * b.hi + weight.hi * charge
    values = values * weight.hi[:, :, None] + values * rest[:, :, None]
    values = _to_functions(group_a, values, 0)
    values = _to_functions(group_b, values, 1)
    fa, fb, h, n, ka, kb = values.shape
    return values.reshape(fa * fb, h, n, ka * kb)


def _to_functions(group: ShellGroup, values: Floats, axis: int) -> Floats:
    """Cartesian components to the shell's functions along one axis; the matrix in two words."""
    transform = group.kind.transform()
    if np.array_equal(transform, np.eye(len(transform))):
        return values
    words = split(transform, values.dtype)
    both = [jnp.tensordot(w, values, ((1,), (axis,)), precision="highest") for w in words]
    return jnp.moveaxis(both[0] + both[1], 0, axis)


def _components(coefficients: Pair, group: ShellGroup, axes: tuple) -> Pair:
    """Coefficients [n, K, contractions] per cartesian component, with axes put in place."""
    column = radial_index(group)
    return Pair(*(jnp.moveaxis(w[..., column], -1, 0)[axes] for w in coefficients))


def radial_index(group: ShellGroup) -> Int[np.ndarray, " components"]:
    """Column of the coefficient table that each cartesian component uses."""
    index, column = [], 0
    for l, contractions in group.kind.parts:
        for _ in range(contractions):
            index += [column] * ((l + 1) * (l + 2) // 2)
            column += 1
    return np.array(index)

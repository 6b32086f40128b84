"""Values and gradients of the AOs on grid points.

Distances come from a point's position relative to its own nucleus plus a difference of nuclei,
so that float32 rounds lengths of a few Bohr and never a position in the molecule.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pyscf_ipu.codelets import codelet
from pyscf_ipu.elements.basis import to_functions
from pyscf_ipu.elements.basis_sets import MAX_L
from pyscf_ipu.integrals.shell_pairs import radial_index
from pyscf_ipu.numerics.arrays import FloatDNG, FloatG3, FloatTDNG
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes.atoms import Atoms, Shells
from pyscf_ipu.shapes.layout import Layout, ShellGroup
from pyscf_ipu.tiles import tile_map, tile_put_sharded

FloatNG = Float[Array, "n G"]


def ao_blocks(
    atoms: Atoms,
    local: Float[Array, "T G 3"],
    owner: Int[np.ndarray, "T G"] | Int[Array, "T G"],
    gradient: bool,
) -> FloatTDNG:
    """AOs on T blocks of points at nuclei[owner] + local (Bohr); D as in `ao_values`."""
    layout = atoms.layout

    def portable(*operands: Array) -> FloatTDNG:
        local, owner, hi, lo, *shells = operands
        centres = Pair(hi, lo)
        parts = _split_shells(layout, centres, *shells)
        return ao_blocks_vertex(layout, parts, local, centres.at(owner), gradient)

    exponents = jnp.concatenate([s.exponents.value().ravel() for s in atoms.shells])
    coefficients = jnp.concatenate([s.coefficients.value().ravel() for s in atoms.shells])
    places = jnp.asarray(owner, np.int32)
    blocks, size = owner.shape
    return codelet(
        "ao_values",
        portable,
        *(local, places, *atoms.nuclei, exponents, coefficients),
        shape=(blocks, 4 if gradient else 1, layout.shape.n_ao, size),
        shells=shell_table(layout).ravel(),
        pure_d=_pure(layout, 2),
        pure_f=_pure(layout, 3),
    )


def ao_blocks_vertex(
    layout: Layout,
    shells: tuple[Shells, ...],
    local: Float[Array, "T G 3"],
    owner: Pair,
    gradient: bool,
) -> FloatTDNG:
    """The portable form of the codelet "ao_values": one compute set, a vertex per block."""

    def ao_values_vertex(local: FloatG3, hi: FloatG3, lo: FloatG3) -> FloatDNG:
        return ao_values(layout, shells, local, Pair(hi, lo), gradient)

    tiles = range(local.shape[0])
    args = [tile_put_sharded(x, tiles) for x in (local, owner.hi, owner.lo)]
    return tile_map(ao_values_vertex, *args, name="ao_values", shared=True).array


def _pure(layout: Layout, l: int) -> Float[np.ndarray, " numbers"]:
    """What makes functions of one l from cartesian powers, row by row."""
    cart = any(group.kind.cart for group in layout.groups if group.kind.l_max == l)
    return to_functions(l, cart).ravel()


def shell_table(layout: Layout) -> Int[np.ndarray, "shells 9"]:
    """What the codelet "ao_values" reads of every shell.

    Atom slot, first AO, number of primitives, where its exponents and where its coefficients
    start in the lists of all, number of contractions for l = 0 to 3.  Sorted by atom.
    """
    rows, exponent, coefficient = [], 0, 0
    for group in layout.groups:
        k, parts = group.kind.n_prim, dict(group.kind.parts)
        contractions = [parts.get(l, 0) for l in range(MAX_L + 1)]
        for atom, ao in zip(group.atom, group.ao, strict=True):
            rows.append([atom, ao, k, exponent, coefficient, *contractions])
            exponent += k
            coefficient += k * sum(contractions)
    table = np.array(rows, np.int32)
    return table[np.argsort(table[:, 0], kind="stable")]


def _split_shells(
    layout: Layout,
    nuclei: Pair,
    exponents: Float[Array, " numbers"],
    coefficients: Float[Array, " more"],
) -> tuple[Shells, ...]:
    """The shells of every group from the lists of all exponents and coefficients."""
    out, exponent, coefficient = [], 0, 0
    for group in layout.groups:
        n, k = group.n_shells, group.kind.n_prim
        columns = sum(count for _, count in group.kind.parts)
        a = exponents[exponent : exponent + n * k].reshape(n, k)
        c = coefficients[coefficient : coefficient + n * k * columns].reshape(n, k, columns)
        out.append(
            Shells(Pair(a, jnp.zeros_like(a)), Pair(c, jnp.zeros_like(c)), nuclei.at(group.atom))
        )
        exponent, coefficient = exponent + a.size, coefficient + c.size
    return tuple(out)


def ao_values(
    layout: Layout, shells: tuple[Shells, ...], local: FloatG3, owner: Pair, gradient: bool
) -> FloatDNG:
    """AOs at the points owner + local (Bohr): D = 1 (values), or 4 with d/dx, d/dy, d/dz.

    `owner` [G, 3] is the nucleus from which the `local` position of each point is counted.
    """
    return stacked_ao_values(layout, shells, local, owner, gradient)[:, ao_rows(layout)]


def stacked_ao_values(
    layout: Layout, shells: tuple[Shells, ...], local: FloatG3, owner: Pair, gradient: bool
) -> FloatDNG:
    """`ao_values` group by group: the row of every AO is in `ao_rows`."""
    parts = [
        _group_values(group, s, local, owner, gradient)
        for group, s in zip(layout.groups, shells, strict=True)
    ]
    return jnp.concatenate(parts, axis=1)


def ao_rows(layout: Layout) -> Int[np.ndarray, " N"]:
    """Row of every AO in the group-by-group stack, where a group is [function, shell]."""
    rows = np.empty(layout.shape.n_ao, np.int32)
    offset = 0
    for group in layout.groups:
        f = np.arange(group.kind.n_functions)[:, None]
        rows[group.ao[None, :] + f] = offset + f * group.n_shells + np.arange(group.n_shells)
        offset += group.kind.n_functions * group.n_shells
    return rows


def _group_values(
    group: ShellGroup, shells: Shells, local: FloatG3, owner: Pair, gradient: bool
) -> Float[Array, "D rows G"]:
    """One group: a row for every shell of the first function, then of the second, and so on."""
    far, near = shells.centre.hi[:, None], shells.centre.lo[:, None]  # [n, 1, 3]
    r = [
        local[:, d] + ((owner.hi[:, d] - far[..., d]) + (owner.lo[:, d] - near[..., d]))
        for d in range(3)
    ]  # [n, G] each
    r2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
    exponents, coefficients = shells.exponents.value(), shells.coefficients.value()
    n_prim, n_radial = coefficients.shape[1:]
    gauss = [jnp.exp(-exponents[:, k, None] * r2) for k in range(n_prim)]

    def radial(column: int, order: int) -> FloatNG:
        """The contraction (order 0), or twice its derivative with respect to r^2 (order 1)."""
        factor = coefficients[..., column]
        if order:
            factor = -2.0 * exponents * factor
        # Written out: XLA's reduction over a leading axis of a product is many times slower.
        terms = [factor[:, k, None] * gauss[k] for k in range(n_prim)]
        return sum(terms[1:], terms[0])

    value = [radial(c, 0) for c in range(n_radial)]
    slope = [radial(c, 1) for c in range(n_radial)] if gradient else []
    columns = [int(c) for c in radial_index(group)]
    components = list(zip(group.kind.components, columns, strict=True))
    rows = [jnp.stack([_component(power, value[c], r) for power, c in components])]
    for d in range(3 if gradient else 0):
        along = [
            _component(power, slope[c], r) * r[d] + _derivative(power, d, value[c], r)
            for power, c in components
        ]
        rows.append(jnp.stack(along))
    stacked = jnp.stack(rows)  # [D, components, n, G]
    transform = group.kind.transform()
    if not np.array_equal(transform, np.eye(len(transform))):
        matrix = jnp.asarray(transform, stacked.dtype)
        stacked = jnp.einsum("fc,dcng->dfng", matrix, stacked, precision="highest")
    return stacked.reshape(len(rows), -1, local.shape[0])


def _component(power: tuple[int, int, int], radial: FloatNG, r: list[FloatNG]) -> FloatNG:
    """x^i y^j z^k times a radial function."""
    for d in range(3):
        for _ in range(power[d]):
            radial = radial * r[d]
    return radial


def _derivative(power: tuple[int, int, int], d: int, radial: FloatNG, r: list[FloatNG]) -> FloatNG:
    """The radial function times d/dx_d of x^i y^j z^k."""
    if power[d] == 0:
        return jnp.zeros_like(radial)
    lowered = power[0] - (d == 0), power[1] - (d == 1), power[2] - (d == 2)
    return float(power[d]) * _component(lowered, radial, r)

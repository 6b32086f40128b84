"""Values and gradients of the AOs on grid points.

Distances come from a point's position relative to its own nucleus plus a difference of nuclei,
so that float32 rounds lengths of a few Bohr and never a position in the molecule.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from pyscf_ipu.integrals.shell_pairs import radial_index
from pyscf_ipu.numerics.arrays import FloatDNG, FloatG3
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes.atoms import Shells
from pyscf_ipu.shapes.layout import Layout, ShellGroup

FloatNG = Float[Array, "n G"]


def ao_values(
    layout: Layout, shells: tuple[Shells, ...], local: FloatG3, owner: Pair, gradient: bool
) -> FloatDNG:
    """AOs at the points owner + local (Bohr): D = 1 (values), or 4 with d/dx, d/dy, d/dz.

    `owner` [G, 3] is the nucleus from which the `local` position of each point is counted.
    """
    return stacked_ao_values(layout, shells, local, owner=owner, gradient=gradient)[
        :, ao_rows(layout)
    ]


def stacked_ao_values(
    layout: Layout, shells: tuple[Shells, ...], local: FloatG3, owner: Pair, gradient: bool
) -> FloatDNG:
    """`ao_values` group by group: the row of every AO is in `ao_rows`."""
    parts = [
        _group_values(group, s, local, owner=owner, gradient=gradient)
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
    # In float32 one word of each; the codelet adds up both.
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
            _component(power, slope[c], r) * r[d] + _derivative(power, d, value[c], r=r)
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

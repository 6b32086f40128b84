"""Derivatives of the fitted electron repulsion energy, auxiliary functions included.

With C = (ab|P) (P|Q)^-1 the energy of an interaction is quadratic in the integrals, so that both
kinds enter its derivative with weights from C alone::

    d 1/2 D C (C D)  =  sum (C D)_P D_ab d(ab|P) - 1/2 sum (C D)_P (C D)_Q d(P|Q)

and for exchange with D C_P D in place of (C D)_P D (F. Weigend, M. Haser, Theor. Chem. Acc. 97, 331
(1997), doi:10.1007/s002140050269).  All of it is in float64, as the fit is.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from pyscf_ipu.codelets import codelet
from pyscf_ipu.fitting.operators import Root, density_rows, exchange_parts
from pyscf_ipu.fitting.plan_rows import times_columns, with_columns
from pyscf_ipu.fitting.three_index import (
    Auxiliary,
    FloatRF,
    Kets,
    auxiliary_kets,
    auxiliary_of,
    metric,
    operands,
    pair_kets,
    three_index,
    work,
)
from pyscf_ipu.gradient.electron_repulsion import (
    Energy,
    PairGradient,
    by_strips,
    eri_gradient_vertex,
)
from pyscf_ipu.integrals.electron_repulsion import EriSide, without_segments
from pyscf_ipu.integrals.strips import StripData, pair_strips
from pyscf_ipu.numerics.arrays import Count, FloatA3, FloatNN, FloatSNN, mean_of_spins
from pyscf_ipu.numerics.columns import columns_of_density
from pyscf_ipu.numerics.interaction import COULOMB, Interaction
from pyscf_ipu.numerics.products import after
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.shapes.auxiliary import AuxiliaryLayout
from pyscf_ipu.shapes.tile_plan import TilePlan

WIDE = 32
"""Columns of a density that are computed together."""


class _Weights(NamedTuple):
    """d energy / d (ab|P) over the rows of the plan, and d energy / d (P|Q)."""

    three: FloatRF
    two: Float[Array, "F F"]


def fitted_gradient(
    atoms: Atoms, layout: AuxiliaryLayout, density: FloatSNN, exchange: Interaction
) -> tuple[list[PairGradient], FloatA3]:
    """Derivatives of the Coulomb and exact exchange energy.

    Args:
        atoms: the molecule.
        layout: of its auxiliary functions.
        density: symmetric, without negative eigenvalues; or those of two spins, each that of closed
            shells.
        exchange: the interaction of exact exchange, fractions included.

    Returns:
        Derivatives by the Hermite data of every class, and by the nuclei of auxiliary functions; in
        the dtype of the atoms.
    """
    wide = atoms.astype(jnp.float64)
    plan, strips = wide.plan, pair_strips(wide)
    auxiliary = auxiliary_of(wide, layout)
    density = density.astype(jnp.float64)
    fractions: dict[Interaction, list[float]] = {COULOMB: [1.0, 0.0]}
    for fraction, of in exchange_parts(exchange):
        fractions.setdefault(of, [0.0, 0.0])[1] = fraction
    owners = _atoms_of(layout)
    nothing = jnp.zeros((atoms.layout.shape.n_atoms, 3), jnp.float64)

    def part(energy: Energy, auxiliary: Auxiliary) -> tuple[list[PairGradient], FloatA3]:
        weights = _weights(plan, strips, auxiliary, density=density, energy=energy)
        kets = pair_kets(plan, strips)
        three, on_auxiliary = _contracted(kets, auxiliary, weights.three, of=energy.of)
        by_nuclei = nothing.at[owners].add(_per_shell(on_auxiliary))
        kets, on_bras = _contracted(auxiliary_kets(auxiliary), auxiliary, weights.two, of=energy.of)
        both = [x.centre + y for x, y in zip(kets, on_bras, strict=True)]
        return three, by_nuclei.at[owners].add(_per_shell(both))

    first, *others = (Energy(c, x, of) for of, (c, x) in fractions.items())
    total = part(first, auxiliary)
    for energy in others:
        sides = after(total, auxiliary.sides)
        new = part(energy, auxiliary._replace(sides=sides))
        total = jax.tree.map(jnp.add, total, new)
    by_sides, by_nuclei = total
    gradients = by_strips(by_sides, strips), by_nuclei
    return jax.tree.map(lambda x: x.astype(atoms.dtype), gradients)


def _atoms_of(layout: AuxiliaryLayout) -> Array:
    return jnp.concatenate([jnp.asarray(group.atom) for group in layout.groups])


def _per_shell(by_group: list[Array]) -> Float[Array, "shells 3"]:
    """Sums over the primitives of every auxiliary shell."""
    return jnp.concatenate([x[0].sum(1) for x in by_group])


def _weights(
    plan: TilePlan,
    strips: tuple[StripData, ...],
    auxiliary: Auxiliary,
    density: FloatSNN,
    energy: Energy,
) -> _Weights:
    """The weights of one interaction."""
    coulomb, exchange, of = energy
    spins = [density] if density.ndim == 2 else list(density)
    root = Root(metric(auxiliary, of))
    integrals = three_index(plan, strips, auxiliary, of=of)
    three, two = jnp.zeros_like(integrals), jnp.zeros((integrals.shape[1],) * 2, integrals.dtype)
    if coulomb:
        packed = density_rows(plan, mean_of_spins(density) if len(spins) == 2 else density)
        charge = _fit(root, jnp.matmul(packed, integrals, precision="highest")[None])[0]
        three = coulomb * packed[:, None] * charge
        two = -0.5 * coulomb * charge[:, None] * charge
    weights = _Weights(three, two)
    for one in spins if exchange else ():
        fraction = exchange / len(spins)
        weights = _with_exchange(
            weights, integrals, root, rows=plan.row_of, density=one, fraction=fraction
        )
    return weights


def _fit(root: Root, rows: FloatRF) -> FloatRF:
    """Rows times (P|Q)^-1."""
    return root.applied(root.applied(rows), transposed=True)


def _with_exchange(
    weights: _Weights,
    integrals: FloatRF,
    root: Root,
    rows: np.ndarray,
    density: FloatNN,
    fraction: float,
) -> _Weights:
    """Adds Z_P = D C_P D, and tr(C_P Z_Q), with C_P between the columns c_i of D.

    Only c_i^T C_P c_j is ever fitted, WIDE columns i and j at a time: C_P itself has as many
    elements as there are AO pairs, which are far more.
    """
    n, f = density.shape[0], integrals.shape[1]
    vectors, _, count = columns_of_density(density)
    vectors, blocks = jnp.pad(vectors, ((0, 0), (0, WIDE))), (count + WIDE - 1) // WIDE

    def columns(block: Count) -> Float[Array, "N WIDE"]:
        return lax.dynamic_slice_in_dim(vectors, block * WIDE, WIDE, 1)

    def i_block(block: Count, sums: _Weights) -> _Weights:
        c = columns(block)
        used = jnp.minimum(count - block * WIDE, WIDE).astype(jnp.int32)
        half = times_columns(integrals, rows, c, used=used).reshape(n, -1)  # (a i|P)

        def j_block(other: Count, inner: tuple[Array, Array]) -> tuple[Array, Array]:
            w, y = inner
            of_pairs = _product(columns(other).T, half).reshape(-1, f)
            fitted = _fit(root, of_pairs)
            w = w + _product(columns(other), fitted.reshape(WIDE, -1))
            return w, y + _product(fitted.T, fitted)

        start = jnp.zeros_like(half), jnp.zeros_like(sums.two)
        w, y = lax.fori_loop(0, blocks, j_block, start)
        half_columns = c * (-0.5 * fraction)
        three = with_columns(sums.three, rows, half_columns, used=used, w=w.reshape(n, WIDE, f))
        return _Weights(three, sums.two + 0.25 * fraction * y)

    return lax.fori_loop(0, blocks, i_block, weights)


def _contracted(
    kets: list[Kets], auxiliary: Auxiliary, weights: FloatRF, of: Interaction
) -> tuple[list[PairGradient], list[Float[Array, "1 n K 3"]]]:
    """Derivatives of the sum of weights times integrals: by kets, and by auxiliary centres."""
    sides = auxiliary.sides

    def portable(*given: Array) -> tuple[Array, ...]:
        *arrays, weights = given
        whole = without_segments(arrays)
        return _blocks(
            kets, whole[len(sides) :], auxiliary, sides=whole[: len(sides)], weights=weights, of=of
        )

    shape = [side.centre_hi.shape for side in sides]
    shape += [x.shape for k in kets for x in (k.side.centre_hi, k.side.hermite)]
    flat = codelet(
        "fitting_gradient",
        portable,
        *operands(kets, auxiliary),
        weights,
        shape=tuple(shape),
        **work(kets, auxiliary, of, derivative=1),
    )
    rest = flat[len(sides) :]
    by_side = [PairGradient(*rest[k : k + 2]) for k in range(0, len(rest), 2)]
    return by_side, list(flat[: len(sides)])


def _blocks(
    kets: list[Kets],
    ket_sides: list[EriSide],
    auxiliary: Auxiliary,
    sides: list[EriSide],
    weights: FloatRF,
    of: Interaction,
) -> tuple[Array, ...]:
    """The portable form of the codelet "fitting_gradient", strip by strip."""
    by_bra = [jnp.zeros_like(side.centre_hi) for side in sides]
    by_ket: list[Array] = []
    for ket, ket_side in zip(kets, ket_sides, strict=True):
        n_strips, _, _, products, _ = ket_side.hermite.shape
        mine = weights[ket.first_row :][: n_strips * ket.members * products]
        mine = mine.reshape(n_strips, ket.members, products, -1)
        total = PairGradient(jnp.zeros_like(ket_side.centre_hi), jnp.zeros_like(ket_side.hermite))
        for b, (group, side) in enumerate(zip(auxiliary.layout.groups, sides, strict=True)):
            orders = group.kind.l, ket.order
            own = mine[..., group.first : group.first + group.n_functions]
            own = own.reshape(*own.shape[:3], group.n_shells, -1)  # [S, members, g, n, f]
            bra = EriSide._make(x[0] for x in side)

            def strip(sums: Array, one: tuple) -> tuple[Array, PairGradient]:
                segment, own, *given = one
                g = own[segment].transpose(2, 3, 0, 1)  # [n, f, chunks, g]
                first, second = eri_gradient_vertex(orders, of, bra, ket=EriSide._make(given), g=g)  # noqa: B023
                return sums + first.centre, second

            zero = jnp.zeros_like(bra.centre_hi)
            sums, of_strips = lax.scan(strip, zero, (jnp.asarray(ket.segment), own, *ket_side))
            by_bra[b] = by_bra[b] + sums[None]
            total = PairGradient(*(x + y for x, y in zip(total, of_strips, strict=True)))
        by_ket += total
    return (*by_bra, *by_ket)


def _product(a: Array, b: Array) -> Array:
    return jnp.matmul(a, b, precision="highest")

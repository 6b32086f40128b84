"""Derivatives of the electron repulsion energy with respect to charge distributions, in blocks.

With the two-particle density G of a closed shell, the energy sum G_abcd (ab|cd) is a function of
the Hermite data of the shell pairs alone, and so is its derivative: by E it needs the integrals R
of the energy once more, by a centre P those of one order higher, dR_tuv/dP_x = R_{t+1,u,v}
(McMurchie & Davidson 1978; Helgaker, Jorgensen, Olsen, sec. 9.9.3).  G is made block by block from
the density matrix, and no derivative of an integral is ever stored.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int

from pyscf_ipu.codelets import codelet
from pyscf_ipu.gradient.rows import PairRows, hermite_pattern, pair_rows, row_table
from pyscf_ipu.integrals.electron_repulsion import (
    EriSide,
    eri_side,
    with_segments,
    without_segments,
)
from pyscf_ipu.integrals.eri_matrix import work_list
from pyscf_ipu.integrals.strips import StripData
from pyscf_ipu.numerics.arrays import (
    Count,
    FloatNN,
    Floats,
    FloatSnc3,
    FloatSncfh,
    FloatSNN,
    mean_of_spins,
)
from pyscf_ipu.numerics.hermite import hermite_coulomb, hermite_powers, hermite_sign, product_index
from pyscf_ipu.numerics.interaction import COULOMB, Interaction
from pyscf_ipu.shapes.tile_plan import Block, TilePlan


class PairGradient(NamedTuple):
    """Derivatives of an energy with respect to the Hermite data of one class, Hartree per unit."""

    centre: FloatSnc3
    hermite: FloatSncfh


Both = tuple[PairGradient, PairGradient]
Blocks = Float[Array, "nb f nk g"]


class Energy(NamedTuple):
    """An energy of electron repulsion: fractions of Coulomb and exchange, and their interaction."""

    coulomb: float
    exchange: float
    of: Interaction = COULOMB


def repulsion_gradient(
    plan: TilePlan, strips: tuple[StripData, ...], density: FloatSNN, exchange: Interaction
) -> list[PairGradient]:
    """Derivatives of the Coulomb and exact exchange energy at a symmetric density, per class.

    Of the densities of two spins, each that of closed shells: half of the exchange of either.
    """
    of, fraction = (exchange, 1.0) if exchange.long_range else (COULOMB, exchange.full)
    if density.ndim == 3:
        energies = [(mean_of_spins(density), Energy(1.0, 0.0))]
        if fraction:
            energies += [(one, Energy(0.0, 0.5 * fraction, of)) for one in density]
    elif exchange.long_range:
        energies = [(density, Energy(1.0, 0.0)), (density, Energy(0.0, fraction, of))]
    else:
        energies = [(density, Energy(1.0, fraction))]
    parts = [_energy_gradient(plan, strips, one, energy=energy) for one, energy in energies]
    return jax.tree.map(lambda *x: sum(x[1:], x[0]), *parts)


def _energy_gradient(
    plan: TilePlan, strips: tuple[StripData, ...], density: FloatNN, energy: Energy
) -> list[PairGradient]:
    """Derivatives of one energy, per class."""
    sides = [eri_side(d) for d in strips]

    def portable(*operands: Array) -> tuple[Array, ...]:
        *by_class, density, _ = operands
        gradients = blocks_gradient(plan, without_segments(by_class), density, energy=energy)
        return tuple(x for gradient in gradients for x in gradient)

    operands = with_segments(sides, [s.segment for s in plan.strips])
    flat = codelet(
        "eri_gradient",
        portable,
        *(*operands, density, row_table(plan)),
        shape=tuple(x.shape for side in sides for x in (side.centre_hi, side.hermite)),
        patterns=np.concatenate([hermite_pattern(plan, s).ravel() for s in plan.strips]),
        fractions=np.array([energy.coulomb, energy.exchange]),
        interaction=np.array(energy.of),
        **work_list(plan, density.dtype, derivative=1),
    )
    gradients = [PairGradient(*flat[i : i + 2]) for i in range(0, len(flat), 2)]
    return by_strips(gradients, strips)


def by_strips(
    by_sides: Sequence[PairGradient], strips: tuple[StripData, ...]
) -> list[PairGradient]:
    """Derivatives by the strips' E from those by the sides': a factor of the exponents only."""
    scale = [eri_side(d._replace(hermite=jnp.ones_like(d.hermite))).hermite for d in strips]
    return [PairGradient(g.centre, g.hermite * s) for g, s in zip(by_sides, scale, strict=True)]


def blocks_gradient(
    plan: TilePlan, sides: list[EriSide], density: FloatNN, energy: Energy
) -> list[PairGradient]:
    """The portable form of the codelet "eri_gradient": derivatives by `sides`, class by class."""
    rows = [pair_rows(plan, s, density.dtype) for s in plan.strips]
    gradients = [
        PairGradient(jnp.zeros_like(s.centre_hi), jnp.zeros_like(s.hermite)) for s in sides
    ]

    def two_particle(block: Block, i: Count, j: Count) -> Blocks:
        bra, ket = rows[block.bra].at(i), rows[block.ket].at(j)
        return _two_particle_density(density, energy, bra, ket=ket)

    for block in plan.blocks:
        _add_class_pair(
            plan, block, sides, of=energy.of, two_particle=two_particle, gradients=gradients
        )
    return gradients


def _add_class_pair(
    plan: TilePlan,
    block: Block,
    sides: list[EriSide],
    of: Interaction,
    two_particle: Callable[[Block, Count, Count], Blocks],
    gradients: list[PairGradient],
) -> None:
    """Add all blocks of one class pair to `gradients`, one block after another."""
    bra, ket = block.bra, block.ket
    orders = plan.strips[bra].pair_class.order, plan.strips[ket].pair_class.order

    def step(carry: Both, index: tuple[Count, Count]) -> tuple[Both, None]:
        i, j = index
        a, b = (EriSide._make(x[k] for x in sides[c]) for c, k in ((bra, i), (ket, j)))
        g = two_particle(block, i, j)
        # A block beside the diagonal stands for its mirror image too.
        times = jnp.where(i == j, 1.0, 2.0) if bra == ket else jnp.asarray(2.0)
        both = eri_gradient_vertex(orders, of, a, ket=b, g=g * times.astype(g.dtype))
        return tuple(
            PairGradient(*(total.at[k].add(x) for total, x in zip(sums, new, strict=True)))
            for sums, new, k in zip(carry, both, (i, j), strict=True)
        ), None  # type: ignore[return-value]

    zero = PairGradient(*(jnp.zeros_like(x) for x in gradients[ket]))
    pairs = jnp.asarray(block.bra_strip), jnp.asarray(block.ket_strip)
    (first, second), _ = lax.scan(step, (gradients[bra], zero), pairs)
    gradients[bra] = first
    gradients[ket] = PairGradient(*(x + y for x, y in zip(gradients[ket], second, strict=True)))


def _two_particle_density(density: FloatNN, energy: Energy, bra: PairRows, ket: PairRows) -> Blocks:
    """d energy / d (ab|cd) of the products of two strips."""
    i, j = (x[:, :, None, None] for x in (bra.i, bra.j))
    k, l = (x[None, None] for x in (ket.i, ket.j))
    g = (0.5 * energy.coulomb) * density[i, j] * density[k, l]
    if energy.exchange:
        exchange = density[i, k] * density[j, l] + density[i, l] * density[j, k]
        g = g - (0.125 * energy.exchange) * exchange
    return g * (bra.weight[:, :, None, None] * ket.weight)


def raised_index(bra: int, ket: int) -> Int[np.ndarray, "3 h k"]:
    """Row of R for the sum of a bra and a ket Hermite, one degree higher along each axis."""
    powers = hermite_powers(bra + ket)
    row = {h: i for i, h in enumerate(hermite_powers(bra + ket + 1))}
    raised = np.array(
        [[row[(t + (d == 0), u + (d == 1), v + (d == 2))] for t, u, v in powers] for d in range(3)],
        np.int32,
    )
    return raised[:, product_index(bra, ket)]


def eri_gradient_vertex(
    orders: tuple[int, int], of: Interaction, bra: EriSide, ket: EriSide, g: Blocks
) -> Both:
    """One block: derivatives of sum G (ab|cd) with respect to the data of both strips."""
    order_bra, order_ket = orders
    n_ket, c_ket = ket.p.shape
    lanes = n_ket * c_ket
    q = ket.p.T.ravel()
    q_hi, q_lo = (x.transpose(2, 1, 0).reshape(3, -1) for x in (ket.centre_hi, ket.centre_lo))
    sign = jnp.asarray(hermite_sign(order_ket), q.dtype)
    e_ket = (ket.hermite * sign).transpose(2, 3, 1, 0)  # [f', h', c', nk]
    rows, raised = product_index(order_bra, order_ket), raised_index(order_bra, order_ket)

    def chunk(ket_sums: PairGradient, one: tuple) -> Both:
        """One bra chunk against the whole ket strip."""
        p, hi, lo, e, g = one  # [c], [c, 3] twice, [c, f, h], [f, nk, f']
        total = p[:, None] + q
        alpha = p[:, None] * q / total
        r = [(hi[:, d, None] - q_hi[d]) + (lo[:, d, None] - q_lo[d]) for d in range(3)]
        table = hermite_coulomb(order_bra + order_ket + 1, alpha, 1.0 / jnp.sqrt(total), r=r, of=of)
        plain = table[rows]  # [h, h', c, lanes]
        weights = _product("fng,gkcn->fkcn", g, e_ket).reshape(e.shape[1], -1, lanes)
        half = _product("cfh,hkcl->fkl", e, plain).reshape(e.shape[1], -1, c_ket, n_ket)
        hermite = _product("fkl,hkcl->cfh", weights, plain)
        charges = _product("cfh,fkl->hkcl", e, weights)
        force = [(charges * table[raised[d]]).sum((0, 1)) for d in range(3)]  # [c, lanes] each
        ket_sums = PairGradient(
            ket_sums.centre - jnp.stack([x.sum(0) for x in force]),
            ket_sums.hermite + _product("fng,fkcn->gkcn", g, half),
        )
        return ket_sums, PairGradient(jnp.stack([x.sum(1) for x in force], -1), hermite)

    zero = PairGradient(jnp.zeros((3, lanes), q.dtype), jnp.zeros_like(e_ket))
    sums, of_bra = lax.scan(chunk, zero, (*bra, g))
    centre = sums.centre.reshape(3, c_ket, n_ket).transpose(2, 1, 0)
    return of_bra, PairGradient(centre, sums.hermite.transpose(3, 2, 0, 1) * sign)


def _product(subscripts: str, *operands: Floats) -> Floats:
    return jnp.einsum(subscripts, *operands, precision="highest")

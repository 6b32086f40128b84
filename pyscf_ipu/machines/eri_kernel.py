"""Electron repulsion integrals of two pair classes as one GPU kernel, intermediates in registers.

A program computes one shell pair of the bra, a few of its AO products, against LANES shell pairs of
the ket.  Primitive by primitive it makes the Hermite Coulomb integrals R, sums them over the
primitives of the bra with its coefficients E, and those sums over the ket's
(McMurchie & Davidson 1978; Helgaker, Jorgensen, Olsen, eq. 9.9.33).
"""

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from pyscf_ipu.integrals.electron_repulsion import EriSide
from pyscf_ipu.machines import pallas as pl
from pyscf_ipu.machines.launch import Ref, launch
from pyscf_ipu.machines.rounding import divided, inverse_root
from pyscf_ipu.numerics.arrays import Lanes
from pyscf_ipu.numerics.boys import Arithmetic
from pyscf_ipu.numerics.hermite import (
    coulomb_seeds,
    hermite_powers,
    hermite_sign,
    n_hermite,
    product_index,
)
from pyscf_ipu.numerics.interaction import COULOMB, Interaction

LANES = 32
"""Shell pairs of the ket in a program: a warp."""
PRODUCTS = 4
"""AO products of the bra in a program at most: more would leave no registers for R."""
LARGEST_ORDER = 2
"""Hermite order of a side up to which all of this fits into registers: s and p shells."""


class Ket(NamedTuple):
    """Shell pairs along the last axis, padded to whole programs."""

    q: Float[Array, "c n"]
    centre: Float[Array, "2 3 c n"]  # two words
    hermite: Float[Array, "c g k n"]  # with the sign of the ket


def eri_class_pair(
    orders: tuple[int, int],
    bra: EriSide,
    ket: EriSide,
    same: bool,
    of: Interaction = COULOMB,
) -> Float[Array, "rows columns"]:
    """All (ab|cd) of a class of bras and one of kets: a row for each AO product of the bra.

    Args:
        orders: Hermite orders of bra and ket.
        bra: its chunks of primitive pairs, of all strips.
        ket: likewise.
        same: bra and ket are one class.  Then only blocks with an element on the diagonal or above
            it are computed, and the rest is taken from these.
        of: the interaction.
    """
    side, lanes = _flat(bra), _lanes(orders[1], _flat(ket))
    n_bra, _, f, _ = side.hermite.shape
    g, n_ket = lanes.hermite.shape[1], lanes.q.shape[1]
    step = max(n for n in range(1, PRODUCTS + 1) if f % n == 0)
    out = launch(
        functools.partial(_kernel, orders, step, same, of),
        f"eri_{orders[0]}_{orders[1]}",
        (n_bra, n_ket // LANES, f // step),
        shape=(n_bra, f, g, n_ket),
        dtype=side.p.dtype,
        warps=LANES // 32,
    )(side.p, side.centre_hi, side.centre_lo, side.hermite, *lanes)
    n = ket.p.shape[0] * ket.p.shape[1]
    rows = out[..., :n].transpose(0, 1, 3, 2).reshape(n_bra * f, n * g)
    if not same:
        return rows
    first = jnp.arange(n_bra * f, dtype=jnp.int32) // f // LANES * LANES
    computed = first[:, None] <= jnp.arange(n * g, dtype=jnp.int32)[None] // g
    return jnp.where(computed, rows, rows.T)


def _flat(side: EriSide) -> EriSide:
    """Without strips: [n, c, ...]."""
    return EriSide._make(x.reshape(-1, *x.shape[2:]) for x in side)


def _lanes(order: int, side: EriSide) -> Ket:
    pad = -side.p.shape[0] % LANES
    words = [
        jnp.pad(x, [(0, pad), *[(0, 0)] * (x.ndim - 1)], constant_values=value)
        for x, value in zip(side, (1.0, 0.0, 0.0, 0.0), strict=True)
    ]
    q, high, low, e = words
    signed = e * jnp.asarray(hermite_sign(order), e.dtype)
    centre = jnp.stack([high, low]).transpose(0, 3, 2, 1)
    return Ket(q.T, centre, signed.transpose(1, 2, 3, 0))


def _kernel(orders: tuple[int, int], step: int, same: bool, of: Interaction, *refs: Ref) -> None:
    """One bra pair, `step` of its products, against LANES ket pairs."""
    place = pl.program_id(0), pl.program_id(1) * LANES, pl.program_id(2) * step
    if same:
        pl.when(place[1] + LANES > place[0])(
            lambda: _block(orders, step, of, place=place, refs=refs)
        )
    else:
        _block(orders, step, of, place=place, refs=refs)


def _block(
    orders: tuple[int, int],
    step: int,
    of: Interaction,
    place: tuple[Array, Array, Array],
    refs: tuple[Ref, ...],
) -> None:
    """A block of one angular momentum; `place`: bra pair, first ket pair, first product."""
    p_ref, high_ref, low_ref, e_ref, q_ref, centre_ref, ket_ref, out_ref = refs
    n_bra, n_ket = (n_hermite(order) for order in orders)
    bra, lanes, first = place[0], pl.ds(place[1], LANES), place[2]
    index = product_index(*orders)
    products = range(ket_ref.shape[1])
    zero = jnp.zeros((LANES,), p_ref.dtype)

    def over_ket(k: Array, total: tuple[Lanes, ...]) -> tuple[Lanes, ...]:
        q = q_ref[k, lanes]
        high = [centre_ref[0, d, k, lanes] for d in range(3)]
        low = [centre_ref[1, d, k, lanes] for d in range(3)]

        def over_bra(b: Array, half: tuple[Lanes, ...]) -> tuple[Lanes, ...]:
            p = p_ref[bra, b]
            both = p + q
            r = [(high_ref[bra, b, d] - high[d]) + (low_ref[bra, b, d] - low[d]) for d in range(3)]
            table = hermite_rows(sum(orders), divided(p * q, both), inverse_root(both), r=r, of=of)
            out = list(half)
            for f in range(step):
                for h in range(n_bra):
                    e = e_ref[bra, b, first + f, h]
                    for j in range(n_ket):
                        out[f * n_ket + j] += e * table[index[h, j]]
            return tuple(out)

        half = lax.fori_loop(0, p_ref.shape[1], over_bra, (zero,) * (step * n_ket))
        out = list(total)
        for g in products:
            for j in range(n_ket):
                e = ket_ref[k, g, j, lanes]
                for f in range(step):
                    out[f * len(products) + g] += e * half[f * n_ket + j]
        return tuple(out)

    total = lax.fori_loop(0, q_ref.shape[0], over_ket, (zero,) * (step * len(products)))
    for f in range(step):
        for g in products:
            out_ref[bra, first + f, g, lanes] = total[f * len(products) + g]


def hermite_rows(
    order: int, alpha: Lanes, prefactor: Lanes, r: list[Lanes], of: Interaction = COULOMB
) -> list[Lanes]:
    """`numerics.hermite.hermite_coulomb`, as a list of rows, each of which stays in a register."""
    x, y, z = r
    square = x * x + y * y + z * z
    seeds = coulomb_seeds(
        order, alpha, prefactor, square=square, of=of, arithmetic=Arithmetic(divided, inverse_root)
    )
    rows: dict[tuple[int, ...], Lanes] = {(0, 0, 0): seeds[order]}
    for n in range(order - 1, -1, -1):
        above: dict[tuple[int, ...], Lanes] = {(0, 0, 0): seeds[n]}
        for power in hermite_powers(order - n)[1:]:
            axis = next(d for d in range(3) if power[d])
            one, two = _lowered(power, axis, 1), _lowered(power, axis, 2)
            above[power] = r[axis] * rows[one]
            if power[axis] > 1:
                above[power] += (power[axis] - 1.0) * rows[two]
        rows = above
    return [rows[power] for power in hermite_powers(order)]


def _lowered(power: tuple[int, ...], axis: int, by: int) -> tuple[int, ...]:
    return tuple(n - by if d == axis else n for d, n in enumerate(power))

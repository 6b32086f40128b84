"""Overlap, kinetic, nuclear attraction and dipole integrals, as rows of the tile plan."""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from pyscf_ipu.boys import packed_fits
from pyscf_ipu.codelets import codelet
from pyscf_ipu.hermite import hermite_coulomb, n_hermite
from pyscf_ipu.pairs import gaussian_integral
from pyscf_ipu.precision import Pair, add, difference, scaled
from pyscf_ipu.strips import StripData, sum_to_pairs
from pyscf_ipu.tiles import Strips, TilePlan, tile_total


class OneElectron(NamedTuple):
    """Integrals over the rows R of a plan (atomic units).

    overlap [R], kinetic [R], nuclear [R] (attraction by the nuclei, negative), dipole [3, R]
    (of +r, about the origin of the conformer's frame).  A product of two AOs of one atom does not
    see that atom's nucleus here: see `tables.OneCentre`.
    """

    overlap: Array
    kinetic: Array
    nuclear: Array
    dipole: Array


def one_electron(
    plan: TilePlan, strips: tuple[StripData, ...], charges: Array, nuclei: Pair
) -> OneElectron:
    """All one-electron integrals.  charges [A]; nuclei Pair [A, 3] Bohr."""
    parts = [_of_class(s, d, charges, nuclei) for s, d in zip(plan.strips, strips, strict=True)]
    return OneElectron(*(jnp.concatenate(x, axis=-1) for x in zip(*parts, strict=True)))


def _of_class(plan: Strips, data: StripData, charges: Array, nuclei: Pair) -> OneElectron:
    e = data.hermite
    gauss = gaussian_integral(data.p)
    overlap = (e[..., 0] * gauss[..., None]).sum(2)
    centre = data.centre.value()
    # <x> = (E_100 + P_x E_000) (pi/p)^(3/2); an s pair has no E_100.
    first = [
        e[..., 1 + d] if plan.pair_class.order else jnp.zeros_like(e[..., 0]) for d in range(3)
    ]
    dipole = jnp.stack(
        [
            ((first[d] + centre[..., d, None] * e[..., 0]) * gauss[..., None]).sum(2)
            for d in range(3)
        ]
    )
    nuclear = _attraction(plan, data, charges, nuclei)
    return OneElectron(
        sum_to_pairs(plan, overlap, 1).ravel(),
        data.kinetic,
        sum_to_pairs(plan, nuclear, 1).ravel(),
        sum_to_pairs(plan, dipole, 2).reshape(3, -1),
    )


def _attraction(plan: Strips, data: StripData, charges: Array, nuclei: Pair) -> Array:
    """Attraction of every chunk's AO products by the nuclei: [S, nb, f] in Hartree."""
    order = plan.pair_class.order

    def portable(
        p: Array, hi: Array, lo: Array, e: Array, own: Array, charges: Array, *nuclei: Array
    ) -> Array:
        potential = _potential(order, p, Pair(hi, lo), own, charges, Pair(*nuclei))
        return jnp.einsum("sbcfh,hsbc->sbf", e, potential, precision="highest")

    operands = (data.p, *data.centre, data.hermite, plan.atom, charges, *nuclei)
    boys = packed_fits([order], data.p.dtype)
    shape = (*data.p.shape[:2], plan.n_products)
    return codelet("nuclear_attraction", portable, *operands, shape=shape, boys=boys)


def _potential(
    order: int, p: Array, centre: Pair, own: Array, charges: Array, nuclei: Pair
) -> Array:
    """-sum_C Z_C (2 pi / p) R_tuv(p, P - C), without the own nucleus: [h, S, nb, c].

    Summed over the nuclei in twofold precision: forty nuclei at -30 Ha each would otherwise cost
    the last digits of a float32.
    """
    prefactor = scaled(1.0 / p, 2.0 * math.pi)

    def nucleus(total: Pair, atom: tuple) -> tuple[Pair, None]:
        index, charge, hi, lo = atom
        charge = jnp.where(own[..., None] == index, 0.0, charge)
        r = [
            difference(Pair(centre.hi[..., d], centre.lo[..., d]), Pair(hi[d], lo[d]))
            for d in range(3)
        ]
        term = -charge * hermite_coulomb(order, p, prefactor, r)
        return add(total, Pair(term, jnp.zeros_like(term))), None

    shape = (n_hermite(order), *p.shape)
    zero = jnp.zeros(shape, p.dtype)
    index = jnp.arange(charges.shape[0], dtype=jnp.int32)
    total, _ = lax.scan(nucleus, Pair(zero, zero), (index, charges, nuclei.hi, nuclei.lo))
    return total.value()


def nuclear_repulsion(charges: Array, nuclei: Pair) -> Pair:
    """sum_{A<B} Z_A Z_B / R_AB in Hartree, to twice the working precision; Z = 0 is padding."""
    d = nuclei.hi[:, None] - nuclei.hi[None] + (nuclei.lo[:, None] - nuclei.lo[None])
    product = charges[:, None] * charges[None]
    upper = jnp.triu(product, 1)
    r2 = jnp.where(upper > 0, jnp.sum(d * d, -1), 1.0)
    terms = upper / jnp.sqrt(r2)
    return tile_total(Pair(terms, jnp.zeros_like(terms)))

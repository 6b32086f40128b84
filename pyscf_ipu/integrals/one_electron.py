"""Overlap, kinetic, nuclear attraction and dipole integrals, as rows of the tile plan."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax, named_scope
from jaxtyping import Float, Int

from pyscf_ipu.codelets import codelet
from pyscf_ipu.integrals.shell_pairs import gaussian_integral
from pyscf_ipu.integrals.strips import StripData, sum_to_pairs
from pyscf_ipu.numerics.arrays import FloatA, FloatSnf
from pyscf_ipu.numerics.boys import PLAIN, Arithmetic, packed_fits
from pyscf_ipu.numerics.hermite import hermite_coulomb, n_hermite
from pyscf_ipu.numerics.interaction import COULOMB
from pyscf_ipu.numerics.two_words import (
    Pair,
    add,
    difference,
    inverse_root,
    scaled,
    two_product,
    two_sum,
)
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.shapes.tile_plan import Strips, TilePlan
from pyscf_ipu.tiles import tile_total


class OneElectron(NamedTuple):
    """Integrals over the rows R of a plan, or of one of its classes (atomic units)."""

    overlap: Float[Array, " R"]
    kinetic: Float[Array, " R"]
    nuclear: Float[Array, " R"]
    """Attraction by the nuclei, negative.  For a product of two AOs of one atom, that atom's
    nucleus is left out here: see `tables.OneCentre`."""
    dipole: Float[Array, "3 R"]
    """Integrals of +r, about the origin of the conformer's frame."""


BuildOneElectron = Callable[[Atoms, tuple[StripData, ...]], OneElectron]
"""(atoms, strips) -> all one-electron integrals."""


def one_electron(atoms: Atoms, strips: tuple[StripData, ...]) -> OneElectron:
    """All one-electron integrals."""
    plan = atoms.plan

    def portable(*operands: Array) -> tuple[Array, ...]:
        *data, charges, high, low = operands
        given = [
            StripData(p, Pair(hi, lo), e, kinetic=jnp.zeros(0, p.dtype))
            for p, hi, lo, e, _, _ in zip(*[iter(data)] * 6, strict=True)
        ]
        nuclear = attraction(plan, given, charges, nuclei=Pair(high, low))
        integrals = with_attraction(plan, given, nuclear)
        return integrals.overlap, integrals.nuclear, integrals.dipole

    operands = [
        x
        for s, d in zip(plan.strips, strips, strict=True)
        for x in (d.p, *d.centre, d.hermite, s.atom, s.segment.astype(np.int32))
    ]
    rows = plan.n_rows
    overlap, nuclear, dipole = codelet(
        "one_electron",
        portable,
        *(*operands, atoms.charge, *atoms.nuclei),
        shape=((rows,), (rows,), (3, rows)),
        sizes=np.array([s.pairs_per_strip for s in plan.strips], np.int32),
        boys=packed_fits(range(1 + max(s.pair_class.order for s in plan.strips)), np.float64),
    )
    kinetic = jnp.concatenate([d.kinetic for d in strips])
    return OneElectron(overlap, kinetic, nuclear, dipole=dipole)


def attraction(
    plan: TilePlan, strips: Sequence[StripData], charges: FloatA, nuclei: Pair
) -> tuple[FloatSnf, ...]:
    """Attraction of every chunk's AO products by the nuclei, of every pair class, in Hartree."""
    parts = []
    for of, data in zip(plan.strips, strips, strict=True):
        order, own = of.pair_class.order, jnp.asarray(of.atom)
        potential = potential_of(
            order, data.p, data.centre, own=own, nuclei=(charges, nuclei)
        ).value()
        parts.append(jnp.einsum("sbcfh,hsbc->sbf", data.hermite, potential, precision="highest"))
    return tuple(parts)


def with_attraction(
    plan: TilePlan, strips: Sequence[StripData], nuclear: Sequence[Array]
) -> OneElectron:
    """All integrals, from the attraction by the nuclei."""
    parts = [_of_class(*x) for x in zip(plan.strips, strips, nuclear, strict=True)]
    return OneElectron._make(jnp.concatenate(x, axis=-1) for x in zip(*parts, strict=True))


def _of_class(plan: Strips, data: StripData, nuclear: FloatSnf) -> OneElectron:
    e = data.hermite
    gauss = gaussian_integral(data.p)
    overlap = (e[..., 0] * gauss[..., None]).sum(2)
    centre = data.centre.value()
    # <x> = (E_100 + P_x E_000) (pi/p)^(3/2); an s pair has no E_100.
    order, nothing = plan.pair_class.order, jnp.zeros_like(e[..., 0])
    first = [e[..., 1 + d] if order else nothing for d in range(3)]
    moments = [first[d] + centre[..., d, None] * e[..., 0] for d in range(3)]
    dipole = jnp.stack([(x * gauss[..., None]).sum(2) for x in moments])
    return OneElectron(
        sum_to_pairs(plan, overlap, 1).ravel(),
        data.kinetic,
        sum_to_pairs(plan, nuclear, 1).ravel(),
        dipole=sum_to_pairs(plan, dipole, 2).reshape(3, -1),
    )


def potential_of(
    order: int,
    p: Float[Array, "*chunks c"],
    centre: Pair,
    own: Int[Array, "*chunks"],
    nuclei: tuple[FloatA, Pair],
    arithmetic: Arithmetic = PLAIN,
) -> Pair:
    """-sum_C Z_C (2 pi / p) R_tuv(p, P - C), without the own nucleus: [h, *chunks, c].

    Summed over the nuclei in twofold precision: forty nuclei at -30 Ha each would otherwise cost
    the last digits of a float32.

    Args:
        order: of the Hermite functions.
        p: exponents in 1/Bohr^2.
        centre: where the charge distributions are, in Bohr [*chunks, c, 3].
        own: the nucleus that is left out.
        nuclei: charges, and where they are in Bohr [A, 3].
        arithmetic: of the machine.
    """
    charges, places = nuclei
    prefactor = scaled(1.0 / p, 2.0 * math.pi)
    coulomb = arithmetic.routine(hermite_coulomb, order=order, of=COULOMB, arithmetic=arithmetic)

    def nucleus(total: Pair, atom: tuple) -> tuple[Pair, None]:
        index, charge, hi, lo = atom
        charge = jnp.where(own[..., None] == index, 0.0, charge)
        r = [
            difference(Pair(centre.hi[..., d], centre.lo[..., d]), Pair(hi[d], lo[d]))
            for d in range(3)
        ]
        table = coulomb(alpha=p, prefactor=prefactor, r=r)
        term = -charge * table
        return add(total, Pair(term, jnp.zeros_like(term))), None

    shape = (n_hermite(order), *p.shape)
    zero = jnp.zeros(shape, p.dtype)
    index = jnp.arange(charges.shape[0], dtype=jnp.int32)
    total, _ = lax.scan(nucleus, Pair(zero, zero), (index, charges, *places))
    return total


@named_scope("energy")
def nuclear_repulsion(charges: FloatA, nuclei: Pair) -> Pair:
    """sum_{A<B} Z_A Z_B / R_AB in Hartree, to twice the working precision; Z = 0 is padding."""
    d = two_sum(nuclei.hi[:, None], -nuclei.hi[None])
    d = Pair(d.hi, d.lo + (nuclei.lo[:, None] - nuclei.lo[None]))
    square = two_product(d.hi, d.hi)
    square = Pair(square.hi, square.lo + 2.0 * d.hi * d.lo)
    x, y, z = (square.at(..., k) for k in range(3))
    r2 = add(add(x, y), z)
    upper = jnp.triu(charges[:, None] * charges[None], 1)
    pair = upper > 0
    inverse = inverse_root(Pair(jnp.where(pair, r2.hi, 1.0), jnp.where(pair, r2.lo, 0.0)))
    terms = two_product(upper, inverse.hi)
    return tile_total(Pair(terms.hi, terms.lo + upper * inverse.lo))

"""What moving charge distributions and nuclei does to the one-electron energy and the overlap."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pyscf_ipu.boys import packed_fits
from pyscf_ipu.codelets import codelet
from pyscf_ipu.gradient.electron_repulsion import PairGradient, raised_index
from pyscf_ipu.gradient.rows import pair_rows
from pyscf_ipu.hermite import hermite_coulomb, n_hermite
from pyscf_ipu.pairs import gaussian_integral
from pyscf_ipu.precision import Pair, difference, scaled
from pyscf_ipu.strips import StripData
from pyscf_ipu.tiles import Strips, TilePlan


def overlap_matrix(plan: TilePlan, strips: tuple[StripData, ...]) -> Array:
    """S [N, N]; zero for padded AOs."""
    n = plan.layout.shape.n_ao
    out = jnp.zeros((n, n), strips[0].p.dtype)
    for of_class, data in zip(plan.strips, strips, strict=True):
        rows = pair_rows(plan, of_class, data.p.dtype)
        gauss = gaussian_integral(data.p)
        chunk = (data.hermite[..., 0] * gauss[..., None]).sum(2) * np.sign(rows.weight)
        out = out.at[rows.i, rows.j].add(chunk)
    return out + jnp.tril(out, -1).T


def one_electron_gradient(
    plan: TilePlan,
    strips: tuple[StripData, ...],
    density: Array,
    energy_weighted: Array,
    charges: Array,
    nuclei: Pair,
) -> tuple[list[StripData], Array]:
    """Of tr(D T) + tr(D V) - tr(W S): by the data of every class, and by the nuclei [A, 3].

    The first has the shapes of `strips`; one-centre overlaps and kinetic energies are constants.
    """
    found, total = [], jnp.zeros_like(nuclei.hi)
    for of_class, data in zip(plan.strips, strips, strict=True):
        rows = pair_rows(plan, of_class, data.p.dtype)
        d = density[rows.i, rows.j] * rows.weight  # [S, nb, f]
        attraction, force = _attraction(of_class, data, d, charges, nuclei)
        far = (of_class.atom < 0)[..., None]
        w = energy_weighted[rows.i, rows.j] * np.where(far, rows.weight, 0).astype(d.dtype)
        gauss = gaussian_integral(data.p)
        hermite = attraction.hermite.at[..., 0].add(-w[:, :, None] * gauss[..., None])
        centre = Pair(attraction.centre, jnp.zeros_like(attraction.centre))
        kinetic = _kinetic_rows(plan, of_class, density)
        found.append(StripData(jnp.zeros_like(data.p), centre, hermite, kinetic))
        total = total + force
    return found, total


def _kinetic_rows(plan: TilePlan, strips: Strips, density: Array) -> Array:
    """D over the rows of a class, without one-centre products: [rows]."""
    layout = plan.layout
    i, j = np.tril_indices(layout.shape.n_ao)
    i, j = i[layout.ao_atom[i] != layout.ao_atom[j]], j[layout.ao_atom[i] != layout.ao_atom[j]]
    row = plan.row_of[i, j] - strips.first_row
    here = (row >= 0) & (row < strips.n_rows)
    i, j, row = (x[here].astype(np.int32) for x in (i, j, row))
    return jnp.zeros(strips.n_rows, density.dtype).at[row].set(2.0 * density[i, j])


def _attraction(
    strips: Strips, data: StripData, d: Array, charges: Array, nuclei: Pair
) -> tuple[PairGradient, Array]:
    """Of the attraction by the nuclei, which leaves out the own nucleus of one-centre products."""
    order = strips.pair_class.order

    def portable(
        p: Array, hi: Array, lo: Array, e: Array, own: Array, charges: Array, *rest: Array
    ) -> tuple[Array, Array, Array]:
        *nuclei, d = rest
        data = StripData(p, Pair(hi, lo), e, jnp.zeros(0, p.dtype))
        return _attraction_vertex(order, data, own, d, charges, Pair(*nuclei))

    operands = (data.p, *data.centre, data.hermite, strips.atom, charges, *nuclei, d)
    centre, hermite, on_nuclei = codelet(
        "attraction_gradient", portable, *operands,
        shape=(data.centre.hi.shape, data.hermite.shape, nuclei.hi.shape),
        boys=packed_fits([order + 1], data.p.dtype),
    )  # fmt: skip
    return PairGradient(centre, hermite), on_nuclei


def _attraction_vertex(
    order: int, data: StripData, own: Array, d: Array, charges: Array, nuclei: Pair
) -> tuple[Array, Array, Array]:
    """The portable form of the codelet "attraction_gradient": by centres, E and nuclei."""
    raised = raised_index(order, 0)[:, :, 0]  # [3, h]
    prefactor = scaled(1.0 / data.p, 2.0 * math.pi)
    weighted = jnp.einsum("sbcfh,sbf->hsbc", data.hermite, d, precision="highest")

    def nucleus(sums: tuple[Array, Array], atom: tuple) -> tuple[tuple[Array, Array], Array]:
        index, charge, hi, lo = atom
        charge = jnp.where(own[..., None] == index, 0.0, charge)
        r = [
            difference(Pair(data.centre.hi[..., k], data.centre.lo[..., k]), Pair(hi[k], lo[k]))
            for k in range(3)
        ]
        table = -charge * hermite_coulomb(order + 1, data.p, prefactor, r)
        force = jnp.stack([(weighted * table[raised[k]]).sum(0) for k in range(3)], -1)
        potential, total = sums
        return (potential + table[: n_hermite(order)], total + force), -force.sum((0, 1, 2))

    zero = jnp.zeros_like(weighted), jnp.zeros_like(data.centre.hi)
    index = jnp.arange(charges.shape[0], dtype=jnp.int32)
    (potential, centre), on_nuclei = lax.scan(nucleus, zero, (index, charges, *nuclei))
    hermite = jnp.einsum("hsbc,sbf->sbcfh", potential, d, precision="highest")
    return centre, hermite, on_nuclei

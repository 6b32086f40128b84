"""Derivatives of the one-electron energy and overlap with respect to Hermite data and nuclei."""

import math

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int

from pyscf_ipu.codelets import codelet
from pyscf_ipu.gradient.electron_repulsion import PairGradient, raised_index
from pyscf_ipu.gradient.rows import pair_rows
from pyscf_ipu.integrals.shell_pairs import gaussian_integral
from pyscf_ipu.integrals.strips import StripData
from pyscf_ipu.numerics.arrays import (
    FloatA,
    FloatA3,
    FloatNN,
    FloatSnc3,
    FloatSncfh,
    FloatSnf,
    taken,
)
from pyscf_ipu.numerics.boys import packed_fits
from pyscf_ipu.numerics.hermite import hermite_coulomb, n_hermite
from pyscf_ipu.numerics.two_words import Pair, difference, scaled
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.shapes.tile_plan import Strips, TilePlan


def overlap_matrix(plan: TilePlan, strips: tuple[StripData, ...]) -> FloatNN:
    """S; zero for padded AOs."""
    n = plan.layout.shape.n_ao
    out = jnp.zeros((n, n), strips[0].p.dtype)
    for of_class, data in zip(plan.strips, strips, strict=True):
        rows = pair_rows(plan, of_class, data.p.dtype)
        gauss = gaussian_integral(data.p)
        chunk = (data.hermite[..., 0] * gauss[..., None]).sum(2) * np.sign(rows.weight)
        out = out.at[rows.i, rows.j].add(chunk)
    return out + jnp.tril(out, -1).T


def one_electron_gradient(
    atoms: Atoms, strips: tuple[StripData, ...], density: FloatNN, energy_weighted: FloatNN
) -> tuple[list[StripData], FloatA3]:
    """Derivatives of tr(D T) + tr(D V) - tr(W S) by the data of every class, and by the nuclei.

    The first has the shapes of `strips`; one-centre overlaps and kinetic energies are constants.
    """
    plan = atoms.plan
    gradients, total = [], jnp.zeros_like(atoms.nuclei.hi)
    for of_class, data in zip(plan.strips, strips, strict=True):
        rows = pair_rows(plan, of_class, data.p.dtype)
        d = taken(density, rows.i, rows.j) * rows.weight  # [S, nb, f]
        attraction, force = _attraction(atoms, of_class, data, d=d)
        far = (of_class.atom < 0)[..., None]
        w = taken(energy_weighted, rows.i, rows.j) * np.where(far, rows.weight, 0).astype(d.dtype)
        gauss = gaussian_integral(data.p)
        hermite = attraction.hermite.at[..., 0].add(-w[:, :, None] * gauss[..., None])
        centre = Pair(attraction.centre, jnp.zeros_like(attraction.centre))
        kinetic = _kinetic_rows(plan, of_class, density)
        gradients.append(StripData(jnp.zeros_like(data.p), centre, hermite, kinetic=kinetic))
        total = total + force
    return gradients, total


def _kinetic_rows(plan: TilePlan, strips: Strips, density: FloatNN) -> Float[Array, " rows"]:
    """D over the rows of a class, without one-centre products."""
    layout = plan.layout
    i, j = np.tril_indices(layout.shape.n_ao)
    i, j = i[layout.ao_atom[i] != layout.ao_atom[j]], j[layout.ao_atom[i] != layout.ao_atom[j]]
    row = plan.row_of[i, j] - strips.first_row
    here = (row >= 0) & (row < strips.n_rows)
    i, j, row = (x[here].astype(np.int32) for x in (i, j, row))
    return jnp.zeros(strips.n_rows, density.dtype).at[row].set(2.0 * density[i, j])


def _attraction(
    atoms: Atoms, strips: Strips, data: StripData, d: FloatSnf
) -> tuple[PairGradient, FloatA3]:
    """Derivatives of the nuclear attraction, without the own nucleus of one-centre products."""
    order = strips.pair_class.order

    def portable(*operands: Array) -> Parts:
        p, hi, lo, e, own, charges, *nuclei, d = operands
        data = StripData(p, Pair(hi, lo), e, kinetic=jnp.zeros(0, p.dtype))
        return _attraction_vertex(order, data, own, d=d, charges=charges, nuclei=Pair(*nuclei))

    centre, hermite, on_nuclei = codelet(
        "attraction_gradient",
        portable,
        *(data.p, *data.centre, data.hermite, strips.atom, atoms.charge, *atoms.nuclei, d),
        shape=(data.centre.hi.shape, data.hermite.shape, atoms.nuclei.hi.shape),
        boys=packed_fits([order + 1], data.p.dtype),
    )
    return PairGradient(centre, hermite), on_nuclei


Parts = tuple[FloatSnc3, FloatSncfh, FloatA3]


def _attraction_vertex(
    order: int, data: StripData, own: Int[Array, "S nb"], d: FloatSnf, charges: FloatA, nuclei: Pair
) -> Parts:
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
        table = -charge * hermite_coulomb(order + 1, data.p, prefactor, r=r)
        force = jnp.stack([(weighted * table[raised[k]]).sum(0) for k in range(3)], -1)
        potential, total = sums
        return (potential + table[: n_hermite(order)], total + force), -force.sum((0, 1, 2))

    zero = jnp.zeros_like(weighted), jnp.zeros_like(data.centre.hi)
    index = jnp.arange(charges.shape[0], dtype=jnp.int32)
    (potential, centre), on_nuclei = lax.scan(nucleus, zero, (index, charges, *nuclei))
    hermite = jnp.einsum("hsbc,sbf->sbcfh", potential, d, precision="highest")
    return centre, hermite, on_nuclei

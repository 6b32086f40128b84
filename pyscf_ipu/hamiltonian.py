"""One molecule made ready for the SCF: everything that depends on the geometry, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pyscf_ipu.exchange_correlation import GridBlocks, atom_data, exchange_correlation, grid_blocks
from pyscf_ipu.integrals import OneElectron, nuclear_repulsion, one_electron
from pyscf_ipu.jk import pack_density, packed_indices, unpack
from pyscf_ipu.layout import Layout
from pyscf_ipu.machine import HOST, Machine, Repulsion
from pyscf_ipu.pairs import gather_shells
from pyscf_ipu.precision import Pair, add
from pyscf_ipu.strips import pair_strips
from pyscf_ipu.tables import ClassTable, Conformer, OneCentre
from pyscf_ipu.tiles import TilePlan, tile_dot, tile_total
from pyscf_ipu.xc import Functional

# Padded AOs sit this far above everything that can be occupied.  Far larger shifts would swamp
# real eigenvalues: the error of eigh grows with the norm of the matrix.
PADDING_SHIFT = 50.0


class PackedIntegrals(NamedTuple):
    """One-electron integrals over AO pairs: Pairs [P] in Hartree; dipole [3, P] in e Bohr."""

    overlap: Pair
    kinetic: Pair
    nuclear: Pair
    dipole: Array


class EnergyTerms(NamedTuple):
    """Contributions to the total energy in Hartree, each a Pair.

    kinetic, nuclear_attraction, electron_repulsion (Coulomb and exact exchange),
    exchange_correlation (semilocal part), nuclear_repulsion.
    """

    kinetic: Pair
    nuclear_attraction: Pair
    electron_repulsion: Pair
    exchange_correlation: Pair
    nuclear_repulsion: Pair

    def total(self) -> Pair:
        return tile_total(Pair(jnp.stack([t.hi for t in self]), jnp.stack([t.lo for t in self])))


@dataclass(frozen=True)
class Hamiltonian:
    """Overlap, one-electron integrals, electron repulsion and grid of one molecule.

    overlap Pair [N, N] (1 on the diagonal of padded AOs); one: PackedIntegrals;
    repulsion: packed density -> G d and its energy; grid: AO values and weights;
    padded [N] marks AOs of empty slots; nuclear: Pair.
    """

    functional: Functional
    overlap: Pair
    one: PackedIntegrals
    repulsion: Repulsion
    grid: GridBlocks | None
    padded: Array
    nuclear: Pair

    def fock(self, density: Array) -> tuple[Array, EnergyTerms]:
        """Fock matrix [N, N] and the energy's parts at a density matrix [N, N]."""
        d = pack_density(density)
        with jax.named_scope("repulsion"):
            two_electron, repulsion_energy = self.repulsion(d)
        with jax.named_scope("xc"):
            xc_energy, xc_matrix = exchange_correlation(self.functional, self.grid, density)
        packed = self.one.kinetic.hi + self.one.nuclear.hi + two_electron
        matrix = unpack(packed, density.shape[0]) + xc_matrix
        shift = jnp.where(self.padded, PADDING_SHIFT, 0.0).astype(matrix.dtype)
        terms = EnergyTerms(
            tile_dot(d, self.one.kinetic),
            tile_dot(d, self.one.nuclear),
            repulsion_energy,
            xc_energy,
            self.nuclear,
        )
        return matrix + jnp.diag(shift), terms

    def dipole(self, density: Array) -> Array:
        """Electronic dipole moment [3] in e Bohr, about the origin of the conformer's frame."""
        d = pack_density(density)
        return -jnp.stack([tile_dot(d, x).value() for x in self.one.dipole])


def hamiltonian(
    plan: TilePlan,
    functional: Functional,
    tables: tuple[ClassTable, ...],
    mol: Conformer,
    dtype: type,
    machine: Machine = HOST,
) -> Hamiltonian:
    """All integrals of one molecule in `dtype`."""
    layout = plan.layout
    charge, _ = atom_data(layout, tables, mol)
    nuclei = mol.positions.astype(dtype)
    charge = charge.astype(dtype)
    n = layout.shape.n_ao
    padded = (charge == 0)[layout.ao_atom]
    with jax.named_scope("pairs"):
        strips = pair_strips(plan, tables, mol, dtype)
        shells = gather_shells(layout, tables, mol, dtype)
    with jax.named_scope("one_electron"):
        one = _packed(plan, tables, mol, one_electron(plan, strips, charge, nuclei))
    with jax.named_scope("eri"):
        repulsion = machine.repulsion(plan, strips, tables, mol, dtype, functional.exact_exchange)
    with jax.named_scope("grid"):
        grid = grid_blocks(layout, functional, tables, shells, mol, dtype, machine.grid_tiles)
    return Hamiltonian(
        functional,
        Pair(unpack(one.overlap.hi, n) + jnp.diag(padded.astype(dtype)), unpack(one.overlap.lo, n)),
        one,
        repulsion,
        grid,
        padded,
        nuclear_repulsion(charge, nuclei),
    )


def _packed(
    plan: TilePlan, tables: tuple[ClassTable, ...], mol: Conformer, computed: OneElectron
) -> PackedIntegrals:
    """Computed integrals over AO pairs, with the one-centre blocks from the tables."""
    layout = plan.layout
    i, j = packed_indices(layout.shape.n_ao)
    found = OneElectron(*(x[..., plan.row_of[i, j]] for x in computed))
    dtype = found.overlap.dtype
    zero = jnp.zeros_like(found.overlap)
    exact: dict[str, Pair] = {name: Pair(zero, zero) for name in OneCentre._fields}
    one_centre = np.zeros(len(i), bool)
    for slots, table in zip(layout.slots, tables, strict=True):
        first = layout.first_ao[slots]
        a, b = packed_indices(table.guess.shape[-1])
        high, low = first[:, None] + a, first[:, None] + b
        place = high * (high + 1) // 2 + low  # [slots, products]
        one_centre[place] = True
        for name, values in table.one_centre._asdict().items():
            block = values.astype(dtype).at((mol.element[slots][:, None], a, b))
            exact[name] = Pair(
                *(w.at[place].set(x) for w, x in zip(exact[name], block, strict=True))
            )

    def replace(name: str, value: Array) -> Pair:
        kept = jnp.where(one_centre, exact[name].hi, value)
        return Pair(kept, exact[name].lo)

    nuclear = add(exact["nuclear"], Pair(found.nuclear, zero))
    overlap = replace("overlap", found.overlap)
    return PackedIntegrals(overlap, replace("kinetic", found.kinetic), nuclear, found.dipole)


def guess_density(layout: Layout, tables: tuple[ClassTable, ...], mol: Conformer) -> Array:
    """Superposition of atomic densities: block diagonal [N, N]."""
    n = layout.shape.n_ao
    out = jnp.zeros((n, n), tables[0].guess.dtype)
    for slots, table in zip(layout.slots, tables, strict=True):
        blocks = table.guess[mol.element[slots]]
        index = layout.first_ao[slots][:, None] + np.arange(table.guess.shape[-1], dtype=np.int32)
        out = out.at[index[:, :, None], index[:, None, :]].set(blocks)
    return out

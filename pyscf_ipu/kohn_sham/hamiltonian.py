"""One molecule made ready for the SCF: everything that depends on the geometry, computed once."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from pyscf_ipu.grid.blocks import Grid, grid_blocks
from pyscf_ipu.grid.nonlocal_correlation import nonlocal_correlation
from pyscf_ipu.grid.xc_matrix import GridProducts, exchange_correlation
from pyscf_ipu.grid.xc_response import exchange_correlation_response
from pyscf_ipu.integrals import OneElectron, nuclear_repulsion
from pyscf_ipu.integrals.supermatrix import pack_density, packed_indices, unpack
from pyscf_ipu.kohn_sham.nearby import touching
from pyscf_ipu.kohn_sham.xc_of_spins import exchange_correlation_of_spins, response_of_spins
from pyscf_ipu.machines.machine import (
    HOST,
    AffineRepulsion,
    Machine,
    Repulsion,
    of_change,
    repulsion_of,
)
from pyscf_ipu.numerics.arrays import (
    Flag,
    FloatA3,
    FloatNN,
    FloatP,
    FloatSNN,
    by_spin,
    mean_of_spins,
)
from pyscf_ipu.numerics.two_words import Pair, add
from pyscf_ipu.scf.run import Fock, ScfRun
from pyscf_ipu.scf.staged import Nearby, Staged
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.shapes.tables import OneCentre
from pyscf_ipu.tiles import tile_dot, tile_total
from pyscf_ipu.xc.semilocal.functionals import Functional

# Padded AOs sit this far above everything that can be occupied.  Far larger shifts would swamp
# real eigenvalues: the error of eigh grows with the norm of the matrix.
PADDING_SHIFT = 50.0


class PackedIntegrals(NamedTuple):
    """One-electron integrals over AO pairs: [P] in Hartree."""

    overlap: Pair
    kinetic: Pair
    nuclear: Pair  # with core potentials
    dipole: Float[Array, "3 P"]  # e Bohr


class EnergyTerms(NamedTuple):
    """Contributions to the total energy in Hartree, each a Pair."""

    kinetic: Pair
    nuclear_attraction: Pair
    electron_repulsion: Pair  # Coulomb and exact exchange
    exchange_correlation: Pair  # semilocal part
    nuclear_repulsion: Pair

    @jax.named_scope("energy")
    def total(self) -> Pair:
        return tile_total(Pair(jnp.stack([t.hi for t in self]), jnp.stack([t.lo for t in self])))


@dataclass(frozen=True)
class Hamiltonian:
    """Overlap, one-electron integrals, electron repulsion and grid of one molecule."""

    functional: Functional
    overlap: Pair  # [N, N], 1 on the diagonal of padded AOs
    one: PackedIntegrals
    repulsion: Repulsion
    grid: Grid | None
    coarse: Grid | None  # few points, which stand for all in most cycles of an SCF
    pairs_grid: Grid | None  # the points whose pairs VV10 sums over
    nuclei: FloatA3  # Bohr
    grid_products: GridProducts
    padded: Bool[Array, " N"]  # AOs of empty slots, and those that an element lacks
    nuclear: Pair  # energy of their repulsion
    nearby: Nearby | None = None  # of the semilocal part at the density of `fock`

    def fock(self, density: FloatSNN) -> tuple[FloatSNN, EnergyTerms]:
        """Fock matrix and the energy's parts at a density matrix, or at those of both spins."""
        matrix, terms = self._common(density)
        energy, part = self._all_points(density, self.nearby)
        return matrix + part, _with_semilocal(terms, energy)

    @property
    def cycled(self) -> Fock:
        """`fock` as an SCF calls it, traced once: where there are few points, in two stages."""
        traced = partial(jax.jit, inline=True)
        if self.coarse is None:
            return traced(self.fock)
        return Staged(
            rest=traced(self._common),
            full=traced(self._all_points),
            coarse=traced(self.few_points),
            joined=_with_semilocal,
            in_part=self.grid_products.in_part,
            has_rough=isinstance(self.repulsion, AffineRepulsion)
            and self.overlap.dtype == jnp.float64,
        )

    def _common(self, density: FloatSNN, rough: Flag | None = None) -> tuple[FloatSNN, EnergyTerms]:
        """All but the semilocal part."""
        each = partial(by_spin, open_shell=density.ndim == 3)
        d = pack_density(total_density(density))
        with jax.named_scope("repulsion"):
            two_electron, repulsion_energy = repulsion_of(
                self.repulsion, each(pack_density)(density), rough
            )
        # Repulsion and attraction first: most of them cancels, without a rounding.
        kinetic, nuclear = self.one.kinetic, self.one.nuclear
        packed = ((two_electron + nuclear.hi) + kinetic.hi) + (nuclear.lo + kinetic.lo)
        zero = jnp.zeros((), density.dtype)
        with jax.named_scope("energy"):
            terms = EnergyTerms(
                tile_dot(d, self.one.kinetic),
                tile_dot(d, self.one.nuclear),
                repulsion_energy,
                exchange_correlation=Pair(zero, zero),
                nuclear_repulsion=self.nuclear,
            )
        shift = jnp.where(self.padded, PADDING_SHIFT, 0.0).astype(packed.dtype)
        matrix = each(partial(unpack, n=density.shape[-1]))(packed)
        return matrix + jnp.diag(shift), terms

    def _semilocal(
        self, grid: Grid | None, density: FloatSNN, products: GridProducts
    ) -> tuple[Pair, FloatSNN]:
        of = exchange_correlation if density.ndim == 2 else exchange_correlation_of_spins
        with jax.named_scope("xc"):
            return of(self.functional, grid, density, products=products)

    def few_points(self, density: FloatSNN) -> tuple[Pair, FloatSNN]:
        """Semilocal exchange and correlation on the coarse grid."""
        return self._semilocal(self.coarse, density, self.grid_products)

    def _all_points(self, density: FloatSNN, nearby: Nearby | None) -> tuple[Pair, FloatSNN]:
        """Semilocal and nonlocal exchange and correlation."""
        if nearby is None or self.grid is None:
            return self._with_products(density, self.grid_products)
        dtype = self.grid.weights.dtype
        touched = touching(self.grid_products, density, dtype, nearby=nearby)
        energy, total = self._with_products(density, touched.products)
        return energy, touched.completed(total, self.overlap.hi)

    def _with_products(self, density: FloatSNN, products: GridProducts) -> tuple[Pair, FloatSNN]:
        """The energy on all points, and the sum of what the products make of them."""
        energy, matrix = self._semilocal(self.grid, density, products)
        vv10 = self.functional.vv10
        if vv10 is None or self.pairs_grid is None:
            return energy, matrix
        with jax.named_scope("vv10"):
            more, part = nonlocal_correlation(
                vv10,
                self.pairs_grid,
                self.nuclei,
                density=total_density(density),
                products=products,
            )
        return add(energy, more), matrix + part

    def response(self, density: FloatSNN) -> Callable[[FloatSNN], FloatSNN]:
        """The derivative of the Fock matrix at a density matrix: change of D -> change of F.

        Of open shells it is that of both Fock matrices along changes of both densities.
        That of VV10 is left out, as in PySCF: it is small, and costs as much as VV10.
        """
        of = exchange_correlation_response if density.ndim == 2 else response_of_spins
        xc = of(self.functional, self.grid, density, products=self.grid_products)
        repulsion, each = of_change(self.repulsion), partial(by_spin, open_shell=density.ndim == 3)
        unpacked = each(partial(unpack, n=density.shape[-1]))

        def change_of_fock(change: FloatSNN) -> FloatSNN:
            with jax.named_scope("repulsion"):
                two_electron, _ = repulsion(each(pack_density)(change))
            with jax.named_scope("xc"):
                return unpacked(two_electron) + xc(change)

        return change_of_fock

    def dipole(self, density: FloatSNN) -> Float[Array, "3"]:
        """Electronic dipole moment in e Bohr, about the origin of the conformer's frame."""
        d = pack_density(total_density(density))
        return -jnp.stack([tile_dot(d, x).value() for x in self.one.dipole])


def total_density(density: FloatSNN) -> FloatNN:
    """The density of all electrons, from that of closed shells or from those of both spins."""
    return mean_of_spins(density) if density.ndim == 3 else density


def _with_semilocal(terms: EnergyTerms, energy: Pair) -> EnergyTerms:
    return terms._replace(exchange_correlation=energy)


def hamiltonian(
    atoms: Atoms,
    functional: Functional,
    machine: Machine = HOST,
    coarse: bool = False,
    on_grid: Atoms | None = None,
    open_shell: bool = False,
) -> Hamiltonian:
    """All integrals of one molecule, in the dtype of its atoms.

    Args:
        atoms: the molecule.
        functional: for exchange and correlation.
        machine: its algorithms.
        coarse: whether most cycles of an SCF are to do with few points of the grid.
        on_grid: the molecule in the dtype of the grid; None: that of `atoms`.
        open_shell: whether densities are those of two spins.
    """
    n = atoms.layout.shape.n_ao
    padded = _padded(atoms)
    with jax.named_scope("pairs"):
        strips = machine.pairs(atoms)
    with jax.named_scope("one_electron"):
        one = _packed(atoms, machine.one_electron(atoms, strips))
    with jax.named_scope("eri"):
        build = machine.repulsion_of_spins if open_shell else machine.repulsion
        repulsion = build(atoms, strips, functional.exchange)
    with jax.named_scope("one_electron"):
        overlap = unpack(one.overlap.hi, n) + jnp.diag(padded.astype(atoms.dtype))
        overlap_pair = Pair(overlap, unpack(one.overlap.lo, n))
    return Hamiltonian(
        functional,
        overlap_pair,
        one,
        repulsion=repulsion,
        **_grids(on_grid or atoms, functional, machine, coarse=coarse),
        nuclei=atoms.nuclei.value(),
        grid_products=machine.grid_products,
        padded=padded,
        nuclear=nuclear_repulsion(atoms.charge, atoms.nuclei),
    )


def on_grid_of(atoms: Atoms, problem: Hamiltonian, machine: Machine, run: ScfRun) -> Hamiltonian:
    """A molecule made ready, with another grid, in the dtype of these atoms, to follow a run."""
    nearby = None
    if run.lacking is not None:
        _, few = problem.few_points(run.density)
        nearby = Nearby(few + run.lacking, run.converged)
    grids = _grids(atoms, problem.functional, machine, coarse=False)
    return replace(problem, **grids, nearby=nearby)


class _Grids(TypedDict):
    """All points, few points, and those of VV10's pairs, as far as they are needed."""

    grid: Grid | None
    coarse: Grid | None
    pairs_grid: Grid | None


@jax.named_scope("grid")
def _grids(atoms: Atoms, functional: Functional, machine: Machine, coarse: bool) -> _Grids:
    """The grids of a molecule."""
    blocks = partial(grid_blocks, blocks=machine.grid_tiles, parts=machine.grid_parts)
    few = atoms.on_grid("coarse") if coarse else None
    side = atoms.on_grid("vv10")
    return {
        "grid": blocks(atoms, functional),
        "coarse": None if few is None else blocks(few, functional),
        "pairs_grid": None if side is None else blocks(side, functional.of_gradient),
    }


def _padded(atoms: Atoms) -> Bool[Array, " N"]:
    """Which AOs do not exist: their overlap with themselves is zero."""
    out = jnp.zeros(atoms.layout.shape.n_ao, bool)
    for slots, table, rows in atoms.classes():
        own = jnp.diagonal(table.one_centre.overlap.hi, axis1=1, axis2=2)
        place = atoms.layout.first_ao[slots][:, None] + np.arange(own.shape[1], dtype=np.int32)
        out = out.at[place].set(own[rows] == 0)
    return out


def _packed(atoms: Atoms, computed: OneElectron) -> PackedIntegrals:
    """Computed integrals over AO pairs, with the one-centre blocks from the tables."""
    i, j = packed_indices(atoms.layout.shape.n_ao)
    packed = OneElectron._make(x[..., atoms.plan.row_of[i, j]] for x in computed)
    zero = jnp.zeros_like(packed.overlap)
    exact: dict[str, Pair] = {name: Pair(zero, zero) for name in OneCentre._fields}
    one_centre = np.zeros(len(i), bool)
    for slots, table, rows in atoms.classes():
        first = atoms.layout.first_ao[slots]
        a, b = packed_indices(table.guess.shape[-1])
        high, low = first[:, None] + a, first[:, None] + b
        place = high * (high + 1) // 2 + low  # [slots, products]
        one_centre[place] = True
        for name, values in table.one_centre._asdict().items():
            block = values.at(rows[:, None], a, b).astype(atoms.dtype)
            exact[name] = Pair(
                *(w.at[place].set(x) for w, x in zip(exact[name], block, strict=True))
            )

    def replace(name: str, value: FloatP) -> Pair:
        kept = jnp.where(one_centre, exact[name].hi, value)
        return Pair(kept, exact[name].lo)

    nuclear = add(exact["nuclear"], Pair(packed.nuclear, zero))
    if atoms.core is not None:
        nuclear = add(nuclear, atoms.core)
    overlap = replace("overlap", packed.overlap)
    return PackedIntegrals(
        overlap, replace("kinetic", packed.kinetic), nuclear, dipole=packed.dipole
    )


@jax.named_scope("guess")
def guess_density(atoms: Atoms) -> FloatNN:
    """Superposition of atomic densities: block diagonal, in the dtype of the atoms."""
    n, first_ao = atoms.layout.shape.n_ao, atoms.layout.first_ao
    out = jnp.zeros((n, n), atoms.dtype)
    for slots, table, rows in atoms.classes():
        index = first_ao[slots][:, None] + np.arange(table.guess.shape[-1], dtype=np.int32)
        blocks = table.guess[rows].astype(atoms.dtype)
        out = out.at[index[:, :, None], index[:, None, :]].set(blocks)
    return out

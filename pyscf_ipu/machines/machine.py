"""Where machines differ: pairs, one-electron integrals, repulsion, eigenproblems, cut of the grid.

The engine is written once.  Where a machine with a thousand small memories needs another algorithm
than a processor with caches, the engine takes it from its `Machine`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp

from pyscf_ipu.grid.xc_matrix import PORTABLE, GridProducts
from pyscf_ipu.integrals.one_electron import BuildOneElectron, one_electron
from pyscf_ipu.integrals.strips import BuildStrips, StripData, pair_strips
from pyscf_ipu.integrals.supermatrix import pair_order, repulsion, supermatrix
from pyscf_ipu.numerics.arrays import Flag, FloatSP, mean_of_spins
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.numerics.products import Products, one_by_one
from pyscf_ipu.numerics.two_words import Pair, add
from pyscf_ipu.scf.algebra import Algebra, Eigh, library_eigh
from pyscf_ipu.shapes.atoms import Atoms

Repulsion = Callable[[FloatSP], tuple[FloatSP, Pair]]
"""Packed density, or those of both spins, -> G d and its energy; see `supermatrix.repulsion`."""


@dataclass(frozen=True)
class AffineRepulsion:
    """A Repulsion of densities, which may be rough, and another function for their changes.

    Where the density of free atoms is a constant of the molecule, or a density is taken apart into
    orbitals, a change of it needs other steps.
    """

    total: Callable[[FloatSP, Flag | None], tuple[FloatSP, Pair]]
    """With whether exchange in float32 will do, as it does in a cycle far from the end."""
    change: Repulsion

    def __call__(self, d: FloatSP) -> tuple[FloatSP, Pair]:
        return self.total(d, None)


def repulsion_of(repulsion: Repulsion, d: FloatSP, rough: Flag | None) -> tuple[FloatSP, Pair]:
    """G d and its energy, with rough exchange where that is cheaper; None: never."""
    return repulsion.total(d, rough) if isinstance(repulsion, AffineRepulsion) else repulsion(d)


def of_change(repulsion: Repulsion) -> Repulsion:
    """What gives G d of a change of the density, which need not be one of electrons."""
    return repulsion.change if isinstance(repulsion, AffineRepulsion) else repulsion


BuildRepulsion = Callable[[Atoms, tuple[StripData, ...], Interaction], Repulsion]
"""(atoms, strips, the interaction of exact exchange in G) -> Repulsion."""


def stored_halves_of_spins(
    atoms: Atoms, strips: tuple[StripData, ...], exchange: Interaction
) -> Repulsion:
    """J of all electrons, and exchange among those of either spin, from two arrays like G."""
    plan, order = atoms.plan, pair_order(atoms.plan)
    exchanged = exchange.full != 0.0 or exchange.long_range != 0.0
    made = supermatrix(plan, strips, exchange, apart=exchanged)
    of_coulomb, of_exchange = made if exchanged else (made, None)

    def of_spins(d: FloatSP) -> tuple[FloatSP, Pair]:
        field, energy = repulsion(of_coulomb, mean_of_spins(d), order)
        if of_exchange is None:
            return jnp.stack([field, field]), energy
        alpha, beta = (repulsion(of_exchange, one, order) for one in d)
        both = add(alpha[1], beta[1])
        half = Pair(0.5 * both.hi, 0.5 * both.lo)
        return field + jnp.stack([alpha[0], beta[0]]), add(energy, half)

    return of_spins


@dataclass(frozen=True)
class Machine:
    """The algorithms of one kind of machine."""

    repulsion: BuildRepulsion
    """Builds the function that gives G d."""
    eigh: Eigh
    repulsion_of_spins: BuildRepulsion = stored_halves_of_spins
    """Builds what gives both spins' G d, [2, P], from their densities."""
    grid_products: GridProducts = PORTABLE
    """Density and matrix on the grid."""
    grid_tiles: int | None = None
    """Tiles over which grid points are cut; None: blocks that fit into a cache."""
    grid_parts: int = 1
    """Parts of a tile's points, whose AO values are made again one by one; 1: all are kept."""
    pairs: BuildStrips = pair_strips
    """Hermite data of shell pairs."""
    one_electron: BuildOneElectron = one_electron
    """Overlap, kinetic energy, attraction by the nuclei and dipole."""
    has_float64: bool = True
    """Without it the last evaluation of `mixed` takes the host's algorithms."""
    idempotent: bool = False
    """Whether a float32 energy is that of the idempotent density next to the last one, which takes
    products in two words."""
    branches: bool = False
    """Whether what is not chosen costs nothing, as for molecules one after another; then most
    cycles are coarse."""
    products: Products = one_by_one
    """Products of the SCF's matrices that do not need each other."""
    other_starts: bool = True
    """Whether an SCF that ends with a small gap is tried from other guesses, too; not where its
    price is that of one."""

    @property
    def algebra(self) -> Algebra:
        """What the SCF needs besides a Fock matrix."""
        return Algebra(self.eigh, self.products)


def stored_supermatrix(
    atoms: Atoms, strips: tuple[StripData, ...], exchange: Interaction
) -> Repulsion:
    """Half of G as one array."""
    half, order = supermatrix(atoms.plan, strips, exchange), pair_order(atoms.plan)
    return lambda d: repulsion(half, d, order)


HOST = Machine(stored_supermatrix, library_eigh)
"""Accelerators for which there is nothing better."""

PROCESSOR = Machine(stored_supermatrix, library_eigh, idempotent=True, branches=True)
"""CPUs."""

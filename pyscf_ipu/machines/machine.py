"""Where machines differ: pairs, one-electron integrals, repulsion, eigenproblems, cut of the grid.

The engine is written once.  Where a machine with a thousand small memories needs another algorithm
than a processor with caches, the engine takes it from its `Machine`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pyscf_ipu.grid.xc_matrix import PORTABLE, GridProducts
from pyscf_ipu.integrals.one_electron import BuildOneElectron, one_electron
from pyscf_ipu.integrals.strips import BuildStrips, StripData, pair_strips
from pyscf_ipu.integrals.supermatrix import pair_order, repulsion, supermatrix
from pyscf_ipu.numerics.arrays import FloatP
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.numerics.products import Products, one_by_one
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.scf.algebra import Algebra, Eigh, library_eigh
from pyscf_ipu.shapes.atoms import Atoms

Repulsion = Callable[[FloatP], tuple[FloatP, Pair]]
"""Packed density -> G d and its energy; see `supermatrix.repulsion`."""


@dataclass(frozen=True)
class AffineRepulsion:
    """A Repulsion of densities, and another function for their changes.

    Where the density of free atoms is a constant of the molecule, or a density is taken apart into
    orbitals, a change of it needs other steps.
    """

    total: Repulsion
    change: Repulsion

    def __call__(self, d: FloatP) -> tuple[FloatP, Pair]:
        return self.total(d)


def of_change(repulsion: Repulsion) -> Repulsion:
    """What gives G d of a change of the density, which need not be one of electrons."""
    return repulsion.change if isinstance(repulsion, AffineRepulsion) else repulsion


BuildRepulsion = Callable[[Atoms, tuple[StripData, ...], Interaction], Repulsion]
"""(atoms, strips, the interaction of exact exchange in G) -> Repulsion."""


@dataclass(frozen=True)
class Machine:
    """The algorithms of one kind of machine."""

    repulsion: BuildRepulsion
    """Builds the function that gives G d."""
    eigh: Eigh
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

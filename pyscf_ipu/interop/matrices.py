"""The engine's integrals of one molecule as plain matrices, AOs in PySCF's order."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.linalg import block_diag

from pyscf_ipu.codelets import strip_primitives
from pyscf_ipu.elements.basis import element_basis
from pyscf_ipu.elements.free_atom import one_centre_integrals
from pyscf_ipu.integrals import eri_matrix, one_electron
from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes import conformer as shapes_conformer
from pyscf_ipu.shapes import tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan


class AllIntegrals(NamedTuple):
    """The integrals at one geometry, in atomic units."""

    overlap: Array  # S [N, N], ones on the diagonal
    kinetic: Array  # T [N, N]
    nuclear: Array  # V [N, N], attraction by all nuclei
    repulsion: Array  # (ij|kl), [N, N, N, N]


def integrals(molecule: Molecule, settings: Settings) -> Callable[[Array], AllIntegrals]:
    """Positions [A, 3] in Bohr -> AllIntegrals, a function that JAX can differentiate.

    In float64 call it inside `jax.enable_x64(True)`.

    Raises:
        UsageError: the basis has core potentials, which PySCF computes.
    """
    molecule.refuse_cores(
        settings.basis,
        "are not the engine's integrals: use an all-electron basis, or PySCF's intor('ECPscalar')",
    )
    numbers, dtype = molecule.numbers, np.dtype(settings.precision).type
    shape = shape_of(numbers, settings.basis, settings.cart, grid=settings.grid, pad=False)
    plan = tile_plan(shape, strip_primitives=strip_primitives())
    table = tables.shape_tables(shape, settings)
    conformer = shapes_conformer.conformer(molecule, shape, settings)
    atoms = shapes_conformer.slot_order(molecule, shape, settings)  # sorted by element
    ao = shapes_conformer.ao_order(molecule, shape, settings)  # and this leads back to PySCF's AOs
    row = plan.row_of[np.ix_(ao, ao)]  # where the engine keeps the pair ij, [N, N]
    own = block_diag(*(_own_attraction(int(z), settings) for z in numbers))

    @jax.jit
    def at(positions: Array) -> AllIntegrals:
        centres = Pair(positions[atoms], jnp.zeros_like(positions))
        placed = gather_atoms(plan, table, conformer._replace(positions=centres), dtype=dtype)
        strips = pair_strips(placed)
        one = one_electron(placed, strips)  # without attraction by the own nucleus
        pairs = eri_matrix(plan, strips)[row.ravel()][:, row.ravel()]  # [N^2, N^2]
        return AllIntegrals(
            overlap=one.overlap[row],
            kinetic=one.kinetic[row],
            nuclear=one.nuclear[row] + jnp.asarray(own, dtype),
            repulsion=pairs.reshape(*row.shape, *row.shape),
        )

    return at


def _own_attraction(number: int, settings: Settings) -> np.ndarray:
    """Attraction of an atom's AOs by its own nucleus, in PySCF's order."""
    level = number, settings.basis, settings.cart
    back = np.argsort(element_basis(*level).pyscf_order)
    return one_centre_integrals(*level)[2][np.ix_(back, back)]

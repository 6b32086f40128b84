"""The derivative of one molecule's converged energy with respect to the positions of its nuclei.

At a self-consistent density the energy depends on the orbitals only through their orthonormality::

    dE/dR = (dE/dR at fixed D) - tr(W dS/dR),   W = 1/2 D F D,

so that nothing differentiates through the SCF or an eigenproblem (P. Pulay, Mol. Phys. 17, 197
(1969), doi:10.1080/00268976900100941).
"""

from functools import partial

import jax
import jax.numpy as jnp

from pyscf_ipu.codelets import strip_primitives
from pyscf_ipu.gradient.electron_repulsion import repulsion_gradient
from pyscf_ipu.gradient.fitted_repulsion import fitted_gradient
from pyscf_ipu.gradient.one_electron import one_electron_gradient, overlap_matrix
from pyscf_ipu.gradient.pairs import by_nuclei
from pyscf_ipu.gradient.points.exchange_correlation import exchange_correlation_gradient
from pyscf_ipu.gradient.points.nonlocal_slope import nonlocal_correlation_gradient
from pyscf_ipu.grid.orbital_products import by_orbitals
from pyscf_ipu.grid.xc_matrix import PORTABLE
from pyscf_ipu.integrals import nuclear_repulsion
from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.kohn_sham.hamiltonian import total_density
from pyscf_ipu.kohn_sham.program import Program, State
from pyscf_ipu.numerics.arrays import FloatA3, FloatN, FloatNN, by_spin
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.auxiliary import auxiliary_layout, auxiliary_level
from pyscf_ipu.shapes.core import numerics_of
from pyscf_ipu.shapes.shape import Shape
from pyscf_ipu.shapes.tables import ClassTable
from pyscf_ipu.shapes.tile_plan import tile_plan
from pyscf_ipu.xc.registry import functional


def energy_gradient(
    shape: Shape, settings: Settings, tables: tuple[ClassTable, ...], state: State
) -> FloatA3:
    """dE/dR in Hartree/Bohr at a converged density; pure, shape and settings fixed."""
    mol, density, orbitals, levels = state
    xc = functional(settings.xc)
    plan = tile_plan(shape, strip_primitives=strip_primitives())
    numerics = numerics_of(shape, settings)
    atoms = gather_atoms(plan, tables, mol, dtype=numerics.result_dtype)
    on_grid = atoms
    if numerics.wide:  # float64 would be no better than the density, which came from such a grid
        on_grid = gather_atoms(plan, tables, mol, dtype=numerics.scf_dtype)
    strips = pair_strips(atoms)
    weigh = partial(energy_weighted_density, overlap=overlap_matrix(plan, strips))
    open_shell = density.ndim == 3
    weighted = by_spin(weigh, open_shell)(density, orbitals, levels)
    total = total_density(density)
    one, on_nuclei = one_electron_gradient(
        atoms, strips, total, energy_weighted=total_density(weighted)
    )
    if settings.form(shape.n_ao) == "ri":
        layout = auxiliary_layout(shape, auxiliary_level(settings))
        two, on_auxiliary = fitted_gradient(atoms, layout, density, exchange=xc.exchange)
        on_nuclei = on_nuclei + on_auxiliary
    else:
        two = repulsion_gradient(plan, strips, density, exchange=xc.exchange)
    by_strips = [
        a._replace(centre=Pair(a.centre.hi + b.centre, a.centre.lo), hermite=a.hermite + b.hermite)
        for a, b in zip(one, two, strict=True)
    ]
    low = atoms.nuclei.lo
    between = jax.grad(lambda hi: nuclear_repulsion(atoms.charge, Pair(hi, low)).value())
    products = by_orbitals(PORTABLE, xc, many_aos=numerics.wide)
    whole = products.prepared(total, on_grid.dtype, False)
    spins = (whole,)
    if open_shell:
        spins = tuple(products.prepared(one, on_grid.dtype, False) for one in density)
    of_grid = exchange_correlation_gradient(on_grid, xc, spins, products=products)
    of_grid = of_grid + nonlocal_correlation_gradient(on_grid, xc, whole, products=products)
    return (
        by_nuclei(atoms, by_strips)
        + on_nuclei
        + between(atoms.nuclei.hi)
        + of_grid.astype(atoms.dtype)
    )


def gradients(shape: Shape, settings: Settings) -> Program:
    """The program of a shape: (tables, State) -> dE/dR [A, 3]."""
    return lambda tables, state: energy_gradient(shape, settings, tables, state=state)


def energy_weighted_density(
    density: FloatNN, orbitals: FloatNN, levels: FloatN, overlap: FloatNN
) -> FloatNN:
    """W = 1/2 D F D in Hartree, with F = S C e C^T S from the orbitals of F.

    Unlike 2 C e C^T over occupied orbitals it belongs to the density at which the energy was
    taken, not to that of the next cycle.  Padded AOs have infinite levels and no density.
    """

    def product(a: FloatNN, b: FloatNN) -> FloatNN:
        return jnp.matmul(a, b, precision="highest")

    inner = product(product(density, overlap), orbitals)
    finite = jnp.where(jnp.isfinite(levels), levels, 0.0)
    return 0.5 * product(inner * finite, inner.T)

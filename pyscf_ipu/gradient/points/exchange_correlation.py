"""The semilocal energy's derivative: AOs, grid points and Becke weights all move with the nuclei.

E = sum_g w_g e(rho(r_g), sigma(r_g)), a point fixed to its own nucleus (B. G. Johnson, P. M. W.
Gill, J. A. Pople, J. Chem. Phys. 98, 5612 (1993), doi:10.1063/1.464906).  What an AO on one nucleus
does to the points of another one, the points do to it the other way round, so that translational
invariance holds exactly.  Blocks, AOs and the first product are those of the energy.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pyscf_ipu.codelets import codelet
from pyscf_ipu.gradient.points.weights import weights_gradient
from pyscf_ipu.grid.ao_blocks import AoBlocks, Packed, ao_operands, split_shells
from pyscf_ipu.grid.ao_values import ao_rows, stacked_ao_values
from pyscf_ipu.grid.becke import Cells
from pyscf_ipu.grid.blocks import Places, grid_blocks
from pyscf_ipu.grid.xc_matrix import GridProducts, ingredients_of, moments_of, that_count
from pyscf_ipu.numerics.arrays import FloatA3, FloatDNG, FloatG, FloatNN, FloatTG, FloatTVG, FloatVG
from pyscf_ipu.numerics.columns import Columns
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.shapes.layout import Layout
from pyscf_ipu.xc.semilocal.functionals import Functional, energy_and_slopes

Spins = tuple[FloatNN | Columns, ...]
"""A density as `GridProducts.prepared` gives it, or those of two spins."""

WHOLE = -1
"""In place of a number of columns: they are the density matrix itself."""


def exchange_correlation_gradient(
    atoms: Atoms, functional: Functional, density: Spins, products: GridProducts
) -> FloatA3:
    """Derivative of the semilocal energy with respect to the nuclei, at fixed density matrices.

    Args:
        atoms: the molecule.
        functional: of the energy.
        density: as `products.prepared` gives it; of closed shells, or of the two spins, each as
            closed shells.
        products: how a machine computes densities.
    """
    grid = grid_blocks(atoms, functional)
    if grid is None:
        return jnp.zeros_like(atoms.nuclei.hi)

    def at_fixed_weights(
        ao: AoBlocks, weights: FloatTG, *places: Array
    ) -> tuple[tuple[FloatTG], FloatA3]:
        moments = [products.moments(ao, one, functional.needs_tau) for one in density]
        vertex = points_vertex if len(density) == 1 else points_of_spins_vertex
        energy, *factors = jax.vmap(partial(vertex, functional))(*moments, weights)
        at = Places(*places)
        by_nuclei = [
            points_gradient(atoms, functional, ao, places=at, factors=f, density=one)
            for f, one in zip(factors, density, strict=True)
        ]
        return (energy,), sum(by_nuclei[1:], by_nuclei[0])

    (energy,), total = grid.each(at_fixed_weights, *map(jnp.asarray, grid.places))
    return total + gradient_of_weights(atoms, energy)


def gradient_of_weights(atoms: Atoms, energy: FloatTG) -> FloatA3:
    """The derivative by the nuclei at fixed energies per volume, those of all points in order."""
    cells = Cells(atoms.nuclei, atoms.radius, atoms.charge > 0)
    energy, first, total = energy.ravel(), 0, jnp.zeros_like(atoms.nuclei.hi)
    for slots, local, volume in atoms.points():
        end = first + volume.size
        by_volume = volume * energy[first:end].reshape(volume.shape)
        total, first = total + weights_gradient(local, by_volume, slots, cells=cells), end
    return total


def points_vertex(
    functional: Functional, moments: FloatVG, weights: FloatG
) -> tuple[FloatG, FloatVG]:
    """One block: energy per volume, and the energy's derivatives by all of `moments_of`."""
    ingredients, slope = ingredients_of(functional, moments)
    energy, v_rho, v_sigma, *v_tau = functional.energy_and_potential(*ingredients)
    factors = [weights * v_rho, *(2.0 * weights * v_sigma * s for s in slope)]
    return energy, jnp.stack([*factors, *(weights * v for v in v_tau)])


def points_of_spins_vertex(
    functional: Functional, alpha: FloatVG, beta: FloatVG, weights: FloatG
) -> tuple[FloatG, FloatVG, FloatVG]:
    """Do the same for two spins, whose moments are those of closed shells: twice their own."""
    own = 0.5 * jnp.stack([alpha, beta])
    energy, by_moments = energy_and_slopes(functional, own)
    return energy, *(0.5 * weights * by for by in by_moments)


def points_gradient(
    atoms: Atoms,
    functional: Functional,
    ao: AoBlocks,
    places: Places,
    factors: FloatTVG,
    density: FloatNN | Columns,
) -> FloatA3:
    """The derivative by the nuclei at fixed weights.

    Args:
        atoms: the molecule.
        functional: says what the moments are.
        ao: all AOs that count on the blocks.
        places: of the blocks' points.
        factors: the energy's derivatives by the moments.
        density: the density matrix, or its columns, none of which has a negative sign.
    """
    if isinstance(density, Columns):
        vectors, _, count = density
    else:
        vectors, count = density, jnp.full((), WHOLE, jnp.int32)
    operands, _, attributes = ao_operands(
        atoms, places.local, places.owner, gradient=functional.needs_gradient
    )

    def portable(*operands: Array) -> FloatA3:
        *at, values, aos, live, factors, vectors, count = operands
        ao = AoBlocks(values, Packed(aos, live))
        few = jnp.where(jnp.arange(vectors.shape[1], dtype=jnp.int32) < count, vectors, 0.0)
        of_columns = jnp.matmul(few, few.T, precision="highest")
        density = jnp.where(count == WHOLE, vectors[:, : len(few)], of_columns)
        return gradient_of_blocks(
            atoms.layout, functional, at, ao=ao, factors=factors, density=density
        )

    return codelet(
        "xc_gradient",
        portable,
        *(*operands, ao.values, *ao.listed(), factors, vectors, count),
        shape=atoms.nuclei.hi.shape,
        **attributes,
    )


def gradient_of_blocks(
    layout: Layout,
    functional: Functional,
    at: list[Array],
    ao: AoBlocks,
    factors: FloatTVG,
    density: FloatNN,
) -> FloatA3:
    """The portable form of the codelet "xc_gradient": a reverse pass, one block after another."""
    local, owner, high, low, exponents, coefficients = at
    order = np.argsort(ao_rows(layout))  # the AO of every row of `stacked_ao_values`

    def add(total: FloatA3, block: tuple[Array, ...]) -> tuple[FloatA3, None]:
        local, owner, values, aos, count, factors = block

        def moved(nuclei: FloatA3) -> FloatDNG:
            centres = Pair(nuclei, low)
            parts = split_shells(layout, centres, exponents, coefficients=coefficients)
            at_owner = centres.at(owner)
            return stacked_ao_values(
                layout, parts, local, owner=at_owner, gradient=functional.needs_gradient
            )

        moments = partial(moments_of, functional, density[aos][:, aos])
        _, pull_moments = jax.vjp(moments, that_count(values, count))
        by_value = that_count(pull_moments(factors)[0], count)
        # Every AO is looked up: a scatter would be slow.  Those of a point's owner move with it.
        apart = jnp.asarray(layout.ao_atom[order])[:, None] != owner
        by_value = jnp.where(apart, by_value[:, jnp.argsort(aos)[order]], 0.0)
        _, pull_ao = jax.vjp(moved, high)
        return total + pull_ao(by_value)[0], None

    rows = (local, owner, ao.values, *map(jnp.asarray, ao.listed()), factors)
    return lax.scan(add, jnp.zeros_like(high), rows)[0]

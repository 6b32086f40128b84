"""The derivative of VV10's energy by the nuclei, with the response of its own grid.

As for the semilocal energy, a point is fixed to its nucleus (`exchange_correlation`).  Besides AOs
and weights, the distances between points of different nuclei change (O. A. Vydrov, T. Van Voorhis,
J. Chem. Phys. 133, 244103 (2010), eqs. 25 and 26, doi:10.1063/1.3521275).
"""

import jax.numpy as jnp
from jax import Array

from pyscf_ipu.gradient.points.exchange_correlation import gradient_of_weights, points_gradient
from pyscf_ipu.grid.ao_blocks import AoBlocks
from pyscf_ipu.grid.blocks import Places, grid_blocks
from pyscf_ipu.grid.nonlocal_correlation import correlation_of, pair_gradient
from pyscf_ipu.grid.xc_matrix import GridProducts
from pyscf_ipu.numerics.arrays import FloatA3, FloatNN, FloatTG, FloatTVG
from pyscf_ipu.numerics.columns import Columns
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.xc.semilocal.functionals import Functional


def nonlocal_correlation_gradient(
    atoms: Atoms, functional: Functional, density: FloatNN | Columns, products: GridProducts
) -> FloatA3:
    """Derivative of VV10's energy by the nuclei; see `exchange_correlation_gradient`."""
    on_grid, moved = atoms.on_grid("vv10"), functional.of_gradient
    if functional.vv10 is None or on_grid is None:
        return jnp.zeros_like(atoms.nuclei.hi)
    atoms, grid = on_grid, grid_blocks(on_grid, moved)
    assert grid is not None
    nuclei = atoms.nuclei.value()
    of = correlation_of(functional.vv10, grid, nuclei, density=density, products=products)

    def at_fixed_weights(
        ao: AoBlocks, weights: FloatTG, factors: FloatTVG, *places: Array
    ) -> tuple[tuple[()], FloatA3]:
        del weights
        return (), points_gradient(
            atoms, moved, ao, places=Places(*places), factors=factors, density=density
        )

    _, total = grid.each(at_fixed_weights, of.factors, *map(jnp.asarray, grid.places))
    owners = jnp.asarray(grid.places.owner).ravel()
    between = jnp.zeros_like(total).at[owners].add(pair_gradient(of.points, of.pairs))
    return total + between + gradient_of_weights(atoms, of.by_weight)

"""The semilocal exchange-correlation energy and its matrices, of two spins.

As `pyscf_ipu.grid.xc_matrix` does it for closed shells, whose products serve here, too: the density
of one spin is half that of closed shells of its orbitals (J. A. Pople, P. M. W. Gill, N. C. Handy,
Int. J. Quantum Chem. 56, 303 (1995), doi:10.1002/qua.560560414).  The derivative of the matrices
along a change of the densities is that of the same steps.
"""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float, PyTree

from pyscf_ipu.grid.ao_blocks import AoBlocks
from pyscf_ipu.grid.blocks import Grid
from pyscf_ipu.grid.xc_matrix import GridProducts
from pyscf_ipu.numerics.arrays import FloatG, FloatTG, Scalar
from pyscf_ipu.numerics.two_words import Pair, two_product
from pyscf_ipu.tiles import tile_map, tile_put_sharded, tile_total, vertex_total
from pyscf_ipu.xc.semilocal.functionals import Functional, energy_and_slopes

Float2NN = Float[Array, "2 N N"]
Float2VG = Float[Array, "2 V G"]


def exchange_correlation_of_spins(
    functional: Functional, grid: Grid | None, density: Float2NN, products: GridProducts
) -> tuple[Pair, Float2NN]:
    """Semilocal energy (Hartree, a Pair) and its derivatives by the densities of both spins.

    Args:
        functional: for exchange and correlation.
        grid: the points; None: there is nothing to compute.
        density: of either spin, as closed shells of its orbitals.
        products: how a machine computes densities and matrices.
    """
    if grid is None:
        zero = jnp.zeros((), density.dtype)
        return Pair(zero, zero), jnp.zeros_like(density)

    prepared = [products.prepared(one, grid.weights.dtype, False) for one in density]

    def blocks(ao: AoBlocks, weights: FloatTG) -> tuple[tuple[Array, Array], Float2NN]:
        arrays = _moments(functional, ao, prepared, products=products), weights
        points = [tile_put_sharded(x, range(x.shape[0])) for x in arrays]
        vertex = partial(functional_of_spins_vertex, functional)
        hi, lo, factors = tile_map(
            vertex, *points, name="xc_functional_of_spins", together=True, shared=True
        )
        matrices = _matrices(ao, factors.array, density.dtype, products=products)
        return (hi.array, lo.array), matrices

    energies, matrix = grid.each(blocks)
    return tile_total(Pair(*energies)).astype(density.dtype), matrix


def response_of_spins(
    functional: Functional, grid: Grid | None, density: Float2NN, products: GridProducts
) -> Callable[[Float2NN], Float2NN]:
    """The matrices' derivative at both spins' densities: changes of these -> of the matrices.

    For closed shells, and a change that is the same for both spins, it is what
    `exchange_correlation_response` gives.  Arguments are those of `exchange_correlation_of_spins`.
    """
    if grid is None:
        return jnp.zeros_like
    dtype, nothing = grid.weights.dtype, jnp.zeros((), density.dtype)
    prepared = [products.prepared(one, dtype, False) for one in density]

    def at_density(ao: AoBlocks, weights: FloatTG) -> tuple[tuple[Array], Scalar]:
        del weights
        return (_moments(functional, ao, prepared, products=products),), nothing

    (known,), _ = grid.each(at_density)

    def response(change: Float2NN) -> Float2NN:
        moved = [products.prepared(one, dtype, True) for one in change]

        def along(ao: AoBlocks, weights: FloatTG, known: Array) -> tuple[tuple[()], Float2NN]:
            moments = _moments(functional, ao, moved, products=products)
            arrays = [tile_put_sharded(x, range(len(x))) for x in (known, moments, weights)]
            vertex, name = partial(response_of_spins_vertex, functional), "xc_response_of_spins"
            factors = tile_map(vertex, *arrays, name=name, together=True, shared=True)
            return (), _matrices(ao, factors.array, change.dtype, products=products)

        return grid.each(along, known)[1]

    return response


def _moments(
    functional: Functional, ao: AoBlocks, prepared: Sequence[PyTree], products: GridProducts
) -> Float[Array, "T 2 V G"]:
    """Make the moments of both spins on all points."""
    of_spins = [products.moments(ao, one, functional.needs_tau) for one in prepared]
    return jnp.stack(of_spins, axis=1)


def _matrices(
    ao: AoBlocks, factors: Float[Array, "T 2 V G"], dtype: DTypeLike, products: GridProducts
) -> Float2NN:
    """Make the matrices of both spins from the factors of their moments."""
    return jnp.stack([products.matrix(ao, factors[:, s], dtype) for s in (0, 1)])


def functional_of_spins_vertex(
    functional: Functional, moments: Float2VG, weights: FloatG
) -> tuple[Scalar, Scalar, Float2VG]:
    """One block: its energy in two words, and the factors of `GridProducts.matrix` of each spin."""
    e, factors = _factors(functional, moments, weights)
    energy = vertex_total(two_product(e, weights))
    return energy.hi, energy.lo, factors


def response_of_spins_vertex(
    functional: Functional, moments: Float2VG, change: Float2VG, weights: FloatG
) -> Float2VG:
    """One block: the change of the factors along that of the moments."""

    def factors(moments: Float2VG) -> Float2VG:
        return _factors(functional, moments, weights)[1]

    return jax.jvp(factors, (moments,), (change,))[1]


def _factors(functional: Functional, moments: Float2VG, weights: FloatG) -> tuple[FloatG, Float2VG]:
    """The energy per volume, Hartree/Bohr^3, and the factors of the matrices of each spin."""
    e, (alpha, beta) = energy_and_slopes(functional, 0.5 * moments)
    # The products add the matrix to its transpose, which halves what is symmetric already.
    planes = moments.shape[1] - functional.needs_tau
    halves = np.array([0.5, *[1.0] * (planes - 1), *[0.25] * functional.needs_tau])
    share = jnp.asarray(halves[:, None], weights.dtype) * weights
    return e, jnp.stack([share * alpha, share * beta])

"""The rotation of orbitals that lowers the energy most: a second-order step, or an instability.

Near orbitals whose occupied and empty blocks of the Fock matrix are diagonal, with e_i and e_a on
the diagonals, a rotation x of occupied into empty ones changes the energy by 4 g x + 2 x (A + B) x:
g_ai = F_ai, (A + B) x = (e_a - e_i) x_ai + (C^T dF C)_ai, dF the response of the Fock matrix to
dD = 2 C (x + x^T) C^T (R. Bauernschmitt, R. Ahlrichs, J. Chem. Phys. 104, 9047 (1996),
doi:10.1063/1.471637).  Where g is zero, a negative eigenvalue of A + B is an instability: there the
SCF stands on a saddle (R. Seeger, J. A. Pople, J. Chem. Phys. 66, 3045 (1977),
doi:10.1063/1.434318).

In open shells x is two matrices, of alpha and of beta electrons, and so is everything else; dD of
each is that of closed shells of its orbitals, so both kinds of shells have the same equations.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float

from pyscf_ipu.numerics.arrays import Count, Flag, FloatSN, FloatSNN, Scalar
from pyscf_ipu.numerics.products import product
from pyscf_ipu.scf.orbitals import length

Response = Callable[[FloatSNN], FloatSNN]
"""Change of the density matrix -> change of the Fock matrix; or those of both spins."""
FloatMSNN = Float[Array, "m *spin N N"]

PRODUCTS = 12
"""Response products at most; 4 to 12 are needed."""
RESIDUAL_HARTREE = 0.015
"""Error of an eigenvector that is good enough if its eigenvalue is positive by more than that."""
UNSTABLE_HARTREE = -3e-4
"""An eigenvalue below this is a way down.  Rounding makes a zero one this small at the most; it is
zero where a density could as well point elsewhere, as that of two torn p orbitals."""
SMALLEST_GAP = 0.05
"""Hartree; keeps the preconditioner from dividing by nothing."""
FAR_ABOVE = 1e3
"""Hartree; where what is not there stands in an eigenproblem."""
SMALLEST_SHARE = 1e-3
"""A step is not longer than the inverse of this; the trust region shortens it anyway."""


class RotationField(NamedTuple):
    """Orbitals, occupied ones first, and what the energy does when they rotate."""

    orbitals: FloatSNN  # columns in the AO basis
    levels: FloatSN  # diagonal of the Fock matrix between them
    gradient: FloatSNN  # g: F between empty orbitals (rows) and occupied ones (columns), else zero
    allowed: Bool[Array, "*spin N N"]  # the elements that belong to a rotation
    stationary: Flag  # whether g counts as zero

    @property
    def gaps(self) -> FloatSNN:
        """e_a - e_i in Hartree; 1 where the element belongs to no rotation."""
        apart = self.levels[..., :, None] - self.levels[..., None, :]
        return jnp.where(self.allowed, apart, 1.0)

    def hessian(self, response: Response, x: FloatSNN) -> FloatSNN:
        """(A + B) x in Hartree, with the response at this field."""
        half = product(product(self.orbitals, x), self.orbitals.mT)
        change = response(2.0 * (half + half.mT))
        of_orbitals = product(product(self.orbitals.mT, change), self.orbitals)
        return jnp.where(self.allowed, self.gaps * x + of_orbitals, 0.0)


class Rotation(NamedTuple):
    """The lowest rotation, as far as the search went."""

    eigenvalue: Scalar  # lowest of A + B (augmented by g, unless stationary), Hartree
    vector: FloatSNN  # the step; of length 1 at a stationary field
    error: Scalar  # length of what is left of the eigenproblem; the eigenvalue is not further off
    products: Count

    @property
    def is_of_minimum(self) -> Flag:
        """Whether no rotation leads down from a stationary field."""
        sure = (self.eigenvalue > self.error) | (self.error < abs(UNSTABLE_HARTREE))
        return (self.eigenvalue > UNSTABLE_HARTREE) & sure


class _Search(NamedTuple):
    rotations: FloatMSNN  # orthonormal; zero beyond those of the search so far
    images: FloatMSNN  # A + B times these
    rotation: Rotation
    following: FloatSNN


def lowest_rotation(response: Response, field: RotationField) -> Rotation:
    """The lowest eigenvector of A + B, as far as it takes to know the eigenvalue's sign.

    Where the field is not stationary, it is the lowest one of the augmented matrix
    [[0, g^T], [g, A + B]], which gives a step downhill on any surface (B. H. Lengsfield, J. Chem.
    Phys. 73, 382 (1980), doi:10.1063/1.439885).  The eigenvectors are found as by E. R. Davidson,
    J. Comput. Phys. 17, 87 (1975), doi:10.1016/0021-9991(75)90065-0.  The search begins with a
    mixture of all rotations, so that it leaves no symmetry out.

    Args:
        response: of the Fock matrix at this field.
        field: the orbitals.
    """
    gradient, stationary, gaps = field.gradient, field.stationary, field.gaps
    shape, dtype = gradient.shape, gradient.dtype
    slope = length(gradient)

    def unfinished(search: _Search) -> Flag:
        value, error = search.rotation.eigenvalue, search.rotation.error
        stable = (value > error) & (error < RESIDUAL_HARTREE)
        unstable = (value < 2.0 * UNSTABLE_HARTREE) & (error < jnp.abs(value))
        exact = error < 0.1 * abs(UNSTABLE_HARTREE)
        enough = jnp.where(stationary, stable | unstable | exact, error < 0.1 * slope)
        return (search.rotation.products < PRODUCTS) & ~enough

    def step(search: _Search) -> _Search:
        place = search.rotation.products
        x = _orthogonal(search.following, search.rotations)
        rotations = search.rotations.at[place].set(x)
        images = search.images.at[place].set(field.hessian(response, x))
        value, share, weights = _lowest(
            rotations, images, gradient, stationary=stationary, last=place
        )
        x = jnp.tensordot(weights, rotations, 1, precision="highest")
        image = jnp.tensordot(weights, images, 1, precision="highest")
        residual = image + share * gradient - value * x
        away = gaps - value
        following = residual / jnp.where(jnp.abs(away) < SMALLEST_GAP, SMALLEST_GAP, away)
        scale = 1.0 / jnp.where(stationary, 1.0, jnp.maximum(share, SMALLEST_SHARE))
        rotation = Rotation(value, scale * x, scale * length(residual), products=place + 1)
        return _Search(rotations, images, rotation, following=following)

    downhill = gradient / jnp.maximum(gaps, SMALLEST_GAP)
    mixture = jnp.asarray(_mixture(shape), dtype) / jnp.maximum(gaps, SMALLEST_GAP) ** 2
    mixture = jnp.where(field.allowed, mixture, 0.0)
    some = 0.1 * length(downhill) / jnp.maximum(length(mixture), SMALLEST_GAP)
    first = jnp.where(stationary, mixture, downhill - some * mixture)
    none, never = jnp.zeros((PRODUCTS, *shape), dtype), jnp.full((), jnp.inf, dtype)
    nothing = Rotation(never, jnp.zeros(shape, dtype), never, products=jnp.zeros((), jnp.int32))
    return lax.while_loop(unfinished, step, _Search(none, none, nothing, following=first)).rotation


def _lowest(
    rotations: FloatMSNN,
    images: FloatMSNN,
    gradient: FloatSNN,
    stationary: Flag,
    last: Count,
) -> tuple[Scalar, Scalar, Float[Array, " m"]]:
    """The lowest eigenvalue in the space of the rotations, and the eigenvector.

    The eigenvector is the share of "no rotation", and the weights of the rotations.
    """
    dtype = gradient.dtype
    absent = jnp.arange(PRODUCTS, dtype=jnp.int32) > last
    inner = product(rotations.reshape(PRODUCTS, -1), images.reshape(PRODUCTS, -1).T)
    inner = 0.5 * (inner + inner.T) + jnp.diag(jnp.where(absent, FAR_ABOVE, 0.0).astype(dtype))
    edge = jnp.tensordot(rotations, gradient, gradient.ndim, precision="highest")
    edge = jnp.where(stationary, 0.0, edge)[None]
    corner = jnp.where(stationary, FAR_ABOVE, 0.0).astype(dtype)[None, None]
    values, vectors = jnp.linalg.eigh(jnp.block([[corner, edge], [edge.T, inner]]))
    chosen = vectors[:, 0] * jnp.where(vectors[0, 0] < 0, -1.0, 1.0)
    return values[0], chosen[0], chosen[1:]


def _orthogonal(x: FloatSNN, others: FloatMSNN) -> FloatSNN:
    """Make x orthogonal to the others, of length 1; twice, since rounding leaves some at first."""
    for _ in range(2):
        shares = jnp.tensordot(others, x, x.ndim, precision="highest")
        x = x - jnp.tensordot(shares, others, 1, precision="highest")
        x = x / jnp.maximum(length(x), jnp.finfo(x.dtype).tiny)
    return x


def _mixture(shape: tuple[int, ...]) -> Float[np.ndarray, "*spin N N"]:
    """Weights without any symmetry, that of the spins included; always the same."""
    random = np.random.default_rng(0)
    return random.uniform(0.5, 1.5, shape) * random.choice((-1.0, 1.0), shape)

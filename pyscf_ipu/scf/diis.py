"""Direct inversion in the iterative subspace, in a form that stays well conditioned in float32.

P. Pulay, J. Comput. Chem. 3, 556 (1982), doi:10.1002/jcc.540030413.  Errors shrink by orders of
magnitude from one entry to the next, so their Gram matrix is hopeless in float32.  Normalise each
error to one first: with c_i = w_i/|e_i| the minimum of |sum c_i e_i|^2 under sum c_i = 1 is
w proportional to B^-1 u, where B holds the cosines between errors and u_i = 1/|e_i|.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from pyscf_ipu.numerics.arrays import Count, Flag, FloatSNN
from pyscf_ipu.scf.orbitals import length


class Diis(NamedTuple):
    """The last m Fock matrices, their normalised errors, and the norms (0 = empty)."""

    fock: Float[Array, "m *spin N N"]
    error: Float[Array, "m elements"]
    norm: Float[Array, " m"]  # negative where no later cycle extrapolates from the entry


def diis_start(depth: int, n: int, dtype: DTypeLike, spins: int = 0) -> Diis:
    """No entries yet: of one N x N matrix each, or of one for each of the `spins`."""
    matrices = (spins, n, n) if spins else (n, n)
    shapes = (depth, *matrices), (depth, math.prod(matrices)), (depth,)
    return Diis(*(jnp.zeros(s, dtype) for s in shapes))


def latest(history: Diis, cycle: Count, otherwise: FloatSNN) -> FloatSNN:
    """The Fock matrix that was recorded in the cycle before `cycle`; `otherwise` if none was."""
    place = (cycle - 1) % history.norm.shape[0]
    return jnp.where(history.norm[place] != 0, history.fock[place], otherwise)


def renewed(
    history: Diis, change: Float[Array, "m *spin N N"], densities: Float[Array, "m *spin N N"]
) -> Diis:
    """The entries with other Fock matrices, and as errors their commutators with densities."""
    fock = history.fock + change
    both = jnp.matmul(fock, densities, precision="highest")
    flat = (both - both.mT).reshape(history.error.shape)
    size = jnp.sqrt(jnp.sum(flat * flat, axis=1)) + jnp.finfo(flat.dtype).tiny
    return Diis(fock, flat / size[:, None], jnp.sign(history.norm) * size)


def diis_step(
    history: Diis, cycle: Count, fock: FloatSNN, error: FloatSNN, lasting: Flag
) -> tuple[Diis, FloatSNN]:
    """Record (fock, error) in place of the oldest entry and extrapolate: (history, Fock matrix).

    Later cycles extrapolate from the entry only if it is `lasting`.
    """
    depth = history.norm.shape[0]
    place = cycle % depth
    flat = error.ravel()
    size = length(flat)
    tiny = jnp.finfo(flat.dtype).tiny
    history = Diis(
        history.fock.at[place].set(fock),
        history.error.at[place].set(flat / (size + tiny)),
        history.norm.at[place].set(size + tiny),
    )
    used = history.norm > 0
    cosines = jnp.matmul(history.error, history.error.T, precision="highest")
    ridge = 50.0 * float(jnp.finfo(flat.dtype).eps)
    both = used[:, None] & used[None]
    eye = jnp.eye(depth, dtype=flat.dtype)
    matrix = jnp.where(both, cosines, eye) + ridge * eye
    smallest = jnp.min(jnp.where(used, history.norm, jnp.inf))
    inverse = jnp.where(used, smallest / jnp.where(used, history.norm, 1.0), 0.0)
    weights = jnp.linalg.solve(matrix, inverse) * inverse
    weights = weights / jnp.sum(weights)
    norm = jnp.where(lasting, size + tiny, -(size + tiny))
    kept = history._replace(norm=history.norm.at[place].set(norm))
    return kept, jnp.tensordot(weights, history.fock, 1, precision="highest")

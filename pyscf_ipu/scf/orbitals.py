"""Orthonormal bases, orbitals, their levels, and density matrices.

The two spins of an open shell are two matrices, each that of closed shells of its orbitals: so what
is written for closed shells holds for both of them (`numerics.arrays.by_spin`).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool

from pyscf_ipu.numerics.arrays import (
    Count,
    Flag,
    FloatN,
    FloatNN,
    Floats,
    FloatSNN,
    Scalar,
)
from pyscf_ipu.numerics.products import Products, one_by_one, product
from pyscf_ipu.numerics.two_words import Pair, WideFactor, wide_factor, wide_sum, wide_terms
from pyscf_ipu.scf.algebra import Eigh, library_eigh

DROPPED_SHIFT = 100.0
"""Level in Hartree of what is left out: above all else, padded AOs (`PADDING_SHIFT`) included."""

NOTHING = 1e-6
"""Sum of an orbital's squared coefficients below which it was left out of the basis; where it is
normalised, this sum is the inverse of an eigenvalue of the overlap at least."""


class Orthonormal(NamedTuple):
    """S^(-1/2), S^(1/2), and S itself; without the eigenvectors of S that are left out."""

    inverse: FloatNN
    root: FloatNN
    overlap: Pair
    smallest: Scalar
    """Smallest eigenvalue of S.  Padded AOs have 1, and real ones have 1 on average."""
    dropped: Count
    """Number of eigenvectors that are left out."""
    factors: tuple[WideFactor, WideFactor]
    """The inverse transposed and the inverse, as left and right factor of wide products."""
    lift: FloatNN | None = None
    """Raises them, Hartree; None where nothing can be left out."""

    @jax.named_scope("orthonormalisation")
    def matrix(self, fock: FloatSNN, products: Products = one_by_one) -> FloatSNN:
        """A Fock matrix in the orthonormal basis, or those of both spins."""
        if fock.ndim == 3:
            return jnp.stack([self.matrix(one, products) for one in fock])
        if fock.dtype == jnp.float64:
            inside = similar(fock, self.inverse)
        else:
            inside = wide_similar(fock, self.factors, products)
        return inside if self.lift is None else inside + self.lift


def orthonormal(overlap: Pair, eigh: Eigh = library_eigh, drop_below: float = 0.0) -> Orthonormal:
    """Loewdin's symmetric orthonormalisation, which disturbs the AOs least.

    Args:
        overlap: of the AOs, 1 on the diagonal of padded ones.
        eigh: eigenvalues and vectors of a matrix; see Machine.
        drop_below: eigenvectors with an eigenvalue up to this are left out, as in canonical
            orthogonalisation (P.-O. Loewdin, Adv. Quantum Chem. 5, 185 (1970),
            doi:10.1016/S0065-3276(08)60339-1): inverse and root are 0 on them.
    """
    with jax.named_scope("eigensolver"):
        start = jnp.eye(overlap.hi.shape[0], dtype=overlap.dtype)
        values, vectors = eigh(overlap.hi, start, jnp.zeros((), overlap.dtype))
    return _loewdin(overlap, values, vectors, drop_below=drop_below)


@jax.named_scope("orthonormalisation")
def _loewdin(overlap: Pair, values: FloatN, vectors: FloatNN, drop_below: float) -> Orthonormal:
    """S^(-1/2) and S^(1/2) from the eigenvalues and eigenvectors of S."""
    floor = float(jnp.finfo(overlap.dtype).eps) * overlap.hi.shape[0]
    root = jnp.sqrt(jnp.maximum(values, floor))
    smallest = jnp.min(values)
    if not drop_below:
        inverse = product(vectors / root, vectors.T)
        none = jnp.zeros((), jnp.int32)
        whole_root = product(vectors * root, vectors.T)
        return Orthonormal(
            inverse, whole_root, overlap, smallest=smallest, dropped=none, factors=_factors(inverse)
        )
    out = values <= drop_below
    inverse = product(vectors / jnp.where(out, jnp.inf, root), vectors.T)
    kept_root = product(vectors * jnp.where(out, 0.0, root), vectors.T)
    lift = product(vectors * jnp.where(out, DROPPED_SHIFT, 0.0), vectors.T)
    dropped = jnp.sum(out, dtype=jnp.int32)
    return Orthonormal(
        inverse,
        kept_root,
        overlap,
        smallest=smallest,
        dropped=dropped,
        factors=_factors(inverse),
        lift=lift,
    )


def _factors(x: FloatNN) -> tuple[WideFactor, WideFactor]:
    """X^T as a left factor, and X as a right one."""
    right = wide_factor(x, 0)
    return right.T, right


@jax.named_scope("orthonormalisation")
def reorthonormalise(orbitals: FloatNN, overlap: Pair, products: Products = one_by_one) -> FloatNN:
    """Orbitals C with C^T S C = 1 again, by Newton-Schulz steps: C <- C (3 - C^T S C) / 2.

    The energy is variational in the orbitals only if the density is idempotent: without this
    step a float32 energy is wrong to first order in the rounding of the orbitals.  In float64 they
    are so close that one step is enough: nearly dependent AOs are off by 1e-9.
    """
    eye = jnp.eye(orbitals.shape[1], dtype=orbitals.dtype)
    for _ in range(1 if orbitals.dtype == jnp.float64 else 3):
        hi, lo = products((orbitals.T, overlap.hi), (orbitals.T, overlap.lo))
        hi, lo = products((hi, orbitals), (lo, orbitals))
        orbitals = product(orbitals, 1.5 * eye - 0.5 * (hi + lo))
    return orbitals


@jax.named_scope("occupation")
def density_of(orbitals: FloatNN, n_occupied: Count) -> FloatNN:
    """Closed-shell density matrix: 2 C C^T over the lowest `n_occupied` orbitals."""
    chosen = occupied(orbitals, n_occupied)
    return 2.0 * product(chosen, chosen.T)


def occupied(orbitals: FloatNN, n_occupied: Count) -> FloatNN:
    """The orbitals with zeros for all but the lowest `n_occupied`."""
    lowest = jnp.arange(orbitals.shape[1], dtype=jnp.int32) < n_occupied
    return jnp.where(lowest, orbitals, 0.0)


def fermi_dirac(levels: FloatN, n_occupied: Count, smearing: Scalar) -> FloatN:
    """Shares of the orbitals that `n_occupied` electrons fill at a temperature: kT in Hartree.

    N. D. Mermin, Phys. Rev. 137, A1441 (1965), doi:10.1103/PhysRev.137.A1441.
    """

    def shares(fermi: Scalar) -> FloatN:
        return jax.nn.sigmoid((fermi - levels) / smearing)

    electrons, far = n_occupied.astype(levels.dtype), 50.0 * smearing

    def halved(_: Count, ends: FloatN) -> FloatN:
        fermi = jnp.mean(ends)
        return ends.at[jnp.where(jnp.sum(shares(fermi)) < electrons, 0, 1)].set(fermi)

    ends = jnp.stack([jnp.min(levels) - far, jnp.max(levels) + far])
    return shares(jnp.mean(jax.lax.fori_loop(0, 60, halved, ends)))


def purified(density: FloatNN, overlap: FloatNN) -> FloatNN:
    """The idempotent density next to one that is nearly so: D S D = 2 D.

    R. McWeeny, Rev. Mod. Phys. 32, 335 (1960), doi:10.1103/RevModPhys.32.335.
    """
    half = 0.5 * density
    for _ in range(3):
        square = product(product(half, overlap), half)
        half = 3.0 * square - 2.0 * product(product(square, overlap), half)
    return 2.0 * half


def are_lowest(levels: FloatN, n_occupied: Count) -> Flag:
    """Whether all occupied orbitals lie below all empty ones."""
    occupied = jnp.arange(levels.shape[0], dtype=jnp.int32) < n_occupied
    highest = jnp.max(jnp.where(occupied, levels, -jnp.inf))
    return highest <= jnp.min(jnp.where(occupied, jnp.inf, levels))


def level_error(plain: FloatN, levels: FloatN, n_occupied: Count) -> Scalar:
    """Largest difference of the levels up to the first empty one, Hartree."""
    counts = jnp.arange(levels.shape[0], dtype=jnp.int32) <= n_occupied
    return jnp.max(jnp.where(counts, jnp.abs(plain - levels), 0.0))


def frontier_gap(levels: FloatN, n_occupied: Count) -> Scalar:
    """Between the highest occupied level and the next; infinite without electrons."""
    gap = jnp.take(levels, n_occupied, mode="clip") - levels[n_occupied - 1]
    return jnp.where(n_occupied > 0, gap, jnp.inf)


def is_padding(squares: FloatNN, padded: Bool[Array, " N"]) -> Bool[Array, " N"]:
    """Which orbitals are padded AOs, from the squares of all coefficients."""
    return jnp.where(padded[:, None], squares, 0.0).sum(0) > 0.5


def left_out(squares: FloatNN) -> Bool[Array, " N"]:
    """Which orbitals are zero because the basis leaves nearly dependent AOs out."""
    return squares.sum(0) < NOTHING


def length(x: Floats) -> Scalar:
    """The root of the sum of squares."""
    return jnp.sqrt(jnp.sum(x * x))


@jax.named_scope("diis")
def commutator_of(fock: FloatSNN, density: FloatSNN) -> FloatSNN:
    """[F, D] in an orthonormal basis."""
    both = product(fock, density)
    return both - both.mT


def similar(matrix: FloatSNN, x: FloatNN) -> FloatSNN:
    """X^T M X."""
    return product(product(x.T, matrix), x)


def wide_similar(
    matrix: FloatNN, x: tuple[WideFactor, WideFactor], products: Products = one_by_one
) -> FloatNN:
    """X^T M X, rounded once; of X^T and X as left and right factor.

    X of nearly dependent AOs has elements so large that most of X^T M X cancels.
    """
    left, right = x
    half = wide_sum(*products(*wide_terms(wide_factor(matrix, 1), right)))
    terms = wide_terms(left, wide_factor(half.hi, 0))
    *of_hi, of_lo = products(*terms, (left.whole, half.lo))
    whole = wide_sum(*of_hi)
    return whole.hi + (whole.lo + of_lo)

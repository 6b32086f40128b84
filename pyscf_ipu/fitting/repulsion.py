"""Coulomb and exchange matrices from a fit, as matrix products.

The Coulomb field of the reference, the free atoms, is known in two words; of a density only the
difference to it goes through the rounded B.  So the error of J, which would be the largest of a
float32 energy, shrinks with that difference.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from pyscf_ipu.codelets import codelet
from pyscf_ipu.fitting.neighbours import IntN, inverse, reordered
from pyscf_ipu.fitting.operators import FittedProducts, FloatFP, Operators
from pyscf_ipu.integrals.supermatrix import pack_density, packed_indices, unpack
from pyscf_ipu.numerics.arrays import Count, Flag, FloatNN, FloatP, FloatSP, mean_of_spins
from pyscf_ipu.numerics.columns import Columns, columns_of_change, columns_of_density
from pyscf_ipu.numerics.two_words import Pair, add
from pyscf_ipu.tiles import tile_dot

TOGETHER = 16
"""Auxiliary functions whose B_P are square matrices at once, in the portable form."""


class Fitted(NamedTuple):
    """The reference density [N, N] and the operators."""

    reference: FloatNN
    operators: Operators

    def repulsion(self, d: FloatP, rough: Flag | None = None) -> tuple[FloatP, Pair]:
        """The two-electron matrix and its energy, from a packed density; see `AffineRepulsion`."""
        change = d - pack_density(self.reference)
        field, exchange = self._both(d, change, columns_of_density, rough=rough)
        matrix, energy = self._with_reference(change, *field)
        return _with_exchange(d, matrix, energy, exchange=exchange)

    def repulsion_of_spins(self, d: FloatSP, rough: Flag | None = None) -> tuple[FloatSP, Pair]:
        """The matrices of both spins and the energy, from the densities of both, [2, P].

        Each is that of closed shells of the spin's orbitals: so exchange is the same, and its
        energy half of the sum.
        """
        change = mean_of_spins(d) - pack_density(self.reference)
        field, exchange = self._both_spins(d, change, columns_of_density, rough=rough)
        matrix, energy = self._with_reference(change, *field)
        if exchange is None:
            return jnp.stack([matrix, matrix]), energy
        for one, part in zip(d, exchange, strict=True):
            energy = add(energy, tile_dot(0.25 * one, part))
        return matrix + exchange, energy

    def repulsion_of_changes(self, d: FloatSP) -> tuple[FloatSP, Pair]:
        """The matrices of both spins from changes of both densities, and the energy of J."""
        (matrix, energy), exchange = self._both_spins(
            d, mean_of_spins(d), columns_of_change, rough=None
        )
        return jnp.stack([matrix, matrix]) + (0.0 if exchange is None else exchange), energy

    def _both_spins(
        self,
        d: FloatSP,
        change: FloatP,
        columns_of: Callable[[FloatNN], Columns],
        rough: Flag | None,
    ) -> tuple[tuple[FloatP, Pair], FloatSP | None]:
        """J of a change of the density of all electrons, and -1/2 K of either spin's, if any."""
        both = partial(self._both, change=change, columns_of=columns_of, rough=rough)
        field, alpha = both(d[0])
        if alpha is None:
            return field, None
        _, beta = both(d[1], coulomb=False)
        assert beta is not None
        return field, jnp.stack([alpha, beta])

    def _with_reference(self, change: FloatP, matrix: FloatP, energy: Pair) -> tuple[FloatP, Pair]:
        """J and its energy of the whole density, from those of its change."""
        known = self.operators
        of_reference = add(known.energy, tile_dot(change, known.field))
        return known.field.hi + (known.field.lo + matrix), add(of_reference, energy)

    def repulsion_of_change(self, d: FloatP) -> tuple[FloatP, Pair]:
        """The repulsion of a change of the density alone."""
        (matrix, energy), exchange = self._both(d, d, columns_of_change, rough=None)
        return _with_exchange(d, matrix, energy, exchange=exchange)

    @property
    def n(self) -> int:
        return self.reference.shape[0]

    def unpacked(self, d: FloatP) -> FloatNN:
        """The density matrix of `pack_density`."""
        full = unpack(d, self.n)
        return 0.5 * (full + jnp.diag(jnp.diagonal(full)))

    def _both(
        self,
        d: FloatP,
        change: FloatP,
        columns_of: Callable[[FloatNN], Columns],
        rough: Flag | None,
        coulomb: bool = True,
    ) -> tuple[tuple[FloatP, Pair], FloatP | None]:
        """J of a change of the density and its energy, and -1/2 K of the density, if any.

        Without `coulomb` J is zero.
        """
        known = self.operators
        place = inverse(known.order)
        change = reordered(change, known.order)
        if not known.exchange:
            nothing = Columns(jnp.zeros((self.n, 1), d.dtype), jnp.zeros(1, d.dtype), _none())
            parts = coulomb_exchange(known.coulomb, change, nothing, rough=rough, coulomb=coulomb)
            return parts.field(place), None
        columns = columns_of(self.unpacked(d))
        if known.order is not None:
            columns = columns._replace(vectors=columns.vectors[known.order])
        together = any(part.products is None for part in known.exchange)
        first = columns if together else columns._replace(count=_none())
        parts = coulomb_exchange(known.coulomb, change, first, rough=rough, coulomb=coulomb)
        total = jnp.zeros_like(d)
        for part in known.exchange:
            one = parts
            if part.products is not None:
                products = part.products
                one = coulomb_exchange(products, change, columns, rough=rough, coulomb=False)
            total = total - 0.5 * part.fraction * one.exchange
        return parts.field(place), reordered(total, place)


class Matrices(NamedTuple):
    """What one pass over B gives, in its order of AOs."""

    charge: Float[Array, " F"]
    coulomb: FloatP
    exchange: FloatP

    def field(self, place: IntN | None) -> tuple[FloatP, Pair]:
        """J, each AO at its place in that order (None: it is there), and its energy."""
        return reordered(self.coulomb, place), tile_dot(0.5 * self.charge, self.charge)


def coulomb_exchange(
    products: FittedProducts,
    density: FloatP,
    columns: Columns,
    rough: Flag | None = None,
    coulomb: bool = True,
) -> Matrices:
    """J of a packed density and K = sum_P B_P D B_P of the columns of another.

    Args:
        products: B.
        density: off-diagonal elements doubled.
        columns: of a density; with none of them K is zero.
        rough: whether a K in float32 will do, which is native in half the time; None: it will not.
        coulomb: without it J is zero.
    """

    def portable(*operands: Array) -> Matrices:
        b, _, _, density, vectors, signs, count, _ = operands  # what is left out of B is zero
        charge = jnp.matmul(b, density, precision="highest")
        charge = charge if coulomb else jnp.zeros_like(charge)
        exchange = _exchange(b, Columns(vectors, signs, count).counted(), signs)
        return Matrices(charge, jnp.matmul(charge, b, precision="highest"), exchange)

    flag = np.array([coulomb], np.int32)
    shape = (len(products.b),), density.shape, density.shape
    in_float32 = jnp.zeros((), bool) if rough is None else rough
    args = *products, density, *columns, in_float32
    return Matrices(*codelet("fitting_repulsion", portable, *args, shape=shape, coulomb=flag))


def _exchange(b: FloatFP, vectors: Float[Array, "N C"], signs: Float[Array, " C"]) -> FloatP:
    """K over AO pairs, TOGETHER functions at a time."""
    n = vectors.shape[0]
    blocks = jnp.pad(b, ((0, -b.shape[0] % TOGETHER), (0, 0))).reshape(-1, TOGETHER, b.shape[1])

    def block(total: FloatNN, some: FloatFP) -> tuple[FloatNN, None]:
        square = jnp.stack([unpack(one, n) for one in some])
        half = jnp.matmul(square, vectors, precision="highest")
        half = half.transpose(1, 0, 2)  # [N, TOGETHER, C]
        signed = (half * signs).reshape(n, -1)
        return total + jnp.matmul(signed, half.reshape(n, -1).T, precision="highest"), None

    total, _ = lax.scan(block, jnp.zeros((n, n), b.dtype), blocks)
    i, j = packed_indices(n)
    return total[i, j]


def _with_exchange(
    d: FloatP, matrix: FloatP, energy: Pair, exchange: FloatP | None
) -> tuple[FloatP, Pair]:
    """Matrix and energy of J, and those of exchange, if there is any."""
    if exchange is None:
        return matrix, energy
    return matrix + exchange, add(energy, tile_dot(0.5 * d, exchange))


def _none() -> Count:
    return jnp.zeros((), jnp.int32)

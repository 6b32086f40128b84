"""Sites of a Hubbard model, solved by mean field: Fock operators that know no molecule."""

from typing import NamedTuple

import jax.numpy as jnp

from pyscf_ipu.numerics.two_words import Pair

ATTRACTION, HOPPING = -0.5, 0.1
SHARED_ENERGY, OWN_ENERGY = -0.7, -1.02
"""Of two attracting sites: a saddle, where both have one electron, and the minimum.

D = [[1 + p, q], [q, 1 - p]] has -0.5 (1 + p^2) - 0.2 q = -1 + q^2 / 2 - q / 5: q = 1 or 0.2.
The gap of the saddle is 2 x 0.1, that of the minimum 1.
"""


class Energy(NamedTuple):
    only: Pair

    def total(self):
        return self.only


def fock_of(core, repulsion):
    """F = h + U diag(D): energy tr(D h) + U/2 sum D_ii^2."""

    def fock(density):
        own = jnp.diag(density)
        energy = jnp.sum(density * core) + 0.5 * repulsion * jnp.sum(own * own)
        return core + repulsion * jnp.diag(own), Energy(Pair(energy, jnp.zeros_like(energy)))

    return fock


def hopping_between_two(hopping):
    return jnp.asarray([[0.0, -hopping], [-hopping, 0.0]])


def exactly(matrix):
    """The matrix in two words, the second one zero."""
    return Pair(matrix, jnp.zeros_like(matrix))

"""Forces of a network of energies: minus the derivative of its output by the positions.

A molecule's output depends on its own atoms only, so one derivative of the sum over a pack gives
the forces of all of its molecules. The network is smooth in the positions (its cutoff falls to zero
with zero slope), except where an atom has more than `neighbours` others within the cutoff.

Shape legend: A atom slots, M molecule slots of a pack.
"""

from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from schnet.network.model import SchNet
from schnet.network.pack import Pack


class Outputs(NamedTuple):
    """What a network of energies says of a pack, in units of the energies' standard deviation."""

    energies: Float[Array, " M"]
    """References subtracted; zero or near it in empty slots."""
    forces: Float[Array, "A 3"]
    """Per Bohr; zero in empty slots."""


def energies_and_forces(model: SchNet, pack: Pack) -> Outputs:
    """The energies of a pack and the forces on its atoms, to be differentiated further."""

    def total(positions: Float[Array, "A 3"]) -> tuple[Float[Array, ""], Float[Array, " M"]]:
        energies = model(replace(pack, positions_bohr=positions))
        return jnp.sum(jnp.where(pack.there, energies, 0.0)), energies

    gradient, energies = jax.grad(total, has_aux=True)(jnp.asarray(pack.positions_bohr))
    return Outputs(energies, -gradient)


predict_with_forces = eqx.filter_jit(energies_and_forces)
"""The same, compiled, for predictions. It computes the filters: the slope of interpolated ones
(`filter_tables`) has kinks at the knots."""


def shares(pack: Pack) -> Float[Array, " A"]:
    """What a component counts in the mean over those of its molecule; zero in empty slots."""
    there = jnp.asarray(pack.numbers > 0, jnp.float32)
    atoms = jax.ops.segment_sum(there, pack.molecule, num_segments=pack.n_molecules)
    return there / (3.0 * jnp.maximum(atoms, 1.0)[pack.molecule])

"""A functional of two spins in terms of their densities' moments at grid points."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from pyscf_ipu.xc.semilocal.functionals import Functional


def energy_and_slopes(
    functional: Functional, moments: Float[Array, "spin=2 V G"]
) -> tuple[Float[Array, " G"], Float[Array, "spin=2 V G"]]:
    """Energy per volume in Hartree/Bohr^3, and its derivatives by the moments.

    Args:
        functional: of exchange and correlation.
        moments: of either spin: density, its gradient and, where the functional needs it, the
            kinetic energy density, in atomic units.
    """
    slope = moments[:, 1:4]
    pairs = [(slope[i] * slope[j]).sum(0) for i, j in ((0, 0), (0, 1), (1, 1))]
    tau = (moments[:, 4],) if functional.needs_tau else ()
    energy, v_rho, v_sigma, *v_tau = functional.energy_and_potential_of_spins(
        moments[:, 0], jnp.stack(pairs), *tau
    )
    by_slope = [
        2.0 * v_sigma[2 * spin] * slope[spin] + v_sigma[1] * slope[1 - spin] for spin in (0, 1)
    ]
    of_each = [
        jnp.stack([v_rho[spin], *by_slope[spin], *(v[spin] for v in v_tau)]) for spin in (0, 1)
    ]
    return energy, jnp.stack(of_each)

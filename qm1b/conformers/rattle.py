"""Random displacements: a Gaussian step for every coordinate of every conformer."""

import numpy as np
from jaxtyping import Float, Integer

from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from qm1b.conformers.torn import ratios

DRAWS = 20
"""Tries for a geometry without atoms too close."""

CLOSEST = 0.6
"""Part of the sum of two covalent radii that atoms may not come closer than."""


def rattled(
    numbers: Integer[np.ndarray, " A"],
    positions: Float[np.ndarray, "A 3"],
    sigma_angstrom: float,
    seed: int,
    copy: int,
) -> Float[np.ndarray, "A 3"] | None:
    """Displace atoms; None if they come too close in each of DRAWS tries.

    Args:
        numbers: atomic numbers.
        positions: Bohr.
        sigma_angstrom: standard deviation of each coordinate's step, in Angstrom.
        seed: of the molecule.
        copy: number of the geometry in its molecule; with the seed it decides the steps.
    """
    closest = np.minimum(CLOSEST, 0.999 * ratios(numbers, positions))
    random = np.random.default_rng([seed, copy])
    for _ in range(DRAWS):
        step = random.normal(scale=sigma_angstrom / BOHR_TO_ANGSTROM, size=positions.shape)
        moved = positions + step
        if np.all(ratios(numbers, moved) >= closest):
            return moved
    return None

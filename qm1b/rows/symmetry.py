"""Symmetries of a geometry that a dipole moment must share.

Reflections, two-fold rotations and the inversion along the principal axes of the nuclei: the point
group D2h and its subgroups.  Where the axes are not unique (symmetric tops), some are missed.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
from jaxtyping import Float, UInt8

TOLERANCE_BOHR = 1e-3
"""By which an atom may miss its image."""

SIGNS = np.array([s for s in product((1.0, -1.0), repeat=3) if min(s) < 0])
"""[7, 3] of the axes under each operation but the identity."""

MAX_ATOMS = 64
"""Geometries of more atoms are hardly ever symmetric, and take long to compare."""


def mirrorings(
    numbers: UInt8[np.ndarray, " A"], positions: Float[np.ndarray, "A 3"]
) -> Iterator[Float[np.ndarray, "3 3"]]:
    """Orthogonal matrices that map the nuclei onto themselves, about their centre.

    Args:
        numbers: atomic numbers.
        positions: Bohr.
    """
    if not 2 <= len(numbers) <= MAX_ATOMS:
        return
    weights = numbers.astype(float)
    about = positions - np.average(positions, axis=0, weights=weights)
    _, axes = np.linalg.eigh((about * weights[:, None]).T @ about)
    inside = about @ axes
    images = inside[None] * SIGNS[:, None]
    misses = np.abs(images[:, :, None] - inside[None, None]).max(axis=-1)  # [7, A, A]
    hit = (misses < TOLERANCE_BOHR) & (numbers[:, None] == numbers[None])
    for signs in SIGNS[hit.any(axis=2).all(axis=1)]:
        yield (axes * signs) @ axes.T

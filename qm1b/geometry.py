"""A geometry that the input gave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt8

from pyscf_ipu.units import BOHR_TO_ANGSTROM


@dataclass(frozen=True, eq=False)
class Geometry:
    """Atoms in space, heavy atoms first. A atoms."""

    numbers: UInt8[np.ndarray, " A"]
    positions: Float[np.ndarray, "A 3"]
    """Bohr, float64 array of float32 values."""
    identity: str = ""
    """Stands for the SMILES where there is none."""


def rounded(positions: Float[np.ndarray, "A 3"]) -> Float[np.ndarray, "A 3"]:
    """Positions as they are stored: float32 values, in a float64 array. What is computed starts
    from these."""
    with np.errstate(over="ignore"):
        return positions.astype(np.float32).astype(np.float64)


def geometry(
    numbers: Int[np.ndarray, " A"], angstrom: Float[np.ndarray, "A 3"], identity: str = ""
) -> Geometry:
    """A geometry from atoms in any order and positions in Angstrom."""
    order = np.argsort(numbers == 1, kind="stable")
    positions = rounded(angstrom[order] / BOHR_TO_ANGSTROM)
    return Geometry(numbers[order].astype(np.uint8), positions, identity)

"""Aids for molecules whose plain SCF does not settle: damping, late DIIS, level shift.

They are numbers of each conformer, not settings of a program: molecules that need them run in the
program, and in the batch, of those that do not, and zeros change no bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, cast

import jax.numpy as jnp
import numpy as np
from jax import Array

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.numerics.arrays import Count, Flag, FloatSNN, Scalar


@dataclass(frozen=True)
class Convergence:
    """How the Fock matrix of the next cycle is made.

    Raises:
        UsageError: a value is out of range.
    """

    damping: float = 0.0
    """Fraction of the previous cycle's Fock matrix that is kept, at least 0 and below 1, in the
    cycles before DIIS begins (D. R. Hartree's averaging of successive fields); without
    `diis_start` it has no effect."""
    diis_start: int = 0
    """Cycle from which DIIS extrapolates; 0 for the first."""
    level_shift_hartree: float = 0.0
    """Raises the empty orbitals, so that occupied and empty ones mix less (V. R. Saunders, I. H.
    Hillier, Int. J. Quantum Chem. 7, 699 (1973), doi:10.1002/qua.560070407).  The converged orbital
    energies do not contain it."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.damping < 1.0:
            raise UsageError(f"damping {self.damping}: give a number of at least 0 and below 1")
        if type(self.diis_start) is not int or self.diis_start < 0:
            raise UsageError(f"diis_start {self.diis_start!r}: give a cycle, an integer from 0 on")
        if not 0.0 <= self.level_shift_hartree < float("inf"):
            raise UsageError(
                f"level_shift_hartree {self.level_shift_hartree}: give a finite number, 0 or more"
            )

    def aids(self, dtype: type) -> Aids:
        """The numbers for a program (NumPy scalars)."""
        values = dtype(self.damping), np.int32(self.diis_start), dtype(self.level_shift_hartree)
        return Aids(*(cast(Array, value) for value in values))


PLAIN = Convergence()
COOLING, COLD_HARTREE = 0.2, 1e-3
"""By how much a smeared SCF is cooled each time that it arrives, and the kT below which orbitals
are full or empty from there on."""


class Aids(NamedTuple):
    """`Convergence` on the device: scalars; level_shift in Hartree.

    With aids the SCF converges slowly, and slow convergence looks like rounding noise.  So the aids
    are dropped once the SCF seems converged, and DIIS makes the last cycles.
    """

    damping: Scalar
    diis_start: Count
    level_shift: Scalar

    def astype(self, dtype: type) -> Aids:
        """The numbers in another dtype."""
        damping, shift = (x.astype(dtype) for x in (self.damping, self.level_shift))
        return Aids(damping, self.diis_start, shift)

    def is_plain(self) -> Flag:
        """Whether there are no aids at all."""
        return jnp.logical_and(self.diis_start == 0, self.level_shift == 0)

    def next_matrix(
        self, cycle: Count, matrix: FloatSNN, before: FloatSNN, diis: FloatSNN, density: FloatSNN
    ) -> FloatSNN:
        """The Fock matrix to diagonalise, in the orthonormal basis.

        It is made from the matrices of this cycle, of the cycle before, and of DIIS.  The density
        has 2 for an occupied orbital, so that 1 - density/2 projects on the empty ones.
        """
        damped = matrix + self.damping * (before - matrix)
        chosen = jnp.where(cycle < self.diis_start, damped, diis)
        return level_shifted(chosen, density, self.level_shift)


def level_shifted(matrix: FloatSNN, density: FloatSNN, hartree: Scalar | float) -> FloatSNN:
    """A Fock matrix with its empty levels raised, in the orthonormal basis."""
    eye = jnp.eye(matrix.shape[-1], dtype=matrix.dtype)
    return matrix + hartree * (eye - 0.5 * density)


def once_cold(flag: Flag, smearing: Scalar | None) -> Flag:
    """The flag, where electrons are smeared so little (kT in Hartree) that they need not be."""
    return flag if smearing is None else flag & (smearing < COLD_HARTREE)

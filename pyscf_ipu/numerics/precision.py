"""Precision policies, and the two-float arithmetic that lets float32 keep small differences.

A ``Pair`` is an unevaluated sum hi + lo of two numbers of one dtype.  Every real number that
crosses from the host to the device (coordinates, exponents, contraction coefficients, grid
points) travels as a Pair: in float32 the two words carry 48 bits, in float64 the low word is 0.
The engine can therefore recover float64 inputs from a float32 program's arguments, and a
difference such as R_A - R_B loses no digits.

Source of the error-free transformations: T. J. Dekker, Numer. Math. 18, 224 (1971),
doi:10.1007/BF01397083; T. Ogita, S. M. Rump, S. Oishi, SIAM J. Sci. Comput. 26, 1955 (2005),
doi:10.1137/030601818.
"""

import contextlib
from dataclasses import dataclass, replace

import jax
import numpy as np

from pyscf_ipu.numerics.arrays import Flag, Scalar


@dataclass(frozen=True)
class Precision:
    """What is computed in which dtype, and when an SCF in that dtype counts as converged."""

    name: str
    scf_dtype: type
    """Dtype of the integrals, Fock matrices and orbitals of the iterations."""
    energy_dtype: type
    """Dtype of the integrals and the energy of the one evaluation at the converged density."""
    commutator: float
    """Largest allowed element of the commutator [F, D] in Hartree."""
    rounding_floor: float
    """The same, once the commutator has stopped shrinking."""
    energy_change: float
    """Largest allowed change of the energy between two cycles in Hartree."""
    least_overlap: float = 0.0
    """Smallest eigenvalue of the overlap matrix with which an SCF in `scf_dtype` gives what is to
    be right.  Below, rounding of the Fock matrix, divided by this eigenvalue, moves electrons
    between atoms; far below, it moves levels."""
    drop_below: float = 0.0
    """Eigenvectors of the overlap with an eigenvalue up to this are left out, in `energy_dtype`."""
    wide: bool = False
    """Whether the iterations have their matrices and integrals in float64, and only AOs, densities
    and potentials on the grid in `scf_dtype`."""
    fits: bool = False
    """Whether programs fit densities, for which they compute some steps in float64."""

    @property
    def matrix_dtype(self) -> type:
        """Dtype of integrals over AOs, Fock matrices and orbitals of the iterations."""
        return np.float64 if self.wide else self.scf_dtype

    @property
    def result_dtype(self) -> type:
        """Dtype of densities and orbitals that a program returns."""
        return np.float64 if self.wide else self.energy_dtype

    @property
    def refines(self) -> bool:
        """Whether the converged density is evaluated again in a wider dtype."""
        return self.energy_dtype != self.scf_dtype

    def holds(self, smallest: float | Scalar) -> bool | Flag:
        """Whether results are right with this smallest eigenvalue of the overlap matrix."""
        return self.refines or smallest >= self.least_overlap

    def scope(self) -> contextlib.AbstractContextManager:
        """The context in which a program of this precision is traced, compiled and run."""
        return jax.enable_x64(True) if self.wants64 else contextlib.nullcontext()

    @property
    def wants64(self) -> bool:
        """Whether a program of this precision has arrays in float64."""
        return self.fits or self.wide or np.float64 in (self.scf_dtype, self.energy_dtype)


LEAST_OVERLAP_FLOAT32 = 3e-4
"""Above, charges in float32 were off by 6e-4 e at most; below, by up to 0.3 e."""
LEAST_OVERLAP_LEVELS = 1e-5
"""The same for energies and levels alone, in float32: they hardly notice that electrons
move between AOs that are nearly the same."""
LEAST_OVERLAP_MIXED = 1e-3
"""Below, `mixed` iterates in float64: there it costs some cycles and no row.  Formamide in
aug-cc-pVDZ (4.7e-4) had charges 2.6e-3 e off with the limit of float32."""
DROP_BELOW = 1e-6
"""PySCF's own limit, `scf.hf.overlap_zero_eigenvalue_threshold`.  In float32 nothing is left out:
PySCF without the vectors up to 3e-4 gets charges 0.2 e, energies 2 meV and gaps 50 meV off."""

WIDE_COMMUTATOR, WIDE_FLOOR = 2e-5, 5e-5
"""Hartree, of a Fock matrix in float64 whose XC part comes from a grid in float32."""

_FLOAT32 = Precision(
    "float32",
    np.float32,
    np.float32,
    commutator=1e-4,
    rounding_floor=2e-4,
    energy_change=1e-4,
    least_overlap=LEAST_OVERLAP_FLOAT32,
)
_MIXED = replace(
    _FLOAT32,
    name="mixed",
    energy_dtype=np.float64,
    least_overlap=LEAST_OVERLAP_MIXED,
    drop_below=DROP_BELOW,
)
_FLOAT64 = Precision(
    "float64",
    np.float64,
    np.float64,
    commutator=1e-6,
    rounding_floor=1e-6,
    energy_change=1e-9,
    drop_below=DROP_BELOW,
)
PRECISIONS: dict[str, Precision] = {p.name: p for p in (_FLOAT32, _MIXED, _FLOAT64)}

ACCURACIES = {"energy": 5.0, "orbitals": 1.0, "properties": 1.0}
"""Times the threshold of the commutator, by what is to be right.  The energy's error is of second
order in it, that of the orbitals' levels and of the density of first order."""


def widened(precision: Precision) -> Precision:
    """The precision for nearly dependent AOs: all matrices in float64, and only the grid is not."""
    if precision.scf_dtype == np.float64:
        return precision
    return replace(
        precision,
        wide=True,
        commutator=WIDE_COMMUTATOR,
        rounding_floor=WIDE_FLOOR,
        least_overlap=DROP_BELOW,
        drop_below=DROP_BELOW,
    )


def for_accuracy(precision: Precision, accuracy: str) -> Precision:
    """The thresholds of a precision for what is to be right: one of `ACCURACIES`."""
    least = precision.least_overlap
    if accuracy != "properties" and not precision.refines:
        least = min(least, LEAST_OVERLAP_LEVELS)
    return replace(
        precision, commutator=precision.commutator * ACCURACIES[accuracy], least_overlap=least
    )

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
from dataclasses import dataclass

import jax
import numpy as np


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

    @property
    def refines(self) -> bool:
        """Whether the converged density is evaluated again in a wider dtype."""
        return self.energy_dtype != self.scf_dtype

    def scope(self) -> contextlib.AbstractContextManager:
        """The context in which a program of this precision is traced, compiled and run."""
        wants64 = np.float64 in (self.scf_dtype, self.energy_dtype)
        return jax.enable_x64(True) if wants64 else contextlib.nullcontext()


PRECISIONS: dict[str, Precision] = {
    p.name: p
    for p in (
        Precision("float32", np.float32, np.float32, 2e-5, 2e-4, 2e-5),
        Precision("mixed", np.float32, np.float64, 2e-5, 2e-4, 2e-5),
        Precision("float64", np.float64, np.float64, 1e-6, 1e-6, 1e-9),
    )
}

"""What electrons interact by in an integral: 1/r, or a sum of it and its long range."""

from typing import NamedTuple


class Interaction(NamedTuple):
    """The function full / r + long_range erf(omega r) / r of the distance r of two electrons.

    The long range of 1/r is as smooth as a Gaussian, and its integrals are those of 1/r with other
    exponents (P. M. W. Gill, R. D. Adamson, Chem. Phys. Lett. 261, 105 (1996),
    doi:10.1016/0009-2614(96)00931-1).
    """

    full: float
    long_range: float = 0.0
    omega: float = 0.0
    """In 1/Bohr."""


COULOMB = Interaction(1.0)
"""1/r alone."""

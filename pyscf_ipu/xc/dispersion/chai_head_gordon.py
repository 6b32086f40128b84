"""The correction of `wb97x-d`: atom pairs, Grimme's coefficients of 2006, its own damping.

    E = -s6 sum_{i<j} C6_ij / R_ij^6 / (1 + a (R_ij / (r_i + r_j))^-12),  C6_ij = sqrt(C6_i C6_j)

J.-D. Chai, M. Head-Gordon, Phys. Chem. Chem. Phys. 10, 6615 (2008), doi:10.1039/b810189b.
Coefficients and van der Waals radii: S. Grimme, J. Comput. Chem. 27, 1787 (2006),
doi:10.1002/jcc.20495, table 1.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from jaxtyping import Float, Integer

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM

JOULE_PER_MOLE = 1.0 / 2625499.639
"""Hartree: CODATA 2018's Hartree times Avogadro's number is 2,625,499.639 J/mol."""

ATOMS: Mapping[int, tuple[float, float]] = MappingProxyType(
    {
        1: (0.14, 1.001),
        2: (0.08, 1.012),
        3: (1.61, 0.825),
        4: (1.61, 1.408),
        5: (3.13, 1.485),
        6: (1.75, 1.452),
        7: (1.23, 1.397),
        8: (0.70, 1.342),
        9: (0.75, 1.287),
        10: (0.63, 1.243),
        11: (5.71, 1.144),
        12: (5.71, 1.364),
        13: (10.79, 1.639),
        14: (9.23, 1.716),
        15: (7.84, 1.705),
        16: (5.57, 1.683),
        17: (5.07, 1.639),
        18: (4.61, 1.595),
        19: (10.80, 1.485),
        20: (10.80, 1.474),
        **dict.fromkeys(range(21, 31), (10.80, 1.562)),
        31: (16.99, 1.650),
        32: (17.10, 1.727),
        33: (16.37, 1.760),
        34: (12.64, 1.771),
        35: (12.47, 1.749),
        36: (12.01, 1.727),
        37: (24.67, 1.628),
        38: (24.67, 1.606),
        **dict.fromkeys(range(39, 49), (24.67, 1.639)),
        49: (37.32, 1.672),
        50: (38.71, 1.804),
        51: (38.44, 1.881),
        52: (31.74, 1.892),
        53: (31.50, 1.892),
        54: (29.99, 1.881),
    }
)
"""C6 in J nm^6/mol and radius in Angstrom, by atomic number."""


def check_coefficients(numbers: Integer[np.ndarray, " A"]) -> None:
    """Raise InvalidMolecule for an element beyond the table."""
    unknown = sorted(set(np.asarray(numbers).tolist()) - set(ATOMS))
    if unknown:
        raise InvalidMolecule(
            f"wb97x-d has no dispersion coefficients for atomic number {unknown[0]}, only for "
            "H to Xe"
        )


def chai_head_gordon(
    numbers: Integer[np.ndarray, " A"], positions: Float[np.ndarray, "A 3"], s6: float, a: float
) -> tuple[float, Float[np.ndarray, "A 3"]]:
    """Energy in Hartree, and its gradient in Hartree/Bohr.

    Args:
        numbers: atomic numbers.
        positions: in Bohr.
        s6: scales the whole.
        a: strength of the damping.

    Raises:
        InvalidMolecule: an element is not in the table.
    """
    check_coefficients(numbers)
    table = np.array([ATOMS[z] for z in numbers.tolist()], np.float64).reshape(-1, 2)
    c6 = np.sqrt(table[:, 0] * JOULE_PER_MOLE) * (10.0 / BOHR_TO_ANGSTROM) ** 3
    radii = table[:, 1] / BOHR_TO_ANGSTROM
    i, j = np.triu_indices(len(numbers), 1)
    apart = np.asarray(positions, np.float64)[i] - np.asarray(positions, np.float64)[j]
    square = np.sum(apart**2, axis=1)
    # With x = R^6 and y = a r^12: C6 / x / (1 + y / x^2) = C6 x / (x^2 + y), which divides by no 0.
    x, y = square**3, a * (radii[i] + radii[j]) ** 12
    pairs = s6 * c6[i] * c6[j]
    energy = -float(np.sum(pairs * x / (x**2 + y)))
    by_x = -pairs * (y - x**2) / (x**2 + y) ** 2
    on_pairs = (6.0 * by_x * square**2)[:, None] * apart  # dx/dR is 6 R^4 times the vector R
    gradient = np.zeros((len(numbers), 3))
    np.add.at(gradient, i, on_pairs)
    np.add.at(gradient, j, -on_pairs)
    return energy, gradient

"""Geometries whose unit was mistaken: Bohr read as Angstrom, or Angstrom as Bohr.

Then every atom is 1.9 times as far from its neighbours as bonded atoms are, or half as far.  No
real molecule is, as long as some atom has its bond: so each atom's *nearest* neighbour counts, in
units of the sum of covalent radii, and all atoms must agree.
"""

from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from pyscf_ipu.elements.spellings import ATOMIC_NUMBERS

Mistake = Literal["", "Bohr", "Angstrom"]
"""The unit that the positions seem to be in although the other one was read; "" if all is well."""

_RADII = (
    "H 0.32 Li 1.33 Be 1.02 B 0.85 C 0.75 N 0.71 O 0.63 F 0.64 "
    "Na 1.55 Mg 1.39 Al 1.26 Si 1.16 P 1.11 S 1.03 Cl 0.99"
).split()
COVALENT_RADII_ANGSTROM = {
    ATOMIC_NUMBERS[symbol]: float(radius)
    for symbol, radius in zip(_RADII[0::2], _RADII[1::2], strict=True)
}
"""Of single bonds: P. Pyykko and M. Atsumi, doi:10.1002/chem.200800987.  In their units most bonds
have a length of 0.9 to 1.1, N2 has 0.77 and F3- 1.36."""

NOBLE_GASES = (2, 10, 18)
"""They are left out: what is next to them is no bond."""

BOHR_RATIOS = (1.45, 2.3)
"""Ratios of all atoms if Bohr was read as Angstrom: 1.89 times 0.77 to 1.22."""

ANGSTROM_RATIOS = (0.38, 0.65)
"""Ratios of all atoms if Angstrom was read as Bohr: 0.53 times 0.72 to 1.23."""

LEAST_ATOMS = 3
"""One distance alone may be a bond that is being broken."""


def mistaken_unit(numbers: Int[np.ndarray, " A"], angstrom: Float[np.ndarray, "A 3"]) -> Mistake:
    """Whether a geometry (Angstrom) looks like one in another unit.

    Nothing is said of fewer than three atoms, of hydrogen alone (chains and rings of any spacing
    are computed as models), of elements without a radius, and of positions that are not finite.
    """
    bonded = ~np.isin(numbers, NOBLE_GASES)
    numbers, angstrom = numbers[bonded], angstrom[bonded]
    known = np.isin(numbers, list(COVALENT_RADII_ANGSTROM)).all()
    if len(numbers) < LEAST_ATOMS or (numbers == 1).all() or not known:
        return ""
    if not np.isfinite(angstrom).all():
        return ""
    nearest = nearest_ratios(numbers, angstrom)
    if _within(nearest, BOHR_RATIOS):
        return "Bohr"
    return "Angstrom" if _within(nearest, ANGSTROM_RATIOS) else ""


def _within(ratios: Float[np.ndarray, " A"], limits: tuple[float, float]) -> bool:
    return bool(((limits[0] <= ratios) & (ratios <= limits[1])).all())


def nearest_ratios(
    numbers: Int[np.ndarray, " A"], angstrom: Float[np.ndarray, "A 3"]
) -> Float[np.ndarray, " A"]:
    """The least distance of each atom to another, in units of the sum of their covalent radii."""
    radii = np.array([COVALENT_RADII_ANGSTROM[z] for z in numbers.tolist()])
    with np.errstate(over="ignore"):  # far beyond any molecule: infinitely far
        distance = np.linalg.norm(angstrom[:, None] - angstrom[None], axis=-1)
    np.fill_diagonal(distance, np.inf)
    return (distance / (radii[:, None] + radii[None])).min(axis=1)


def in_words(mistake: Mistake) -> str:
    """What is suspicious about a geometry, and what to do."""
    how, as_if, mend = {
        "Bohr": (
            "1.5 to 2.3 times the sum",
            "in Bohr, and were read as Angstrom",
            "if they are, convert them or, in XYZ, write units=Bohr into the comment line",
        ),
        "Angstrom": (
            "about half the sum",
            "in Angstrom, and were read as Bohr",
            "if they are, correct the unit that the file states",
        ),
    }[mistake]
    return (
        f"the nearest neighbour of every atom is at {how} of the covalent radii, as if the "
        f"positions were {as_if}; {mend}"
    )

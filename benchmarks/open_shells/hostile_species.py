"""2,000 species that are hard for an SCF: ions, stretched bonds, twisted and bent ones, metals."""

from collections.abc import Iterator

import numpy as np

from benchmarks import harness
from benchmarks.open_shells.species import Named
from benchmarks.robustness.states_molecules import diatomics
from pyscf_ipu import Molecule
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.elements.spellings import SYMBOLS

METALS = range(19, 31)
PARTNERS = (1, 6, 8, 9, 17)
LENGTHS = (1.5, 1.9, 2.5, 3.5)
"""Angstrom, of metals and their partners."""
TWISTS = range(0, 91, 10)
"""Degrees, between the planes of the ends of an ethylene."""
ETHYLENES = ((6, 6, 1.33, 1.08), (6, 7, 1.28, 1.05), (7, 7, 1.25, 1.03), (14, 14, 2.15, 1.47))
CARBENES = {(6, 1): 1.08, (6, 9): 1.30, (6, 17): 1.71, (14, 1): 1.52, (7, 1): 1.03, (6, 3): 1.95}
"""Centre, neighbour and their distance in Angstrom."""
ANGLES = range(90, 181, 15)
STRETCHED = (1.0, 1.5, 2.0)


def everything(limit: int | None = None) -> list[Named]:
    """All of them, or `limit`, evenly."""
    return harness.evenly([*atoms(), *stretched(), *metals(), *twisted(), *carbenes()], limit)


def atoms() -> Iterator[Named]:
    """H to Kr with charges from -2 to 2."""
    for number in range(1, 37):
        for charge in (-2, -1, 0, 1, 2):
            yield from _spins([number], [[0, 0, 0]], charge, 3)


def stretched() -> Iterator[Named]:
    """The diatomics of `states`, in two multiplicities."""
    for _, mol in diatomics():
        yield from _spins(mol.numbers, mol.positions * BOHR_TO_ANGSTROM, mol.charge, 2)


def metals() -> Iterator[Named]:
    """K to Zn beside another atom, neutral and with a charge."""
    for metal in METALS:
        for partner in (*PARTNERS, metal):
            for far in LENGTHS:
                yield from _spins([metal, partner], [[0, 0, 0], [0, 0, far]], 0, 2)


def twisted() -> Iterator[Named]:
    """Ethylene and its relatives, from planar to perpendicular; its ions, too."""
    for first, second, bond, short in ETHYLENES:
        for twist in TWISTS:
            for charge in (0, 1):
                numbers, atoms = _ethylene(first, second, bond, short, np.radians(twist))
                yield from _spins(numbers, atoms, charge, 2)


def carbenes() -> Iterator[Named]:
    """Atoms with two neighbours, bent and linear, stretched and charged."""
    for (centre, other), near in CARBENES.items():
        for angle in ANGLES:
            for stretch in STRETCHED:
                half = np.radians(angle / 2)
                x, z = (near * stretch * f(half) for f in (np.sin, np.cos))
                for charge in (0, 1):
                    numbers = [centre, other, other]
                    yield from _spins(numbers, [[0, 0, 0], [x, 0, z], [-x, 0, z]], charge, 2)


def _spins(numbers: object, angstrom: object, charge: int, count: int) -> Iterator[Named]:
    """The lowest multiplicities that go with the electrons: 1, 3, 5 or 2, 4, 6."""
    elements = np.asarray(numbers)
    electrons = int(elements.sum()) - charge
    for multiplicity in range(1 + electrons % 2, 2 * count + 1, 2):
        if electrons > 0 and multiplicity <= electrons + 1:
            bohr = np.asarray(angstrom, float) / BOHR_TO_ANGSTROM
            yield (
                _name(elements, bohr, charge, multiplicity),
                Molecule(elements, bohr, charge, multiplicity=multiplicity),
            )


def _name(elements: np.ndarray, bohr: np.ndarray, charge: int, multiplicity: int) -> str:
    """Symbols, charge, multiplicity, and the distances to the first atom in Angstrom."""
    far = np.linalg.norm(bohr - bohr[0], axis=1)[1:] * BOHR_TO_ANGSTROM
    symbols = "".join(SYMBOLS[number] for number in elements)
    return f"{symbols} {charge:+d} {multiplicity} " + " ".join(f"{one:.2f}" for one in far)


def _ethylene(
    first: int, second: int, bond: float, short: float, twist: float
) -> tuple[list[int], list[list[float]]]:
    """Two atoms on the z axis with hydrogens at 120 degrees, one end turned; nitrogen has one."""
    out, along = short * np.sin(np.pi / 3), short * np.cos(np.pi / 3)
    sides = {6: (1, -1), 14: (1, -1), 7: (1,)}
    numbers, atoms = [first, second], [[0.0, 0.0, 0.0], [0.0, 0.0, bond]]
    for side in sides[first]:
        numbers.append(1)
        atoms.append([side * out, 0.0, -along])
    for side in sides[second]:
        numbers.append(1)
        atoms.append([side * out * np.cos(twist), side * out * np.sin(twist), bond + along])
    return numbers, atoms

"""A geometry in the wrong unit is noticed, and no real molecule is suspected."""

import warnings

import numpy as np
import pytest
from ase import Atoms
from ase.build import molecule
from ase.collections import g2

from pyscf_ipu import Molecule
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.molecule.files.wrong_unit import COVALENT_RADII_ANGSTROM, mistaken_unit

G2 = [
    atoms
    for atoms in map(molecule, g2.names)
    if {*atoms.numbers.tolist()} <= {*COVALENT_RADII_ANGSTROM}
]


def judged(atoms, factor=1.0):
    return mistaken_unit(atoms.numbers, atoms.positions * factor)


def test_measured_molecules_are_right_in_angstrom_and_wrong_otherwise():
    assert len(G2) > 120
    for atoms in G2:
        assert judged(atoms) == "", atoms
        if len(atoms) > 2 and (atoms.numbers != 1).any():
            assert judged(atoms, 1 / BOHR_TO_ANGSTROM) == "Bohr", atoms
            assert judged(atoms, BOHR_TO_ANGSTROM) == "Angstrom", atoms


def line(*atoms):
    """Atoms on a line: symbols and positions."""
    return Atoms([s for s, _ in atoms], [(0, 0, z) for _, z in atoms])


def pulled(name, atom, distance):
    """A molecule with one of its atoms moved away."""
    atoms = molecule(name)
    atoms.positions[atom] += distance * np.array([0, 0.6, 0.8])
    return atoms


def pair(name, distance):
    """Two copies of a molecule."""
    one, other = molecule(name), molecule(name)
    other.positions += (distance, 0, 0)
    return one + other


@pytest.mark.parametrize(
    "atoms",
    [
        line(("H", 0), ("H", 0.74)),
        line(("H", 0), ("H", 1.4)),  # torn, or in Bohr: nobody can know
        line(("H", 0), ("F", 1.73)),
        line(("N", 0), ("N", 3.0)),
        line(("He", 0), ("He", 2.97)),
        line(("He", 0), ("H", 0.93), ("He", 1.86)),  # a cation
        line(("Na", 0), ("Cl", 2.36)),
        line(("Na", 0), ("Cl", 2.6), ("Na", 5.2), ("Cl", 7.8)),
        line(("F", 0), ("F", 1.74), ("F", 3.48)),  # F3-
        line(("F", 0), ("H", 1.14), ("F", 2.28)),  # FHF-
        line(("H", 0), ("H", 1.2), ("H", 2.4), ("H", 3.6)),  # a chain as in textbooks
        line(("C", 0), ("C", 4.0), ("C", 8.0)),  # atoms
        line(("Br", 0), ("C", 3.7), ("Br", 7.4)),
        pulled("CH4", 1, 3.0),
        pulled("H2O", 1, 1.0),
        pulled("CH3CH2OH", 0, 2.0),
        pair("H2", 3.0),
        pair("H2O", 2.9),
        pair("CH4", 4.0),
        molecule("H2O") + Atoms("Na", [(0, 0, 2.4)]),
        Atoms("He2CO", [(0, 3, 0), (0, -3, 0), (0, 0, 0), (0, 0, 1.13)]),
    ],
    ids=str,
)
def test_no_false_alarm(atoms):
    assert judged(atoms) == ""


def test_positions_that_are_no_numbers_are_for_another_check():
    assert mistaken_unit(np.array([8, 1, 1]), np.array([[0, 0, np.nan]] * 3)) == ""
    assert mistaken_unit(np.array([8, 1, 1]), np.array([[0, 0, 0], [0, 0, 1], [0, 0, 1e300]])) == ""


def test_from_xyz_warns(tmp_path):
    path = tmp_path / "a.xyz"
    atoms = molecule("CH3CH2OH")

    def write(comment, factor):
        rows = zip(atoms.symbols, (factor * atoms.positions).tolist(), strict=True)
        text = "".join(f"{s} {x} {y} {z}\n" for s, (x, y, z) in rows)
        path.write_text(f"{len(atoms)}\n{comment}\n{text}")

    write("", 1 / BOHR_TO_ANGSTROM)
    with pytest.warns(UserWarning, match=r"a\.xyz: .*in Bohr, and were read as Angstrom.*units="):
        Molecule.from_xyz(path)
    write("units=Bohr", 1)
    with pytest.warns(UserWarning, match="in Angstrom, and were read as Bohr"):
        Molecule.from_xyz(path)
    write("units=Bohr", 1 / BOHR_TO_ANGSTROM)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Molecule.from_xyz(path)
    np.testing.assert_allclose(found.positions * BOHR_TO_ANGSTROM, atoms.positions)

"""Löwdin's charges, Mayer's bond orders and the quadrupole, against PySCF."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

import pyscf_ipu as pi
from pyscf_ipu import Molecule
from pyscf_ipu.elements.mixed import mixed_functions

# Angstrom; away from the origin, where a quadrupole is another.
WATER = Molecule.from_symbols([*"OHH"], [[2, -1, 3.1], [2.8, -1, 3.7], [1.2, -0.9, 3.7]])
AMMONIUM = Molecule.from_symbols(
    [*"NHHHH"],
    [[4, 0, 0], [4.6, 0.6, 0.6], [3.4, -0.6, 0.6], [3.4, 0.6, -0.6], [4.6, -0.6, -0.6]],
    charge=1,
)
HYDROXIDE = Molecule.from_symbols([*"OH"], [[0, 0, 1], [0, 0.2, 1.95]], charge=-1)
CYANIDE = Molecule.from_symbols([*"CNH"], [[0, 0, 0], [0, 0, 1.16], [0, 0.1, -1.07]])
FORMALDEHYDE = Molecule.from_symbols(
    [*"COHH"], [[0, 0, 0], [0, 0, 1.21], [0, 0.94, -0.55], [0, -0.94, -0.6]]
)
LITHIUM_HYDRIDE = Molecule.from_symbols(["Li", "H"], [[0, 1, 0], [1.6, 1, 0]])
NEON = Molecule.from_symbols(["Ne"], [[1, 2, 3]])
EVERY = [WATER, AMMONIUM, HYDROXIDE, CYANIDE, FORMALDEHYDE, LITHIUM_HYDRIDE, NEON]

HYDROGENS = Molecule.from_symbols([*"HH"], [[0.1, 0, 0.2], [0.3, 0.7, -0.2]])


def of_pyscf(mol, level):
    """PySCF's density in its own AOs, and the overlap and the atom of each AO.

    Where d and f are of two kinds, the AOs are combined to those of the level.
    """
    mole = level.pyscf_mole(mol.numbers, mol.positions, mol.charge)
    field = level.pyscf_method(mole)
    field.conv_tol, field.conv_tol_grad = 1e-13, 1e-8
    field.kernel()
    density, overlap = field.make_rdm1(), mole.intor("int1e_ovlp")
    moments = mole.intor("int1e_rr").reshape(3, 3, mole.nao, mole.nao)
    atoms = np.array([label[0] for label in mole.ao_labels(fmt=False)])
    nuclei = np.einsum("a,ax,ay->xy", mole.atom_charges(), *[mole.atom_coords()] * 2)
    quadrupole = nuclei - np.einsum("xyij,ji->xy", moments, density)
    if level.cart == "6d7f":
        functions = mixed_functions(mole)
        inner = np.linalg.pinv(functions)
        density, overlap = inner @ density @ inner.T, functions.T @ overlap @ functions
        atoms = np.array([atoms[np.flatnonzero(column)[0]] for column in functions.T])
    return density, overlap, atoms, quadrupole


def by_definition(mol, level):
    """Charges and bond orders as sums over the AOs of atoms, one atom after another."""
    density, overlap, atoms, quadrupole = of_pyscf(mol, level)
    root, shares = np.real(sqrtm(overlap)), density @ overlap
    populations = np.diag(root @ density @ root)
    n = mol.n_atoms
    charges = [mol.numbers[a] - sum(populations[atoms == a]) for a in range(n)]
    orders = np.zeros((n, n))
    for a in range(n):
        for b in set(range(n)) - {a}:
            here, there = np.flatnonzero(atoms == a), np.flatnonzero(atoms == b)
            orders[a, b] = sum(shares[i, j] * shares[j, i] for i in here for j in there)
    return charges, orders, quadrupole


LEVELS = [
    pytest.param({}, EVERY, id="sto-3g"),
    *(
        pytest.param({"basis": "6-31g*", **level}, molecules, id=name, marks=pytest.mark.long)
        for name, level, molecules in (
            ("6d7f", {"cart": "6d7f"}, [WATER, HYDROXIDE]),
            ("ri", {"jk": "ri"}, [WATER]),
        )
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("level", "molecules"), LEVELS)
def test_the_density_is_divided_as_pyscf_would(level, molecules, solver_of):
    solver = solver_of(precision="float64", **level)
    result = pi.rks(molecules, solver=solver, orbitals=True, throw=True)
    for i, mol in enumerate(molecules):
        charges, orders, quadrupole = by_definition(mol, solver.settings)
        np.testing.assert_allclose(result.charges_lowdin[i], charges, atol=1e-6)
        np.testing.assert_allclose(result.bond_orders[i], orders, atol=1e-6)
        np.testing.assert_allclose(result.quadrupole[i], quadrupole, atol=1e-6)
        assert sum(result.charges_lowdin[i]) == pytest.approx(mol.charge, abs=1e-9)


def test_bonds_have_the_orders_of_the_textbook(solver_of):
    solver = solver_of(precision="float64")
    single, triple = pi.rks([HYDROGENS, CYANIDE], solver=solver, orbitals=True).bond_orders
    np.testing.assert_allclose(single, [[0, 1], [1, 0]], atol=1e-12)
    np.testing.assert_allclose(triple[0, 1:], [3, 1], atol=0.1)
    assert np.array_equal(triple, triple.T)


def test_a_quadrupole_moves_with_the_origin(solver_of):
    """In float32, too, and 43 Angstrom away, an ion keeps the moments about its centre."""
    away = np.array([40.0, -12.0, 9.0])
    far = Molecule(AMMONIUM.numbers, AMMONIUM.positions + away, AMMONIUM.charge)
    here, there = pi.rks([AMMONIUM, far], solver=solver_of(), orbitals=True).quadrupole
    dipole = pi.rks(AMMONIUM, solver=solver_of()).dipole
    moved = np.outer(away, dipole) + np.outer(dipole, away) + np.outer(away, away)
    np.testing.assert_allclose(there, here + moved, atol=1e-3)
    np.testing.assert_array_equal(there, there.T)


def test_what_was_not_asked_for_is_said(solver_of):
    result = pi.rks(HYDROGENS, solver=solver_of())
    for name in ("charges_lowdin", "bond_orders", "quadrupole"):
        with pytest.raises(pi.UsageError, match="orbitals=True"):
            getattr(result, name)


def test_a_molecule_without_numbers_has_none_of_these(solver_of):
    radical = Molecule.from_symbols(["H", "H", "H"], [[0, 0, 0], [0, 0, 1], [0, 1, 1]])
    result = pi.rks([HYDROGENS, radical], solver=solver_of(), orbitals=True)
    assert result.status[1].startswith("invalid")
    assert np.isnan(result.charges_lowdin[1]).tolist() == [True] * 3
    assert np.isnan(result.bond_orders[1]).all()
    assert result.bond_orders[1].shape == (3, 3)
    assert np.isnan(result.quadrupole[1]).all()
    assert np.isfinite(result.quadrupole[0]).all()

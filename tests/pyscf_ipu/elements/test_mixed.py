"""Cartesian d with spherical f functions: the tables, and PySCF in their space."""

import numpy as np
import pytest
from oracle import WATER
from pyscf import gto, scf

from pyscf_ipu.elements.basis import element_basis
from pyscf_ipu.elements.basis_sets import QM9_BASIS, basis_tables
from pyscf_ipu.elements.cartesian import MIXED, in_words, is_cartesian, pyscf_cart
from pyscf_ipu.elements.free_atom import atomic_density, one_centre_integrals
from pyscf_ipu.elements.mixed import mixed_functions, with_functions


def water(basis, cart):
    atoms = list(zip(WATER.symbols, WATER.positions.tolist(), strict=True))
    tables = basis_tables(basis, WATER.numbers)
    return gto.M(atom=atoms, unit="Bohr", basis=tables, cart=pyscf_cart(cart), verbose=0)


def energy(basis, cart):
    field = with_functions(scf.RHF(water(basis, cart)), cart)
    field.conv_tol = 1e-11
    return field.kernel(), field


def test_which_functions_are_cartesian():
    assert [[is_cartesian(l, cart) for l in range(4)] for cart in (False, True, MIXED)] == [
        [False] * 4,
        [True] * 4,
        [True, True, True, False],
    ]
    assert [in_words(cart) for cart in (False, True, MIXED)] == [
        "spherical",
        "cartesian",
        "cartesian d, spherical f",
    ]


def test_the_number_of_functions():
    """Oxygen: 3 s, 2 p, 2 d and 1 f shell."""
    counts = [element_basis(8, QM9_BASIS, cart).n_ao for cart in (False, True, MIXED)]
    assert counts == [9 + 10 + 7, 9 + 12 + 10, 9 + 12 + 7]
    order = element_basis(8, QM9_BASIS, MIXED).pyscf_order
    assert sorted(order) == list(range(28))


def test_the_free_atom():
    density, (overlap, kinetic, _) = (
        atomic_density(8, QM9_BASIS, MIXED),
        one_centre_integrals(8, QM9_BASIS, MIXED),
    )
    assert np.vdot(density, overlap) == pytest.approx(8.0, abs=1e-8)
    spherical = one_centre_integrals(8, QM9_BASIS, False)
    assert np.vdot(density, kinetic) == pytest.approx(
        np.vdot(atomic_density(8, QM9_BASIS, False), spherical[1]), abs=1e-8
    )


def test_without_f_shells_they_are_the_cartesian_ones():
    mole = water("6-31g*", MIXED)
    np.testing.assert_array_equal(mixed_functions(mole), np.eye(mole.nao))
    assert energy("6-31g*", MIXED)[0] == pytest.approx(energy("6-31g*", True)[0], abs=1e-9)


def test_energies_lie_between_those_of_all_and_of_no_cartesian_functions():
    """The variational principle: each space holds the next."""
    cartesian, mixed, spherical = (energy(QM9_BASIS, cart) for cart in (True, MIXED, False))
    assert cartesian[0] < mixed[0] - 1e-5 < spherical[0] - 2e-5
    field = mixed[1]
    functions = mixed_functions(field.mol)
    assert field.mo_coeff.shape == functions.shape
    outside = field.mo_coeff - functions @ np.linalg.lstsq(functions, field.mo_coeff)[0]
    assert np.abs(outside).max() < 1e-10
    assert field.converged


def test_the_integrals_of_the_mixed_functions_give_the_same_energy():
    """An SCF over the functions themselves, from PySCF's cartesian integrals."""
    mole = water(QM9_BASIS, MIXED)
    functions = mixed_functions(mole)
    repulsion = mole.intor("int2e")
    for _ in range(4):  # each axis in turn
        repulsion = np.tensordot(repulsion, functions, ((0,), (0,)))
    kept = [functions.T @ mole.intor(f"int1e_{x}") @ functions for x in ("ovlp", "kin", "nuc")]
    field = scf.RHF(mole)
    field.get_ovlp = lambda *_: kept[0]
    field.get_hcore = lambda *_: kept[1] + kept[2]
    field._eri = repulsion
    field.conv_tol = 1e-11
    guess = np.linalg.pinv(functions)
    found = field.kernel(dm0=guess @ scf.hf.init_guess_by_atom(mole) @ guess.T)
    assert energy(QM9_BASIS, MIXED)[0] == pytest.approx(found, abs=1e-9)


def test_symmetry():
    """As the free atoms of a dataset are computed."""
    found = []
    for symmetry in ("D2h", False):
        tables = basis_tables(QM9_BASIS, [7])
        atom = gto.M(atom="N", basis=tables, spin=3, cart=True, symmetry=symmetry, verbose=0)
        field = with_functions(scf.UHF(atom), MIXED)
        field.conv_tol = 1e-11
        found.append(field.kernel())
        assert field.mo_coeff[0].shape[1] == 28
    assert found[0] == pytest.approx(found[1], abs=1e-8)

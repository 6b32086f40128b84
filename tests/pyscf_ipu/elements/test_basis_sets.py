"""Basis sets by name: against the Basis Set Exchange, and QM9's set against Gaussian's numbers."""

import basis_set_exchange
import numpy as np
import pytest
from pyscf import gto
from scipy import linalg

from pyscf_ipu.base.errors import InvalidMolecule, UnknownBasis
from pyscf_ipu.elements.basis import element_basis
from pyscf_ipu.elements.basis_sets import QM9_BASIS, element_shells, reaches_far, supported_basis
from pyscf_ipu.elements.spellings import SYMBOLS

ORGANIC = (1, 5, 6, 7, 8, 9, 14, 15, 16, 17)
SETS = {
    "6-31g*": (*ORGANIC, 35),
    "6-31+g*": ORGANIC,
    "6-311g**": (*ORGANIC, 18, 35),
    "def2-svp": (*ORGANIC, 18, 35),
    "def2-tzvp": (*ORGANIC, 18, 35),
    "def2-tzvpd": (*ORGANIC, 35),
    "def2-tzvppd": (*ORGANIC, 35),
    "cc-pvdz": (*ORGANIC, 18, 35),
    "cc-pvtz": (*ORGANIC, 18, 35),
    "aug-cc-pvdz": (*ORGANIC, 18, 35),
}


def of_the_exchange(name, number):
    """An element's shells of the Basis Set Exchange in PySCF's form."""
    shells = []
    table = basis_set_exchange.get_basis(name, elements=[number])["elements"][str(number)]
    for shell in table["electron_shells"]:
        ls = shell["angular_momentum"]
        for i, column in enumerate(shell["coefficients"]):
            pairs = zip(map(float, shell["exponents"]), map(float, column), strict=True)
            shells.append([ls[i % len(ls)], *([a, c] for a, c in pairs if c != 0.0)])
    return shells


def lost(one, other):
    """The largest part of a function of `one`, normalised, that is not in the span of `other`."""
    both = [gto.M(atom="Ne", basis=basis, charge=0, verbose=0) for basis in (one, other)]
    mine, theirs = (mole.intor("int1e_ovlp") for mole in both)
    across = gto.intor_cross("int1e_ovlp", *both)
    inside = across @ linalg.solve(theirs, across.T)
    return np.abs(1.0 - np.diag(inside) / np.diag(mine)).max()


@pytest.mark.parametrize("name", SETS)
def test_functions_are_those_of_the_basis_set_exchange(name):
    """They are given to seven digits in one and to ten in the other, and contracted otherwise."""
    for number in SETS[name]:
        ours, theirs = element_shells(name, SYMBOLS[number]), of_the_exchange(name, number)
        assert lost(ours, theirs) < 1e-9, SYMBOLS[number]
        assert lost(theirs, ours) < 1e-9, SYMBOLS[number]
        assert element_basis(number, name, False).n_ao > 1


def test_another_exponent_would_be_seen():
    shells = element_shells("def2-tzvp", "C")
    changed = [[l, [1.001 * row[0][0], 1.0]] if l == 3 else [l, *row] for l, *row in shells]
    assert lost(changed, of_the_exchange("def2-tzvp", 6)) > 1e-9


@pytest.mark.parametrize("name", [QM9_BASIS, "6-31G(2DF,P)", "631g(2df,p)"])
@pytest.mark.parametrize(("symbol", "f"), [("C", 0.8), ("N", 1.0), ("O", 1.4), ("F", 1.85)])
def test_qm9_s_set_is_gaussian_s(name, symbol, f):
    """Gaussian 09's and 16's --gfprint: the d shells are 6-31G*'s 0.8, doubled and halved."""
    shells = element_shells(name, symbol)
    assert [row for row in shells if row[0] > 1] == [
        [2, [1.6, 1.0]],
        [2, [0.4, 1.0]],
        [3, [f, 1.0]],
    ]
    assert [row for row in shells if row[0] < 2] == element_shells("6-31g", symbol)


def test_qm9_s_set_has_hydrogen_s_p_shell_of_6_31g_with_two_stars():
    assert element_shells(QM9_BASIS, "H") == element_shells("6-31g**", "H")


@pytest.mark.parametrize("symbol", ["He", "S", "Cl", "Br"])
def test_qm9_s_set_has_five_elements(symbol):
    with pytest.raises(InvalidMolecule, match=f"for H, C, N, O and F: .* no such set for {symbol}"):
        element_shells(QM9_BASIS, symbol)


def test_unknown_basis_names_the_choices():
    """And nothing else: PySCF's advice on packages would be an error here."""
    for name, near in (("sto-9g", "sto6g"), ("SVP", "def2svp"), ("cc-pvdzz", "ccpvdz")):
        words = rf"unknown basis '{name}' \(did you mean '{near}'\?\): .*sto-3g, 6-31g"
        with pytest.raises(UnknownBasis, match=words):
            supported_basis(name)
        assert supported_basis(near)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("6-31G(d)", "6-31g*"),
        ("6-31g(d,p)", "6-31g**"),
        ("6-311++G(d,p)", "6-311++g**"),
        ("631G**", "6-31g**"),
        ("STO3G", "sto-3g"),
        ("def2svp", "def2-svp"),
        ("Def2_TZVP", "def2-tzvp"),
        ("ccPVDZ", "cc-pvdz"),
    ],
)
def test_names_as_people_write_them(name, meant):
    for symbol in ("H", "C", "Cl"):
        assert element_shells(supported_basis(name), symbol) == element_shells(meant, symbol)


@pytest.mark.parametrize("name", ["6-31g(2d1f,1p)", "/tmp", "no/such.dat"])
def test_a_name_that_pyscf_takes_for_a_file_is_unknown(name):
    with pytest.raises(UnknownBasis, match="unknown basis"):
        supported_basis(name)


def test_an_element_whose_table_cannot_be_opened():
    """Carbon's can."""
    assert supported_basis("6-31g(2df,1p)")
    with pytest.raises(InvalidMolecule, match="has no functions for H"):
        element_shells("6-31g(2df,1p)", "H")


def test_a_core_potential_whose_table_cannot_be_opened_is_none():
    assert element_shells("dyall-2zp", "C")


def test_a_set_that_states_kappa_reaches_as_far_as_its_exponents_say():
    """In PySCF's form a number may stand before the primitives of a shell."""
    least = min(row[0] for shell in gto.basis.load("dyall-2zp", "C") for row in shell[2:])
    assert not reaches_far("dyall-2zp", below=0.999 * least)
    assert reaches_far("dyall-2zp", below=1.001 * least)


def test_a_basis_beyond_f_is_refused_as_a_whole():
    with pytest.raises(UnknownBasis, match="'cc-pvqz' has shells beyond f: use a PySCF basis"):
        supported_basis("cc-pvqz")


def test_an_element_with_a_shell_beyond_f():
    with pytest.raises(InvalidMolecule, match="'cc-pvtz' has shells beyond f for Fe"):
        element_basis(26, "cc-pvtz", False)

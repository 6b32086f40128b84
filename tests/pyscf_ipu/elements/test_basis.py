"""Basis tables: fused shells, normalisation, PySCF's order, and what is refused."""

import numpy as np
import pytest
from oracle import mole_of
from pyscf import gto

from pyscf_ipu import Molecule
from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.elements.basis import (
    cartesian_powers,
    element_basis,
    n_spherical,
    to_functions,
)

BASES = ["sto-3g", "6-31g", "6-31g*", "def2-svp", "cc-pvdz", "def2-tzvp"]


def test_pople_shells_are_fused():
    carbon = element_basis(6, "sto-3g", False)
    assert [k.parts for k in carbon.kinds] == [((0, 1),), ((0, 1), (1, 1))]
    assert [k.n_prim for k in carbon.kinds] == [3, 3]
    split = element_basis(6, "6-31g*", False)
    assert [(k.parts, k.n_prim) for k in split.kinds] == [
        (((0, 1),), 6),
        (((0, 1), (1, 1)), 3),
        (((0, 1), (1, 1)), 1),
        (((2, 1),), 1),
    ]
    chlorine = element_basis(17, "sto-3g", False)
    assert [k.ls for k in chlorine.kinds] == [(0,), (0, 1), (0, 1)]


def test_general_contraction_stays_one_shell():
    carbon = element_basis(6, "cc-pvdz", False)
    contracted = max(carbon.kinds, key=lambda k: k.n_prim)
    assert contracted.ls == (0,)
    assert contracted.parts[0][1] >= 2


@pytest.mark.parametrize("number", [1, 6, 17])
@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("cart", [False, True])
def test_counts_and_order_are_those_of_pyscf(number, basis, cart):
    table = element_basis(number, basis, cart)
    atom = mole_of(Molecule([number], np.zeros((1, 3)), charge=-(number % 2)), basis, cart)
    assert table.n_ao == atom.nao
    assert sorted(table.pyscf_order) == list(range(atom.nao))
    of_atom = [int(l) for i in range(atom.nbas) for l in [atom.bas_angular(i)] * atom.bas_nctr(i)]
    theirs = np.repeat(of_atom, [n_spherical(l, cart) for l in of_atom])
    ours = [l for k in table.kinds for l, n in k.parts for _ in range(n * n_spherical(l, cart))]
    np.testing.assert_array_equal(ours, theirs[table.pyscf_order])


@pytest.mark.parametrize("basis", BASES)
def test_radial_functions_are_normalised(basis):
    """Int R^2 r^2 dr = 1 for every contraction, times the constant of Y_lm that s and p carry."""
    for number in (1, 8, 16):
        table = element_basis(number, basis, False)
        for kind, a, c in zip(table.kinds, table.exponents, table.coefficients, strict=True):
            columns = [l for l, n in kind.parts for _ in range(n)]
            for column, l in enumerate(columns):
                overlap = gto.gaussian_int(2 * l + 2, a[:, None] + a[None])
                norm = c[:, column] @ overlap @ c[:, column]
                constant = (2 * l + 1) / (4 * np.pi) if l < 2 else 1.0
                assert norm == pytest.approx(constant, abs=1e-9)


def test_shell_transform_is_block_diagonal():
    kind = element_basis(6, "sto-3g", False).kinds[1]
    matrix = kind.transform()
    assert matrix.shape == (4, 4)
    assert np.count_nonzero(matrix - np.diag(np.diag(matrix))) == 0
    assert len(kind.components) == 4


@pytest.mark.parametrize("l", [0, 1, 2])
def test_cartesian_powers_and_functions(l):
    powers = cartesian_powers(l)
    assert len(set(powers)) == len(powers) == (l + 1) * (l + 2) // 2
    assert all(sum(p) == l for p in powers)
    assert to_functions(l, False).shape == (2 * l + 1, len(powers))
    assert to_functions(l, True).shape == (len(powers), len(powers))


@pytest.mark.parametrize(
    ("number", "basis", "words"),
    [
        (87, "sto-3g", "element 87 is not supported: use H to Rn"),
        (0, "sto-3g", "element 0"),
        (1, "cc-pcvdz", "'cc-pcvdz' has no functions for H: choose another basis"),
        (17, "lanl2dz", "replaces core electrons of Cl by a potential"),
    ],
)
def test_elements_that_a_basis_cannot_serve(number, basis, words):
    with pytest.raises(InvalidMolecule, match=words):
        element_basis(number, basis, False)

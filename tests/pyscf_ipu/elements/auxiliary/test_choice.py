"""The auxiliary functions of an element are those of PySCF's `density_fit()`."""

import numpy as np
import pytest
from pyscf import df, dft, gto

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.elements.auxiliary import choice
from pyscf_ipu.elements.auxiliary.choice import auxiliary_shells, pyscf_auxiliary_basis
from pyscf_ipu.elements.basis_sets import pyscf_basis

CASES = [
    ("sto-3g", "hf", "C", 6),
    ("def2-tzvp", "b3lyp", "F", 9),
    ("def2-tzvp", "pbe,pbe", "C", 6),  # a set for Coulomb alone
    ("6-31g*", "pbe,pbe", "N", 7),  # has none of these
    ("pcseg-1", "pbe0", "O", 8),  # even-tempered
    ("6-31g(2df,p)", "b3lyp", "C", 6),  # not a name for PySCF: even-tempered
    ("def2-svp", "428", "H", 1),
]


@pytest.mark.parametrize(("basis", "xc", "symbol", "number"), CASES)
def test_shells_are_those_of_density_fit(basis, xc, symbol, number):
    mole = gto.M(
        atom=[[symbol, (0, 0, 0)]], basis=pyscf_basis(basis, [number]), spin=number % 2, verbose=0
    )
    field = dft.UKS(mole, xc=xc).density_fit()
    expected = df.make_auxmol(mole, field.with_df.auxbasis)
    theirs = sorted(
        (expected.bas_angular(i), len(expected.bas_exp(i)), *np.sort(expected.bas_exp(i)))
        for i in range(expected.nbas)
    )
    found = auxiliary_shells(number, basis, xc)
    ours = sorted((s.l, len(s.exponents), *np.sort(s.exponents)) for s in found)
    assert ours == theirs
    assert [s.l for s in found] == sorted(s.l for s in found)


@pytest.mark.parametrize(
    ("basis", "xc", "sets"),
    [
        ("dzvp", "b3lyp", {"Br": "def2-universal-jkfit", "I": None}),
        ("DZVP", "pbe,pbe", {"O": "def2-universal-jkfit"}),
        ("def2-mtzvpp", "r2scan", {"O": "def2-universal-jfit", "Br": "def2-universal-jfit"}),
        ("def2-mtzvp", "327", {"Cl": "def2-universal-jfit"}),
        ("def2-mtzvpp", "pbe0", {"O": "def2-tzvpp-jkfit"}),
    ],
)
def test_ao_sets_with_another_one(basis, xc, sets):
    """None: even-tempered, since the named set fits no core electrons."""
    for symbol, name in sets.items():
        number = gto.charge(symbol)
        mole = gto.M(atom=[[symbol, (0, 0, 0)]], basis=basis, spin=number % 2, verbose=0)
        expected = df.make_auxmol(mole, name)
        found = auxiliary_shells(number, basis, xc)
        assert sum(2 * s.l + 1 for s in found) == expected.nao
        chosen = pyscf_auxiliary_basis(mole, basis, xc)
        assert df.make_auxmol(mole, chosen).nao == expected.nao
        assert (chosen or {symbol: name})[symbol] == name or name is None


@pytest.mark.parametrize(("number", "l"), [(26, 6), (35, 5), (53, 5)])
def test_heavier_elements_have_h_and_i_shells(number, l):
    assert max(s.l for s in auxiliary_shells(number, "def2-svp", "b3lyp")) == l


def test_shells_beyond_i_are_refused(monkeypatch):
    """Of the elements that are computed none has them: the limit is lowered."""
    monkeypatch.setattr(choice, "MAX_L", 4)
    with pytest.raises(InvalidMolecule, match="auxiliary basis of Se beside 'def2-svp' has shells"):
        auxiliary_shells.__wrapped__(34, "def2-svp", "b3lyp")

"""Functionals, basis sets and values from books: levels of theory beside the default one."""

import numpy as np
import pytest
from oracle import HYDROGEN, WATER, ground_state

from pyscf_ipu import Molecule, rks
from pyscf_ipu.xc.registry import functional
from pyscf_ipu.xc.suffixes.names import FUNCTIONALS

pytestmark = pytest.mark.slow


def test_no_empty_orbital_no_lumo(solver_of):
    """Helium has one AO: there is a HOMO and nothing above it."""
    helium = rks(Molecule([2], [[0, 0, 0]]), solver=solver_of(precision="float64", xc="hf"))
    assert helium.energy == pytest.approx(-2.807784, abs=1e-6)
    assert helium.homo < 0
    assert np.isnan(helium.lumo)
    assert np.isnan(helium.gap)


def test_szabo_ostlund_hydrogen(solver_of):
    """A. Szabo, N. S. Ostlund, Modern Quantum Chemistry, sec. 3.5.2: H2, STO-3G, R = 1.4 Bohr."""
    result = rks(HYDROGEN, solver=solver_of(precision="float64", xc="hf"))
    assert result.energy == pytest.approx(-1.1167, abs=5e-5)
    assert result.homo == pytest.approx(-0.578, abs=5e-4)
    assert result.lumo == pytest.approx(0.670, abs=5e-4)
    assert result.energy_terms["nuclear_repulsion"] == pytest.approx(1 / 1.4, abs=1e-12)


def test_water_of_the_programming_project(solver_of):
    """D. Crawford's programming project 3: RHF/STO-3G water, whose energy psi4 confirms."""
    positions = [
        [0.000000000000, -0.143225816552, 0.000000000000],
        [1.638036840407, 1.136548822547, 0.000000000000],
        [-1.638036840407, 1.136548822547, 0.000000000000],
    ]
    water = Molecule([8, 1, 1], positions)
    result = rks(water, solver=solver_of(precision="float64", xc="hf"))
    assert result.energy == pytest.approx(-74.942079928192, abs=1e-7)
    assert result.energy_terms["nuclear_repulsion"] == pytest.approx(8.002367061810450, abs=1e-8)


# Four atoms with s functions only: a program that compiles in seconds.
TWO_DIHYDROGENS = Molecule([1, 1, 1, 1], [[0, 0, 0], [0, 0, 1.4], [2.5, 0.3, 0], [2.6, 0.9, 1.5]])


ONE_OF_A_KIND = ("r2scan",)
"""Of kinetic energy densities.  Fock matrices of densities, of gradients and of two ranges of
exchange are compared in `test_hamiltonian.py`, all functionals point by point with libxc, and
wB97X's energy in `commands/test_shell.py`."""


@pytest.mark.parametrize(
    "xc",
    [
        pytest.param(xc, marks=[] if xc in ONE_OF_A_KIND else pytest.mark.long)
        for xc in FUNCTIONALS
        if xc not in ("b3lyp", "hf")
    ],
)
def test_every_functional_in_a_self_consistent_field(solver_of, xc):
    """B3LYP and Hartree-Fock are what the other tests compute with; dispersion has its own."""
    added = functional(xc).dispersion
    if added is not None and added.packages:
        pytest.importorskip(added.packages[0])
    solver = solver_of(precision="float64", xc=xc, nlc_grid=0)
    result = rks(TWO_DIHYDROGENS, solver=solver)
    reference = ground_state(TWO_DIHYDROGENS, basis=solver.settings.basis, xc=xc)
    assert sum(result.energy_terms.values()) == pytest.approx(reference.e_tot, abs=1e-7)
    np.testing.assert_allclose(result.mo_energy, reference.mo_energy, rtol=0, atol=1e-6)


def test_d_shells_end_to_end(solver_of):
    level = {"basis": "6-31g*", "xc": "hf"}
    result = rks(WATER, solver=solver_of(precision="float64", **level), orbitals=True)
    reference = ground_state(WATER, **level)
    assert result.energy == pytest.approx(reference.e_tot, abs=1e-7)
    np.testing.assert_allclose(result.mo_energy, reference.mo_energy, rtol=0, atol=1e-6)
    assert reference.energy_tot(dm=result.density_matrix) == pytest.approx(result.energy, abs=1e-8)

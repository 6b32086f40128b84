"""Levels of theory with f shells: energies, orbital energies and forces against PySCF."""

import numpy as np
import pytest
from oracle import WATER, ground_state, molecule

from pyscf_ipu import Settings, rks
from pyscf_ipu.commands.report import pyscf_field
from pyscf_ipu.elements.basis_sets import QM9_BASIS
from pyscf_ipu.elements.cartesian import MIXED
from pyscf_ipu.nanodft.table import pyscf_forces

pytestmark = pytest.mark.slow

FLUORIDE = molecule("F 0.1 0 0; H 0.3 0.5 0.8")
METHANE = molecule(
    "C 0 0.01 0; H 0.63 0.63 0.63; H 0.63 -0.63 -0.63; H -0.63 0.63 -0.63; H -0.63 -0.63 0.7"
)
MONOXIDE = molecule("C 0.1 -0.2 0.3; O 0.3 0.4 1.3")
LEVELS = {
    "hydrogen fluoride": (FLUORIDE, {"basis": QM9_BASIS, "cart": MIXED, "xc": "hf"}),
    "water": (WATER, {"basis": "def2-tzvp", "xc": "hf"}),
    # Carbon has one p shell less than the slots that it shares with oxygen.
    "carbon monoxide": (MONOXIDE, {"basis": "def2-tzvpd", "xc": "hf"}),
    "methane": (METHANE, {"basis": QM9_BASIS, "cart": MIXED, "xc": "b3lyp"}),
}
CASES = [
    pytest.param(name, marks=[] if name == "hydrogen fluoride" else pytest.mark.long)
    for name in LEVELS
]


@pytest.mark.parametrize("name", CASES)
def test_energies_are_those_of_pyscf(solver_of, name):
    mol, level = LEVELS[name]
    found = rks(mol, solver=solver_of(precision="float64", **level))
    field = pyscf_field(mol, Settings(grid_level=0, precision="float64", **level))
    assert field.converged
    assert found.energy == pytest.approx(field.e_tot, abs=1e-7)
    np.testing.assert_allclose(found.mo_energy, field.mo_energy, rtol=0, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("name", LEVELS)
def test_forces_are_those_of_pyscf(solver_of, name):
    mol, level = LEVELS[name]
    found = rks(mol, solver=solver_of(precision="float64", **level), forces=True)
    field = pyscf_field(mol, Settings(grid_level=0, precision="float64", **level))
    expected = pyscf_forces(field)
    assert np.abs(expected).max() > 1e-2
    np.testing.assert_allclose(found.forces, expected, rtol=0, atol=1e-6)


@pytest.mark.long
def test_range_separated_exchange(solver_of):
    """The error function's interaction, of orders known at run time."""
    level = {"basis": "def2-tzvp", "xc": "wb97x"}
    found = rks(FLUORIDE, solver=solver_of(precision="float64", **level), forces=True)
    field = ground_state(FLUORIDE, **level)
    assert found.energy == pytest.approx(field.e_tot, abs=1e-7)
    np.testing.assert_allclose(found.mo_energy, field.mo_energy, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.forces, pyscf_forces(field), rtol=0, atol=1e-6)


@pytest.mark.long
def test_float32_is_near(solver_of):
    mol, level = LEVELS["hydrogen fluoride"]
    wide = rks(mol, solver=solver_of(precision="float64", **level), forces=True)
    narrow = rks(mol, solver=solver_of(**level), forces=True)
    assert narrow.energy == pytest.approx(wide.energy, abs=1e-4)
    assert narrow.gap == pytest.approx(wide.gap, abs=1e-5)
    np.testing.assert_allclose(narrow.forces, wide.forces, rtol=0, atol=1e-4)

"""Cycles on few points of the grid: the results are those of all points in every cycle."""

import functools

import numpy as np
import pytest
import scipy.linalg
from oracle import mole_of, small
from pyscf import dft

from pyscf_ipu import Molecule, Settings, Solver, rks
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM

pytestmark = pytest.mark.slow

LEVEL = {"basis": "sto-3g", "xc": "b3lyp", "grid_level": 0}
FORMALDEHYDE = small("formaldehyde")  # of the shape that most tests have
TWO_DIHYDROGENS = Molecule([1, 1, 1, 1], [[0, 0, 0], [0, 0, 1.4], [2.5, 0.3, 0], [2.6, 0.9, 1.5]])


PRECISIONS = [pytest.param("float32", marks=pytest.mark.long), "float64"]
HOW = [
    ({}, 2e-4, 1e-4),
    pytest.param({"accuracy": "energy"}, 1e-3, 5e-4, marks=pytest.mark.long),
]


@functools.cache
def found(precision, **how):
    return rks(FORMALDEHYDE, solver=Solver(Settings(**LEVEL, precision=precision, **how)))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("how", "density", "threshold"), HOW)
def test_results_are_those_of_all_points(precision, how, density, threshold):
    """Energies to second order in the threshold, levels, dipole and charges to first order."""
    full, coarse = found(precision, first_cycles="full"), found(precision, **how)
    assert coarse.status == "converged"
    assert coarse.energy == pytest.approx(full.energy, abs=3e-6)
    np.testing.assert_allclose(coarse.mo_energy, full.mo_energy, atol=0.1 * density)
    np.testing.assert_allclose(coarse.dipole, full.dipole, atol=density)
    np.testing.assert_allclose(coarse.mulliken_charges, full.mulliken_charges, atol=density)
    assert coarse.cycles <= found(precision).cycles
    assert coarse.commutator_norm < threshold


def test_a_torn_bond_is_computed_with_all_points_from_the_first_cycle_on():
    """F2 at 3.5 angstrom: few points would lead to a state 35 meV above."""
    torn = Molecule([9, 9], [[0, 0, 0], [0, 0, 3.5 / BOHR_TO_ANGSTROM]])
    results = [
        rks(torn, solver=Solver(Settings(**LEVEL, precision="float64", first_cycles=how)))
        for how in ("coarse", "full")
    ]
    assert [r.status for r in results] == ["converged"] * 2
    assert results[0].cycles == results[1].cycles
    assert results[0].energy == pytest.approx(results[1].energy, abs=1e-9)


def test_levels_are_those_of_the_fock_matrix_of_the_density():
    """B2, compressed, turns its degenerate orbitals for many cycles.

    Extrapolated Fock matrices of before hold levels 0.2 to 70 meV off, which no commutator sees.
    """
    squeezed = Molecule([5, 5], [[0, 0, 0], [0, 0, 1.27 / BOHR_TO_ANGSTROM]])
    found = rks(squeezed, solver=Solver(Settings(**LEVEL, precision="float64")), orbitals=True)
    assert found.status == "converged"
    field = dft.RKS(mole_of(squeezed), xc="b3lypg")
    field.grids.level = 0
    fock = field.get_fock(dm=found.density_matrix)
    levels = scipy.linalg.eigh(fock, field.get_ovlp(), eigvals_only=True)
    np.testing.assert_allclose(found.mo_energy, levels, atol=1e-6)


def test_the_last_cycle_sees_all_points():
    """An energy that has not converged is that of the level's grid all the same."""
    level = LEVEL | {"xc": "lda", "max_cycles": 1}
    one = [
        rks(TWO_DIHYDROGENS, solver=Solver(Settings(**level, first_cycles=how)))
        for how in ("coarse", "full")
    ]
    assert [r.status for r in one] == ["not_converged"] * 2
    assert one[0].energy == pytest.approx(one[1].energy, abs=1e-6)

"""Damping, late DIIS and level shift: same result, and one where nothing else leads to it."""

import numpy as np
import pytest

import pyscf_ipu as pi
from pyscf_ipu.scf.convergence import Convergence

pytestmark = pytest.mark.slow

WATER = pi.Molecule([8, 1, 1], [[0, 0, 0.2], [0, 1.43, -0.88], [0, -1.43, -0.88]])
SALT = pi.Molecule([11, 17], [[0, 0, 0], [0, 0, 9.45]])  # 5 angstrom: nearly two radicals


@pytest.fixture(scope="module")
def solver(solver_of):
    return solver_of()


def solve(solver, mol, convergence):
    return solver.run(solver.shape(mol), [mol], convergence=convergence)[0]


@pytest.mark.parametrize(
    "aids",
    [
        Convergence(damping=0.3, diis_start=5),
        Convergence(level_shift_hartree=0.3),
        Convergence(damping=0.3, diis_start=1000, level_shift_hartree=0.2),
    ],
)
def test_aids_change_the_way_and_not_the_result(solver, aids):
    plain, aided = (solve(solver, WATER, c) for c in (Convergence(), aids))
    assert plain.converged
    assert aided.converged
    assert aided.cycles > plain.cycles
    assert aided.energy == pytest.approx(plain.energy, abs=2e-5)
    # The levels of the empty orbitals are without the shift.
    np.testing.assert_allclose(aided.mo_energy, plain.mo_energy, atol=1e-4)


def test_a_level_shift_finds_what_diis_does_not(solver):
    plain = solve(solver, SALT, Convergence())
    aided = solve(solver, SALT, Convergence(0.5, 1000, 0.3))
    assert not plain.converged
    assert aided.converged
    assert np.isnan(plain.energy)  # it ends far from any solution
    assert aided.energy < -600


def test_a_slow_approach_is_not_taken_for_rounding(solver):
    """Stretched fluorine: both atoms are alike, so that the dipole tells how far it is."""
    fluorine = pi.Molecule([9, 9], [[0, 0, -2.27], [0, 0, 2.27]])
    found = solve(solver, fluorine, Convergence(0.5, 1000, 0.3))
    assert found.converged
    assert found.commutator_norm < 2e-4
    assert np.abs(found.dipole).max() < 5e-4


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((1.0,), "damping 1.0"),
        ((-0.1,), "damping"),
        ((0.0, -1), "diis_start"),
        ((0.0, 0, -0.1), "level_shift_hartree"),
        ((0.0, 0, float("nan")), "level_shift_hartree"),
    ],
)
def test_values_out_of_range_are_named(values, words):
    with pytest.raises(ValueError, match=words):
        Convergence(*values)

"""Forces, as a user meets them: against PySCF, finite differences and invariances."""

import inspect

import numpy as np
import pytest
from oracle import HYDROGEN, SMALL, WATER, ground_state, small

import pyscf_ipu as pi
from pyscf_ipu import Molecule, Settings, Solver, rks
from pyscf_ipu.base.errors import ConvergenceError, InvalidMolecule

pytestmark = pytest.mark.slow

NAMES = tuple(SMALL)
RADICAL = Molecule([8, 1], [[0, 0, 0], [0, 0, 1.8]])


def gradient(field):
    """PySCF's, with the derivatives of grid points and weights."""
    method = field.nuc_grad_method()
    method.verbose, method.grid_response = 0, True
    return method.kernel()


@pytest.fixture(scope="module")
def double(solver_of):
    return solver_of(precision="float64")


@pytest.fixture(scope="module")
def single(solver_of):
    return solver_of()


@pytest.fixture(scope="module")
def references():
    return [gradient(ground_state(small(name))) for name in NAMES[:4]]


@pytest.mark.slow
def test_float64_forces_are_those_of_pyscf(double, references):
    """Hydrogen cyanide is linear and formaldehyde planar: E that are zero have derivatives."""
    mols = [small(name) for name in NAMES[:4]]
    for force, expected in zip(pi.forces(mols, solver=double), references, strict=True):
        assert np.abs(expected).max() > 1e-2
        np.testing.assert_allclose(force, -expected, rtol=0, atol=1e-7)


@pytest.mark.long
def test_float32_forces_are_those_of_pyscf(single, references):
    mols = [small(name) for name in NAMES[:4]]
    for force, expected in zip(pi.forces(mols, solver=single), references, strict=True):
        assert force.dtype == np.float64
        np.testing.assert_allclose(force, -expected, rtol=0, atol=2e-5)


LEVELS = {
    "cartesian d shells, exact exchange": {"basis": "6-31g*", "xc": "hf", "cart": True},
    "generalised gradients": {"basis": "6-31g", "xc": "blyp", "grid_level": 3},
    "kinetic energy densities": {"basis": "sto-3g", "xc": "m06-2x"},
    "a hybrid, mixed": {"basis": "sto-3g", "xc": "pbe0", "precision": "mixed"},
}


@pytest.mark.long
@pytest.mark.parametrize("name", LEVELS)
def test_forces_at_other_levels(name):
    level = Settings(**{"precision": "float64", "grid_level": 0, **LEVELS[name]})
    field = ground_state(WATER, level.basis, level.xc, level.grid_level, level.cart)
    expected = gradient(field)
    assert np.abs(expected).max() > 1e-2
    found = pi.forces(WATER, solver=Solver(level))
    bound = 1e-5 if level.precision == "mixed" else 1e-7
    np.testing.assert_allclose(found, -expected, rtol=0, atol=bound)


def test_arguments_stand_where_those_of_rks_do(single):
    level = list(inspect.signature(rks).parameters)[:7]
    assert list(inspect.signature(pi.forces).parameters)[:7] == level
    force = pi.forces(
        small("methanol"),
        basis="sto-3g",
        xc="b3lyp",
        grid_level=0,
        precision="float32",
        solver=single,
    )
    np.testing.assert_array_equal(force, pi.forces(small("methanol"), solver=single))
    with pytest.raises(ValueError, match="contradicts the solver"):
        pi.forces(small("methanol"), basis="6-31g", solver=single)


def test_forces_are_the_slope_of_the_energy(double):
    """Along random directions, at a step that leaves an error of 1e-7 in the slope."""
    mol, step = small("methylammonium"), 1e-4
    rng = np.random.default_rng(3)
    directions = rng.normal(size=(4, mol.n_atoms, 3))
    moved = [
        Molecule(mol.numbers, mol.positions + sign * step * d, mol.charge)
        for d in directions
        for sign in (1, -1)
    ]
    energy = rks(moved, solver=double).energy
    slopes = (energy[::2] - energy[1::2]) / (2 * step)
    force = pi.forces(mol, solver=double)
    np.testing.assert_allclose(-np.einsum("dax,ax->d", directions, force), slopes, atol=1e-6)


def test_forces_move_with_the_molecule_and_add_up_to_nothing(double):
    mol = small("methanol")
    force = pi.forces(mol, solver=double)
    np.testing.assert_allclose(force.sum(0), 0, atol=1e-11)
    order = np.random.default_rng(0).permutation(mol.n_atoms)
    other = Molecule(mol.numbers[order], mol.positions[order] + [3.0, -20.0, 7.0])
    np.testing.assert_allclose(pi.forces(other, solver=double), force[order], atol=1e-9)


def test_a_list_with_a_bad_molecule(single):
    mols = [small("methanol"), RADICAL, small("formaldehyde")]
    found = rks(mols, solver=single, forces=True)
    assert found.forces is not None
    assert [f.shape for f in found.forces] == [(m.n_atoms, 3) for m in mols]
    assert [bool(np.isfinite(f).all()) for f in found.forces] == [True, False, True]
    assert np.isnan(found.forces[1]).all()
    assert found.status[1].startswith("invalid: ")
    np.testing.assert_array_equal(pi.forces(mols[0], solver=single), found.forces[0])
    with pytest.raises(InvalidMolecule, match="odd number"):
        pi.forces(RADICAL, solver=single)
    assert rks(mols[:1], solver=single).forces is None


def test_mulliken_charges(double):
    for name in ("methanol", "methylammonium"):
        mol, field = small(name), ground_state(small(name))
        charges = rks(mol, solver=double).mulliken_charges
        np.testing.assert_allclose(charges, field.mulliken_pop(verbose=0)[1], atol=1e-6)
        assert charges.sum() == pytest.approx(mol.charge, abs=1e-9)


def test_forces_of_a_density_that_did_not_converge_are_not_numbers():
    hurried = Solver(Settings(xc="hf", max_cycles=2, grid_level=0))
    found = rks(HYDROGEN, solver=hurried, forces=True)
    assert found.status == "not_converged"
    assert np.isnan(found.forces).all()
    with pytest.raises(ConvergenceError):
        pi.forces(HYDROGEN, solver=hurried, throw=True)

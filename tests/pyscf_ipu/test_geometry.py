"""Optimised geometries, and the ASE calculator: minima are those of PySCF."""

import numpy as np
import pytest
from ase import Atoms
from ase.md.verlet import VelocityVerlet
from ase.units import fs
from oracle import ground_state, small

import pyscf_ipu as pi
from pyscf_ipu import Molecule
from pyscf_ipu.errors import ConvergenceError, InvalidMolecule
from pyscf_ipu.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV

RADICAL = Molecule([8, 1], [[0, 0, 0], [0, 0, 1.8]])


@pytest.fixture(scope="module")
def solver(solver_of):
    """float32 B3LYP/STO-3G, shared with the tests of forces."""
    return solver_of()


def atoms_of(mol):
    return Atoms(mol.symbols, mol.positions * BOHR_TO_ANGSTROM)


def test_a_list_is_optimised_together(solver):
    mols = [small("formaldehyde"), RADICAL, small("hydrogen cyanide")]
    found = pi.optimize(mols, solver=solver)
    assert [f.converged for f in found] == [True, False, True]
    assert found[1].message.startswith("invalid: ")
    for start, end in ((mols[0], found[0]), (mols[2], found[2])):
        field = ground_state(end.molecule)
        method = field.nuc_grad_method()
        method.verbose, method.grid_response = 0, True
        assert np.abs(method.kernel()).max() < 1.5e-4
        assert end.energy == pytest.approx(field.e_tot, abs=1e-4)
        assert end.energy < end.energies[0] - 1e-3
        np.testing.assert_array_equal(end.positions[0], start.positions)
        np.testing.assert_array_equal(end.positions[-1], end.molecule.positions)
        assert end.energies.shape == end.positions.shape[:1]
        assert np.linalg.norm(end.forces, axis=1).max() < 1e-4
        assert "converged after" in end.message


def test_an_optimisation_may_run_out_of_steps(solver):
    found = pi.optimize(small("methanol"), solver=solver, max_steps=1)
    assert not found.converged
    assert len(found.energies) == 2
    assert found.message.startswith("not converged after 1 steps")


def test_what_cannot_be_optimised(solver):
    with pytest.raises(InvalidMolecule, match="odd number"):
        pi.optimize(RADICAL, solver=solver)
    with pytest.raises(ValueError, match="max_steps=-1"):
        pi.optimize(small("methanol"), solver=solver, max_steps=-1)
    with pytest.raises(ValueError, match="no setting 'bases'"):
        pi.optimize(small("methanol"), bases="sto-3g")


def test_the_calculator_has_ase_s_units(solver):
    mol = small("methylammonium")
    atoms = atoms_of(mol)
    atoms.calc = pi.Calculator(charge=1, solver=solver)
    expected = pi.rks(mol, solver=solver, forces=True)
    assert atoms.get_potential_energy() == pytest.approx(expected.energy * HARTREE_TO_EV, abs=1e-4)
    forces = expected.forces * HARTREE_TO_EV / BOHR_TO_ANGSTROM
    np.testing.assert_allclose(atoms.get_forces(), forces, atol=1e-3)
    np.testing.assert_allclose(atoms.get_charges(), expected.mulliken_charges, atol=1e-4)
    dipole = expected.dipole * BOHR_TO_ANGSTROM
    np.testing.assert_allclose(atoms.get_dipole_moment(), dipole, atol=1e-3)


def test_molecular_dynamics_keeps_the_energy(solver):
    atoms = atoms_of(small("formaldehyde"))
    atoms.calc = pi.Calculator(solver=solver)
    totals = []
    dynamics = VelocityVerlet(atoms, timestep=0.25 * fs)
    dynamics.attach(lambda: totals.append(atoms.get_total_energy()))
    dynamics.run(12)
    assert len(totals) == 13
    assert atoms.get_kinetic_energy() > 0.02
    assert np.ptp(totals) < 0.05 * atoms.get_kinetic_energy()


def test_calculator_errors(solver, shared_programs):
    atoms = atoms_of(small("methanol"))
    atoms.pbc = True
    atoms.calc = pi.Calculator(solver=solver)
    with pytest.raises(InvalidMolecule, match="periodic"):
        atoms.get_potential_energy()
    with pytest.raises(ValueError, match="unknown functional"):
        pi.Calculator(xc="nonsense")
    hydrogen = Atoms("H2", [[0, 0, 0], [0, 0, 0.74]])
    hydrogen.calc = pi.Calculator(xc="hf", max_cycles=2)
    with pytest.raises(ConvergenceError, match="not_converged after 2 cycles"):
        hydrogen.get_potential_energy()

"""Optimised geometries, and the ASE calculator: minima are those of PySCF."""

import copy
import inspect
import pickle
from dataclasses import asdict

import numpy as np
import pytest
from ase import Atoms
from ase.constraints import FixAtoms
from ase.io import read
from ase.md.verlet import VelocityVerlet
from ase.optimize import BFGS
from ase.units import fs
from oracle import ground_state, small

import pyscf_ipu as pi
from pyscf_ipu import Molecule
from pyscf_ipu.base.errors import ConvergenceError, InvalidMolecule, UnknownBasis
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV

RADICAL = Molecule([8, 1], [[0, 0, 0], [0, 0, 1.8]])
DUMMY = Molecule([0, 1, 1], [[0, 0, 0], [0, 0, 3], [0, 0, 4.4]])
NO_ELEMENT = Molecule([200], [[0, 0, 0]])


@pytest.fixture(scope="module")
def solver(solver_of):
    """float32 B3LYP/STO-3G, shared with the tests of forces."""
    return solver_of()


def atoms_of(mol):
    return Atoms(mol.symbols, mol.positions * BOHR_TO_ANGSTROM)


def test_a_list_is_optimised_together(solver):
    mols = [small("formaldehyde"), RADICAL, small("hydrogen cyanide"), DUMMY, NO_ELEMENT]
    found = pi.optimize(mols, solver=solver)
    assert [f.converged for f in found] == [True, False, True, False, False]
    for b, words in ((1, "odd number"), (3, "element number 0"), (4, "element number 200")):
        assert found[b].message.startswith("invalid: ")
        assert words in found[b].message
        assert found[b].molecule is mols[b]
        assert np.isnan(found[b].energy)
    for start, end in ((mols[0], found[0]), (mols[2], found[2])):
        field = ground_state(end.molecule)
        method = field.nuc_grad_method()
        method.verbose, method.grid_response = 0, True
        assert np.abs(method.kernel()).max() < 1.5e-4
        assert end.energy == pytest.approx(field.e_tot, abs=1e-4)
        assert end.energy < end.energies[0] - 1e-3
        np.testing.assert_array_equal(end.trajectory[0], start.positions)
        np.testing.assert_array_equal(end.trajectory[-1], end.positions)
        assert end.energies.shape == end.trajectory.shape[:1]
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
    with pytest.raises(UnknownBasis, match="unknown basis 'sto-9g'"):
        pi.optimize(small("methanol"), basis="sto-9g")


@pytest.mark.parametrize("function", [pi.rks, pi.forces, pi.optimize, pi.Calculator])
def test_the_level_of_theory_is_given_alike_everywhere(function):
    parameters = list(inspect.signature(function).parameters.values())
    start = 0 if function is pi.Calculator else 1
    expected = list(inspect.signature(pi.rks).parameters.values())[1:5]
    assert [p.name for p in expected] == ["basis", "xc", "grid_level", "precision"]
    assert parameters[start : start + 4] == expected
    given = () if function is pi.Calculator else (small("methanol"),)
    with pytest.raises(TypeError, match="unexpected keyword argument 'bases'"):
        function(*given, bases="sto-3g")


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


def test_what_a_calculator_computes_with_is_recorded(solver, tmp_path):
    level = {"basis": "6-31g", "xc": "pbe", "grid_level": 1, "precision": "float64"}
    named = pi.Calculator(**level, charge=-1)
    assert named.name == "pyscf_ipu"
    assert named.todict() == {**asdict(pi.Settings(**level)), "charge": -1}
    atoms = atoms_of(small("methanol"))
    atoms.calc = pi.Calculator(solver=solver)
    energy = atoms.get_potential_energy()
    atoms.write(tmp_path / "step.traj")
    kept = read(tmp_path / "step.traj").calc
    assert (kept.name, kept.results["energy"]) == ("pyscf_ipu", energy)
    assert kept.parameters == atoms.calc.parameters
    assert (kept.parameters["xc"], kept.parameters["charge"]) == ("b3lyp", 0)


def test_a_changed_parameter_drops_the_results(solver):
    atoms = atoms_of(small("methylammonium"))
    calc = atoms.calc = pi.Calculator(charge=1, solver=solver)
    energy = atoms.get_potential_energy()
    assert calc.set(xc="b3lyp", charge=1) == {}
    assert calc.results["energy"] == energy
    for wrong, error in (({"bases": "6-31g"}, TypeError), ({"xc": "m06", "charge": 2}, ValueError)):
        with pytest.raises(error):
            calc.set(**wrong)
    assert (calc.results["energy"], calc.charge, calc.solver) == (energy, 1, solver)
    calc.charge = 2
    assert calc.results == {}
    with pytest.raises(InvalidMolecule, match="odd number"):
        atoms.get_potential_energy()
    calc.charge = 1
    assert atoms.get_potential_energy() == energy
    assert calc.set(xc="pbe", max_cycles=70) == {"xc": "pbe", "max_cycles": 70}
    assert calc.results == {}
    assert calc.solver.settings == pi.Settings(xc="pbe", grid_level=0, max_cycles=70)
    assert (calc.parameters["xc"], calc.parameters["charge"]) == ("pbe", 1)


def test_a_failed_calculation_leaves_no_results(solver):
    calc = pi.Calculator(solver=solver)
    calc.calculate(atoms_of(small("methanol")))
    assert calc.results["energy"] < 0
    radical = atoms_of(RADICAL)
    with pytest.raises(InvalidMolecule, match="odd number"):
        calc.calculate(radical)
    with pytest.raises(InvalidMolecule, match="odd number"):
        calc.get_property("energy", radical)


def test_copies_of_a_calculator(solver):
    atoms = atoms_of(small("methanol"))
    atoms.calc = pi.Calculator(solver=solver)
    energy = atoms.get_potential_energy()
    assert solver._programs
    for other in (copy.deepcopy(atoms.calc), pickle.loads(pickle.dumps(atoms.calc))):
        assert other.get_property("energy", atoms) == energy
        assert other.parameters == atoms.calc.parameters
        assert other.solver.settings == solver.settings
        other.set(charge=2)
        assert atoms.calc.results["energy"] == energy
    shared = copy.deepcopy(atoms.calc)
    shared.reset()
    assert shared.solver is solver
    assert shared.get_property("energy", atoms) == energy


def test_constraints_are_kept_by_the_calculator(solver):
    atoms = atoms_of(small("methanol"))
    start = atoms.positions.copy()
    atoms.set_constraint(FixAtoms([0]))
    atoms.calc = pi.Calculator(solver=solver)
    BFGS(atoms, logfile=None).run(steps=1)
    moved = np.abs(atoms.positions - start).max(axis=1)
    assert moved[0] == 0
    assert moved.max() > 1e-3


def test_calculator_errors(solver):
    atoms = atoms_of(small("methanol"))
    atoms.pbc = True
    atoms.calc = pi.Calculator(solver=solver)
    with pytest.raises(InvalidMolecule, match="periodic"):
        atoms.get_potential_energy()
    atoms.pbc = False
    atoms.set_initial_magnetic_moments([1, 0.5, 0, 0, 0, 0])
    with pytest.raises(InvalidMolecule, match="initial magnetic moments"):
        atoms.get_potential_energy()
    with pytest.raises(ValueError, match="unknown functional"):
        pi.Calculator(xc="nonsense")
    with pytest.raises(ValueError, match=r"charge is 0\.5"):
        atoms.calc.set(charge=0.5)
    hydrogen = Atoms("H2", [[0, 0, 0], [0, 0, 0.74]])
    hydrogen.calc = pi.Calculator(xc="hf", max_cycles=2)
    with pytest.raises(ConvergenceError, match="not_converged after 2 cycles"):
        hydrogen.get_potential_energy()

"""jk="ri" through the solver: energies, forces and results are those of PySCF's `density_fit()`."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from oracle import small

from pyscf_ipu import Convergence, Molecule, Settings, Solver, rks
from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.elements.auxiliary import choice
from pyscf_ipu.machines.machine import HOST
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.solver.memory import fitting_bytes, program_bytes
from pyscf_ipu.solver.rks_core import rks_core

pytestmark = pytest.mark.slow

MOL = small("hydrogen cyanide")


@pytest.mark.slow
def test_energies_and_forces_are_pyscfs(solver_of):
    solver = solver_of(xc="hf", precision="float64", jk="ri")
    found = rks(MOL, solver=solver, forces=True)
    field = solver.settings.pyscf_method(solver.settings.pyscf_mole(MOL.numbers, MOL.positions))
    field.conv_tol, field.conv_tol_grad = 1e-12, 1e-8
    assert found.energy == pytest.approx(field.kernel(), abs=1e-9)
    np.testing.assert_allclose(found.mo_energy, field.mo_energy, rtol=0, atol=1e-6)
    method = field.nuc_grad_method()
    method.verbose = 0
    np.testing.assert_allclose(found.forces, -method.kernel(), rtol=0, atol=1e-6)
    assert found.jk == "ri"


@pytest.mark.long
def test_float32(solver_of):
    found = rks([MOL, small("methanol")], solver=solver_of(xc="hf", jk="ri"))
    exact = rks([MOL, small("methanol")], solver=solver_of(xc="hf", precision="float64", jk="ri"))
    np.testing.assert_allclose(found.energy, exact.energy, rtol=0, atol=2e-5)
    np.testing.assert_allclose(found.gap, exact.gap, rtol=0, atol=2e-5)
    assert found.jk == ["ri", "ri"]


def test_an_element_without_auxiliary_functions_is_refused(monkeypatch):
    mol = Molecule([35, 1], [[0.0, 0.0, 0.0], [0.0, 0.0, 2.7]])
    monkeypatch.setattr(choice, "MAX_L", 4)  # as if bromine's h shells were too high
    choice.auxiliary_shells.cache_clear()
    with pytest.raises(InvalidMolecule, match="shells beyond i: use jk='exact'"):
        Solver(Settings(basis="def2-svp", jk="ri")).shape(mol)
    assert Solver(Settings(basis="def2-svp", jk="auto")).shape(mol).n_ao < 128


def test_memory_grows_with_the_third_power():
    fit, exact = (
        Settings(basis="6-31g*", grid_level=0, jk="ri"),
        Settings(basis="6-31g*", grid_level=0),
    )
    alkanes = [[6] * n + [1] * (2 * n + 2) for n in (8, 16, 48)]
    small_, large, huge = (shape_of(numbers, fit.basis, fit.cart, fit.grid) for numbers in alkanes)
    assert 6.5 < fitting_bytes(large, fit) / fitting_bytes(small_, fit) < 9
    assert program_bytes(huge, fit) < 0.4 * program_bytes(huge, exact)


@pytest.mark.slow
def test_a_machine_without_float64_takes_the_fit_of_the_host(solver_of):
    def without_float64(shape):
        return replace(HOST, has_float64=False)

    level = Settings(xc="hf", grid_level=0, jk="ri")
    core, arguments = rks_core(MOL, level, without_float64)
    dtypes = {x.dtype for x in jax.tree.leaves(arguments[2])}
    assert dtypes == {np.dtype("float32"), np.dtype("int32")}  # the latter: which AO pairs count
    found = jax.jit(core)(*arguments)
    energy = sum(float(part.hi) + float(part.lo) for part in found.terms)
    fitted = rks(MOL, solver=solver_of(xc="hf", jk="ri")).energy
    assert energy == pytest.approx(fitted, abs=1e-5)  # B, and J of the free atoms, in one word
    with pytest.raises(ValueError, match="computes in float64"):
        rks_core(MOL, replace(level, precision="mixed"), without_float64)


@pytest.mark.long
def test_mixed_has_the_energy_of_float64(solver_of):
    narrow, wide = (
        rks(MOL, solver=solver_of(precision=p, xc="hf", jk="ri")) for p in ("mixed", "float64")
    )
    assert narrow.converged
    assert narrow.energy == pytest.approx(wide.energy, abs=1e-7)


def test_dispersion_is_added_to_the_fitted_energy(solver_of):
    pytest.importorskip("dftd3.interface")
    level = {"precision": "float64", "jk": "ri"}
    plain, found = (rks(MOL, solver=solver_of(xc=xc, **level)) for xc in ("hf", "hf-d3bj"))
    assert found.dispersion < -1e-4
    assert found.energy - found.dispersion == pytest.approx(plain.energy, abs=1e-9)


def test_the_first_rung_of_the_ladder(solver_of):
    solver = solver_of(xc="hf", precision="float64", jk="ri")
    aided = Convergence(damping=0.5, diis_start=8)
    shape = solver.shape(MOL)
    plain, found = solver.run(shape, [MOL])[0], solver.run(shape, [MOL], convergence=aided)[0]
    assert found.converged
    assert found.energy == pytest.approx(plain.energy, abs=1e-8)
    assert found.cycles > plain.cycles


@pytest.mark.long
def test_second_order_steps_end_in_the_same_minimum(solver_of):
    """The last rung of the retry ladder."""
    solver = solver_of(xc="hf", precision="float64", jk="ri")
    plain, found = rks(MOL, solver=solver), rks(MOL, solver=solver, stability=True)
    assert found.stable
    assert found.energy == pytest.approx(plain.energy, abs=1e-9)


@pytest.mark.long
def test_cartesian_d_with_spherical_f(solver_of):
    level = {"basis": "6-31g(2df,p)", "cart": "6d7f", "xc": "hf"}
    solver = solver_of(precision="float64", jk="ri", **level)
    found = rks(MOL, solver=solver)
    field = solver.settings.pyscf_method(solver.settings.pyscf_mole(MOL.numbers, MOL.positions))
    field.conv_tol = 1e-12
    assert found.energy == pytest.approx(field.kernel(), abs=1e-8)
    assert len(found.mo_energy) == len(field.mo_energy)


@pytest.mark.long
def test_bromine_has_h_shells(solver_of):
    mol = Molecule([35, 1], [[0.0, 0.0, 0.0], [0.0, 0.0, 2.7]])
    solver = solver_of(basis="def2-svp", xc="hf", precision="float64", jk="ri")
    result = rks(mol, solver=solver, forces=True)
    field = solver.settings.pyscf_method(solver.settings.pyscf_mole(mol.numbers, mol.positions))
    field.conv_tol, field.conv_tol_grad = 1e-12, 1e-8
    assert result.energy == pytest.approx(field.kernel(), abs=1e-9)
    method = field.nuc_grad_method()
    method.verbose = 0
    np.testing.assert_allclose(result.forces, -method.kernel(), rtol=0, atol=1e-6)

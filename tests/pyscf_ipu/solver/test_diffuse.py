"""Nearly dependent AOs: what a precision cannot hold is not called converged."""

from dataclasses import replace

import numpy as np
import pytest
from oracle import mole_of
from pyscf import dft, scf

from pyscf_ipu import ConvergenceError, Molecule, Settings, Solver, rks

pytestmark = pytest.mark.slow

MIXED = Settings(precision="mixed").numerics
H3 = Molecule([1, 1, 1], [[0, 0, 0], [0, 0, 1.3], [0, 1.5, 0.5]], charge=1)
"""In aug-cc-pVDZ the smallest eigenvalue of the overlap is 2e-4."""
SQUEEZED = Molecule([1] * 6, [[0, 0, 0.5 * i] for i in range(6)])
"""In 6-31G one eigenvalue is 4e-8, the next 6e-6."""
CHAIN = Molecule([1] * 5, [[0, 0, 0.945 * i] for i in range(5)], charge=1)
"""In 6-31G, which has no functions that reach far, the smallest eigenvalue is 9e-5."""


def assert_as_pyscf(found, mol, basis):
    field = scf.RHF(mole_of(mol, basis))
    field.conv_tol, field.conv_tol_grad = 1e-11, 1e-6
    field.kernel()
    assert field.converged
    assert found.status == "converged"
    assert found.overlap_smallest == pytest.approx(
        np.linalg.eigvalsh(field.get_ovlp())[0], rel=1e-6
    )
    assert found.n_dropped == field.mol.nao - len(field.mo_energy)
    assert found.mo_coeff.shape == field.mo_coeff.shape
    assert found.energy == pytest.approx(field.e_tot, abs=1e-8)
    np.testing.assert_allclose(found.mo_energy, field.mo_energy, atol=1e-5)
    charges = field.mulliken_pop(verbose=0)[1]
    np.testing.assert_allclose(found.mulliken_charges, charges, atol=1e-4)


@pytest.mark.long
def test_float32_holds_sets_that_reach_far():
    found = rks(H3, basis="aug-cc-pvdz", xc="pbe0", forces=True)
    field = dft.RKS(mole_of(H3, "aug-cc-pvdz"), xc="pbe0").set(conv_tol=1e-11)
    field.grids.level = Settings().grid_level
    field.kernel()
    assert found.status == "converged"
    assert found.overlap_smallest == pytest.approx(
        np.linalg.eigvalsh(field.get_ovlp())[0], rel=1e-6
    )
    assert found.energy == pytest.approx(field.e_tot, abs=1e-5)
    homo, lumo = field.mo_energy[:2]
    assert found.gap == pytest.approx(lumo - homo, abs=5e-6)
    charges = field.mulliken_pop(verbose=0)[1]
    np.testing.assert_allclose(found.mulliken_charges, charges, atol=2e-4)
    exact = rks(H3, basis="aug-cc-pvdz", xc="pbe0", precision="float64", forces=True)
    np.testing.assert_allclose(found.forces, exact.forces, atol=1e-5)


def test_float32_says_what_it_cannot_hold():
    solver = Solver(Settings(basis="6-31g", xc="hf", grid_level=0))
    found = rks(CHAIN, solver=solver)
    assert found.status == "ill_conditioned"
    assert not found.converged
    assert np.isfinite(found.energy)
    exact = np.linalg.eigvalsh(mole_of(CHAIN, "6-31g").intor("int1e_ovlp"))[0]
    assert found.overlap_smallest == pytest.approx(exact, abs=2e-6)
    assert found.n_dropped == 0
    words = r"smallest eigenvalue.*9\..e-05.*'float64'.*accuracy='orbitals'"
    with pytest.raises(ConvergenceError, match=words):
        rks(CHAIN, solver=solver, throw=True)


def test_float32_holds_levels_where_it_does_not_hold_charges():
    level = Settings(basis="6-31g", xc="hf", grid_level=0, accuracy="orbitals")
    found = rks(CHAIN, solver=Solver(level))
    field = scf.RHF(mole_of(CHAIN, "6-31g")).run(conv_tol=1e-11)
    assert found.status == "converged"
    assert found.energy == pytest.approx(field.e_tot, abs=1e-5)
    homo, lumo = field.mo_energy[1:3]
    assert found.gap == pytest.approx(lumo - homo, abs=3e-5)
    assert not level.numerics.holds(0.9e-5)
    assert replace(level, precision="mixed").numerics.least_overlap == MIXED.least_overlap


@pytest.mark.parametrize("precision", ["float32", "mixed"])
def test_a_machine_without_float64_keeps_its_limits(precision):
    level = Settings(basis="aug-cc-pvdz", precision=precision)
    assert level.numerics.holds(2e-6)
    narrow = level.numerics_of(has_float64=False)
    assert narrow == replace(level, basis="sto-3g").numerics


@pytest.mark.long
def test_mixed_goes_on_in_float64():
    found = rks(H3, basis="aug-cc-pvdz", xc="hf", precision="mixed", orbitals=True)
    assert_as_pyscf(found, H3, "aug-cc-pvdz")


@pytest.mark.parametrize("precision", [pytest.param("mixed", marks=pytest.mark.long), "float64"])
def test_vectors_are_left_out_as_in_pyscf(precision):
    found = rks(SQUEEZED, basis="6-31g", xc="hf", precision=precision, orbitals=True)
    assert found.n_dropped == 1
    assert_as_pyscf(found, SQUEEZED, "6-31g")


@pytest.mark.long
@pytest.mark.parametrize("precision", ["float32", "mixed"])
@pytest.mark.parametrize("level", [{"xc": "wb97m-v", "jk": "ri"}, {"xc": "tpss"}, {"xc": "hf"}])
def test_every_form_is_float64_s(level, precision):
    settings = Settings(basis="aug-cc-pvdz", nlc_grid=0, **level)
    found, exact = (
        rks(
            H3,
            solver=Solver(replace(settings, precision=name)),
            forces=True,
            stability=level["xc"] == "tpss",
        )
        for name in (precision, "float64")
    )
    assert found.status == exact.status == "converged"
    assert found.energy == pytest.approx(exact.energy, abs=1e-5)
    np.testing.assert_allclose(found.forces, exact.forces, atol=1e-5)
    np.testing.assert_allclose(found.mulliken_charges, exact.mulliken_charges, atol=2e-4)

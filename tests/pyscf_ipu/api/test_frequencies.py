"""Frequencies, intensities and thermochemistry are those of PySCF's analytic Hessian."""

import numpy as np
import pytest
from ase.vibrations import Infrared
from oracle import ground_state
from pyscf import scf
from pyscf.hessian import thermo

import pyscf_ipu as pi
from pyscf_ipu.base.errors import InvalidMolecule, UsageError
from pyscf_ipu.molecule.named.geometries import molecule_from_text

KM_PER_MOL_OF_E2_PER_AMU = 974.8801
"""Intensity of a mode whose dipole changes by 1 e per amu^(1/2)."""


@pytest.fixture(scope="module")
def solver(solver_of):
    """float64 Hartree-Fock: PySCF's Hessian of density functionals leaves out the grid."""
    return solver_of(xc="hf", precision="float64")


@pytest.fixture(scope="module", params=["water", "hydrogen fluoride"])
def pair(request, solver):
    """Our frequencies at our minimum, and PySCF's mean field and its harmonic analysis there."""
    start = molecule_from_text(request.param)
    best = pi.optimize(start, solver=solver, max_force_hartree_per_bohr=1e-6)
    found = pi.frequencies(best.molecule, solver=solver, symmetry_number=1)
    field = ground_state(best.molecule, xc="hf")
    return found, field, thermo.harmonic_analysis(field.mol, field.Hessian().kernel())


def test_wavenumbers(pair):
    found, _, reference = pair
    assert found.n_imaginary == 0
    np.testing.assert_allclose(
        found.wavenumbers, np.sort(reference["freq_wavenumber"].real), atol=0.5
    )
    assert np.abs(found.rigid_wavenumbers).max() < 30  # from the length of the steps
    assert found.largest_force < 1e-6


def test_intensities(pair):
    """Dipoles of PySCF along its own normal modes."""
    found, field, reference = pair
    step = 0.01
    for mode, intensity in zip(reference["norm_mode"], found.intensities, strict=True):
        dipoles = []
        for sign in (1, -1):
            mole = field.mol.set_geom_(
                field.mol.atom_coords() + sign * step * mode, unit="Bohr", inplace=False
            )
            displaced = scf.RHF(mole).run(conv_tol=1e-12, verbose=0)
            dipoles.append(displaced.dip_moment(unit="AU", verbose=0))
        change = (dipoles[0] - dipoles[1]) / (2 * step)
        expected = KM_PER_MOL_OF_E2_PER_AMU * change @ change
        assert intensity == pytest.approx(expected, rel=0.01, abs=0.05)


def test_thermochemistry(pair):
    found, field, reference = pair
    field.mol.build(symmetry=False)
    theirs = thermo.thermo(field, reference["freq_au"], 298.15, 101325)
    turns = thermo.rotational_symmetry_number(field.mol)
    assert found.zero_point_energy == pytest.approx(theirs["ZPE"][0], abs=2e-5)
    assert found.enthalpy == pytest.approx(theirs["H_tot"][0], abs=3e-5)
    gas_constant = 3.166811563e-6  # Hartree/Kelvin
    entropy = theirs["S_tot"][0] + gas_constant * np.log(turns)
    assert found.entropy == pytest.approx(entropy, abs=2e-7)
    assert found.gibbs_energy == pytest.approx(found.enthalpy - 298.15 * found.entropy, abs=1e-9)


def test_a_transition_state_has_an_imaginary_mode(solver):
    flat = molecule_from_text("N 0 0 0; H 1 0 0; H -0.5 0.8660254 0; H -0.5 -0.8660254 0")
    found = pi.frequencies(flat, solver=solver)
    assert found.n_imaginary == 1
    inversion = np.abs(found.modes[0])
    np.testing.assert_allclose(inversion[:, :2], 0, atol=1e-3)
    assert inversion[:, 2].min() > 0.05
    assert np.isfinite(found.gibbs_energy)
    text = repr(found)
    assert "6 vibrations, 1 of them imaginary" in text
    assert "not a minimum" in text
    assert f"{-found.wavenumbers[0]:.1f}i" in text
    record = found.to_dict()
    assert record["wavenumbers"] == found.wavenumbers.tolist()
    assert record["units"]["intensities"] == "km/mol"


def test_a_full_disk_under_the_displacements_is_one_sentence(solver, monkeypatch):
    def full(self):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Infrared, "run", full)
    with pytest.raises(UsageError, match="temporary files cannot be written"):
        pi.frequencies(molecule_from_text("water"), solver=solver)


def test_what_has_no_frequencies(solver):
    water = molecule_from_text("water")
    with pytest.raises(ValueError, match="symmetry_number is 0"):
        pi.frequencies(water, symmetry_number=0)
    for name in ("temperature_kelvin", "pressure_pascal", "step_bohr"):
        for value in (0.0, float("nan"), float("inf")):
            with pytest.raises(ValueError, match=rf"{name} is .*: give a number above 0"):
                pi.frequencies(water, **{name: value})
    with pytest.raises(ValueError, match=r"step_bohr is 5\.0.*at most 0\.1"):
        pi.frequencies(water, step_bohr=5.0)
    with pytest.raises(InvalidMolecule, match="odd number"):
        pi.frequencies(pi.Molecule.from_symbols(["O", "H"], np.eye(3)[:2]), solver=solver)

"""PySCF's mean-field class with this package's SCF: PySCF's post-processing works on it."""

import subprocess
import sys

import numpy as np
import pytest
from pyscf import dft, gto
from pyscf.tools import cubegen

from pyscf_ipu.errors import InvalidMolecule, UnknownBasis
from pyscf_ipu.interop import RKS
from pyscf_ipu.xc import FUNCTIONALS, functional


def water(atoms="H 0 0 1; O 0.1 0 0; H 0 1 0.1"):
    """A hydrogen first: the order of atoms is the Mole's, not the engine's."""
    return gto.M(atom=atoms, basis="6-31g*", cart=True, verbose=0)


def converged(mole, xc):
    field = dft.RKS(mole, xc=xc)
    field.grids.level, field.conv_tol, field.conv_tol_grad = 0, 1e-12, 1e-8
    field.kernel()
    return field


@pytest.fixture(scope="module")
def ours(shared_programs):
    field = RKS(water(), xc="b3lyp")
    field.grids.level = 0
    assert field.kernel() == field.e_tot
    return field


@pytest.fixture(scope="module")
def theirs():
    return converged(water(), "b3lyp")


def same_orbitals(ours, theirs, atol):
    overlap = theirs.mol.intor("int1e_ovlp")
    np.testing.assert_allclose(
        np.abs(ours.mo_coeff.T @ overlap @ theirs.mo_coeff), np.eye(len(overlap)), atol=atol
    )


def test_what_a_mean_field_object_holds(ours, theirs):
    assert ours.converged
    assert isinstance(ours, dft.rks.RKS)
    assert ours.e_tot == pytest.approx(theirs.e_tot, abs=1e-8)
    np.testing.assert_allclose(ours.mo_energy, theirs.mo_energy, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(ours.mo_occ, theirs.mo_occ)
    same_orbitals(ours, theirs, 1e-5)  # of single orbitals, whose levels may lie close
    np.testing.assert_allclose(ours.make_rdm1(), theirs.make_rdm1(), rtol=0, atol=1e-6)


def test_charges_and_dipole(ours, theirs):
    charges = ours.mulliken_pop(verbose=0)[1]
    np.testing.assert_allclose(charges, theirs.mulliken_pop(verbose=0)[1], rtol=0, atol=1e-6)
    assert charges[1] < -0.2, "the oxygen is the Mole's second atom"
    dipole = ours.dip_moment(verbose=0, unit="AU")
    np.testing.assert_allclose(dipole, theirs.dip_moment(verbose=0, unit="AU"), rtol=0, atol=1e-6)
    (_, charges_of_analyze), _ = ours.analyze(verbose=0)
    (_, expected), _ = theirs.analyze(verbose=0)
    np.testing.assert_allclose(charges_of_analyze, expected, rtol=0, atol=1e-6)


def test_cube_file_of_the_density_holds_the_electrons(ours, theirs, tmp_path):
    density = ours.make_rdm1()
    cell = {"nx": 60, "ny": 60, "nz": 60, "margin": 4.0}
    found = cubegen.density(ours.mol, str(tmp_path / "ours.cube"), density, **cell)
    expected = cubegen.density(
        theirs.mol, str(tmp_path / "theirs.cube"), theirs.make_rdm1(), **cell
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    lines = (tmp_path / "ours.cube").read_text().splitlines()
    steps = np.array([[float(x) for x in line.split()[1:]] for line in lines[3:6]])
    values = np.array([x for line in lines[6 + ours.mol.natm :] for x in line.split()], float)
    # The cusps of the nuclei limit what an even lattice can integrate.
    assert values.sum() * np.linalg.det(steps) == pytest.approx(10.0, abs=0.2)


def test_pyscf_goes_on_from_our_orbitals(ours, theirs):
    assert ours.energy_tot() == pytest.approx(ours.e_tot, abs=1e-8)
    gradient = ours.nuc_grad_method().kernel()
    np.testing.assert_allclose(gradient, theirs.nuc_grad_method().kernel(), rtol=0, atol=2e-6)


def test_another_geometry_needs_no_other_program(ours):
    program, energy = ours._solver, ours.e_tot
    again = ours.copy().reset(water("H 0 0 0.95; O 0 0 0; H 0 1 0"))
    second = again.kernel()
    assert again._solver is program
    assert second == pytest.approx(converged(again.mol, "b3lyp").e_tot, abs=1e-8)
    assert ours.e_tot == energy


WATER = "O 0 0 0; H 0 0 1; H 0 1 0"


def mole(atom=WATER, **changes):
    return gto.M(atom=atom, verbose=0, **{"basis": "sto-3g", **changes})


def with_other_shells():
    found = mole()
    found._basis["O"] = found._basis["O"][1:]
    return found


@pytest.mark.parametrize(
    ("molecule", "error", "words"),
    [
        (lambda: mole("O 0 0 0; H 0 0 1", spin=1), InvalidMolecule, "spin=1"),
        (lambda: mole("Br 0 0 0; H 0 0 1.4"), InvalidMolecule, "H to Cl"),
        (lambda: mole("I 0 0 0; H 0 0 1.6", basis="lanl2dz", ecp="lanl2dz"), InvalidMolecule,
         "all-electron"),
        (lambda: mole(basis={"O": "6-31g", "H": "sto-3g"}), UnknownBasis, "one name"),
        (with_other_shells, UnknownBasis, r"atom 0 \(O\) are not those of basis"),
        (lambda: mole(nucmod="g"), InvalidMolecule, "point charges"),
    ],
)  # fmt: skip
def test_molecules_that_are_refused(molecule, error, words):
    with pytest.raises(error, match=words):
        RKS(molecule()).kernel()


def changed(**settings):
    field = RKS(mole())
    for name, value in settings.items():
        setattr(field, name, value)
    return field


def with_prune():
    field = RKS(mole())
    field.grids.prune = None
    return field


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (lambda: changed(xc="m06"), "'m06' is not offered: use one of 'hf', 'lda,vwn'"),
        (lambda: changed(xc="no such"), "does not know"),
        (lambda: changed(level_shift=0.1), "level_shift=0.1"),
        (lambda: changed(conv_tol=1e-12), "conv_tol=1e-12 .* 1e-09"),
        (lambda: changed(get_hcore=lambda *_: None), "get_hcore is not PySCF's own"),
        (lambda: RKS(mole()).density_fit(), "with_df"),
        (lambda: RKS(mole()).x2c(), "with_x2c|get_hcore|eig"),
        (with_prune, "grids.prune"),
    ],
)
def test_settings_that_would_be_ignored_are_errors(field, words):
    with pytest.raises(ValueError, match=words):
        field().kernel()


def test_a_guess_and_a_precision_that_are_not_offered():
    with pytest.raises(ValueError, match="dm0: the SCF starts from atomic densities"):
        RKS(mole()).kernel(dm0=np.eye(7))
    with pytest.raises(ValueError, match="'float16': use one of float32, mixed, float64"):
        RKS(mole(), precision="float16")


def test_names_of_functionals_and_defaults_are_pyscf_s():
    from pyscf_ipu.drop_in import functional_name

    assert [functional_name(functional(name).pyscf_name) for name in FUNCTIONALS] == list(
        FUNCTIONALS
    )
    assert [functional_name(x) for x in ("PBE", "svwn", "b3lypg", "HF")] == [
        "pbe", "lda", "b3lyp", "hf"
    ]  # fmt: skip
    settings = RKS(mole()).settings()
    assert (settings.xc, settings.grid_level, settings.max_cycles) == ("lda", 3, 50)


def test_importing_interop_does_not_import_pyscf():
    code = "import sys, pyscf_ipu.interop; sys.exit('pyscf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

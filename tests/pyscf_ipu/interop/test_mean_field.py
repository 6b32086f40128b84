"""PySCF's mean-field class with this package's SCF: PySCF's post-processing works on it."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from pyscf import dft, gto
from pyscf.scf import addons, chkfile
from pyscf.tools import cubegen

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.interop import RKS, UKS
from pyscf_ipu.xc.registry import functional
from pyscf_ipu.xc.suffixes.names import FUNCTIONALS


def water(atoms="H 0 0 1; O 0.1 0 0; H 0 1 0.1"):
    """A hydrogen first: the order of atoms is the Mole's, not the engine's."""
    return gto.M(atom=atoms, basis="6-31g*", cart=True, verbose=0)


def converged(mole, xc):
    field = dft.RKS(mole, xc=xc)
    field.grids.level, field.conv_tol, field.conv_tol_grad = 0, 1e-12, 1e-8
    field.kernel()
    return field


@pytest.fixture(scope="module")
def ours():
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


def another(ours, mole, **changes):
    """A new object at the level of `ours`, with its compiled program."""
    field = RKS(mole, xc="b3lyp")
    field.grids.level, field._solver = np.int64(0), ours._solver
    return field.set(**changes)


def test_checkpoint_file_is_pyscf_s(ours, tmp_path):
    path = str(tmp_path / "w.chk")
    field = another(ours, ours.mol, chkfile=path)
    field.kernel()
    mole, found = chkfile.load_scf(path)
    np.testing.assert_array_equal(mole.atom_coords(), ours.mol.atom_coords())
    assert found["e_tot"] == field.e_tot
    for name in ("mo_energy", "mo_coeff", "mo_occ"):
        np.testing.assert_array_equal(found[name], getattr(field, name))
    started = (
        dft.RKS(mole, xc="b3lyp")
        .set(chkfile=path, init_guess="chkfile")
        .get_init_guess(key="chkfile")
    )
    np.testing.assert_allclose(started, ours.make_rdm1(), rtol=0, atol=1e-6)
    assert another(ours, ours.mol, chkfile=None).kernel() == field.e_tot


def test_scanners(ours):
    scanner = another(ours, water()).as_scanner()
    assert scanner.as_scanner() is scanner
    assert scanner(water()) == pytest.approx(ours.e_tot, abs=1e-10)
    moved = water("H 0 0 0.95; O 0 0 0; H 0 1 0")
    energy = scanner(moved)
    assert energy == another(ours, moved).kernel() == scanner.e_tot
    assert scanner(moved.atom_coords(unit="Angstrom")) == pytest.approx(energy, abs=1e-10)
    with pytest.raises(ValueError, match="dm0: the SCF starts"):
        scanner(moved, dm0=ours.make_rdm1())
    assert scanner._solver is ours._solver
    with_gradient = another(ours, water()).nuc_grad_method().as_scanner()
    found, gradient = with_gradient(moved)
    assert found == energy
    found, gradient = with_gradient(water())
    assert found == ours.e_tot
    np.testing.assert_allclose(gradient, ours.nuc_grad_method().kernel(), rtol=0, atol=1e-8)


def test_copies(ours):
    shallow, deep = ours.copy(), copy.deepcopy(ours)
    assert shallow._solver is ours._solver
    assert shallow.e_tot == deep.e_tot == ours.e_tot
    assert deep.precision == "float64"
    np.testing.assert_array_equal(deep.mo_coeff, ours.mo_coeff)
    assert deep.mo_coeff is not ours.mo_coeff
    assert deep.settings() == ours.settings()
    deep.reset(water("H 0 0 0.95; O 0 0 0; H 0 1 0"))
    shallow.reset(deep.mol)
    assert ours.grids.mol is ours.mol
    assert deep.kernel() == shallow.kernel() != ours.e_tot
    again = pickle.loads(pickle.dumps(ours))
    assert again.settings() == ours.settings()
    np.testing.assert_array_equal(again.mo_energy, ours.mo_energy)


def test_other_classes_are_pyscf_s(ours):
    unrestricted = ours.to_uks()
    assert type(unrestricted) is dft.uks.UKS
    assert unrestricted.conv_tol == 1e-9
    assert unrestricted.kernel() == pytest.approx(ours.e_tot, abs=1e-7)
    assert type(ours.to_gks()) is dft.gks.GKS
    assert type(ours.to_pyscf()) is dft.rks.RKS
    assert ours.to_gks().mo_coeff.shape == (2 * ours.mol.nao, 2 * ours.mol.nao)
    assert ours.to_uhf().kernel.__module__.startswith("pyscf.")
    with pytest.raises(TypeError, match="made from pyscf_ipu's RKS or UKS, whose SCF is theirs"):
        addons.convert_to_uhf(ours).kernel()


@pytest.mark.long
def test_open_shells_are_pyscf_s_too():
    mole = gto.M(atom="O 0 0 0; O 0 0 1.21", basis="sto-3g", spin=2, verbose=0)
    ours, theirs = UKS(mole, xc="pbe"), dft.UKS(mole, xc="pbe")
    assert ours.kernel() == pytest.approx(theirs.kernel(), abs=1e-8)
    np.testing.assert_array_equal(ours.mo_occ, theirs.mo_occ)
    np.testing.assert_allclose(ours.spin_square(), theirs.spin_square(), atol=1e-6)
    forces, expected = (one.nuc_grad_method().kernel() for one in (ours, theirs))
    np.testing.assert_allclose(forces, expected, atol=1e-6)
    ours.guess = "mixed"
    assert ours.kernel() == pytest.approx(theirs.e_tot, abs=1e-8)
    plain = ours.to_pyscf()
    assert type(plain) is dft.uks.UKS
    assert "guess" not in vars(plain)
    fitted = UKS(mole, xc="pbe", jk="ri")
    assert fitted.kernel() == pytest.approx(theirs.density_fit().kernel(), abs=1e-8)
    with pytest.raises(InvalidMolecule, match="open shell, of multiplicity 3"):
        RKS(mole).kernel()


def test_names_of_functionals_and_defaults_are_pyscf_s():
    from pyscf_ipu.interop.mean_field import functional_name

    plain = [name for name in FUNCTIONALS if functional(name).dispersion is None]
    assert [functional_name(functional(name).pyscf_name) for name in plain] == plain
    assert [functional_name(x) for x in ("PBE", "svwn", "b3lypg", "HF", "wb97x", "M06_2X")] == [
        "pbe", "lda", "b3lyp", "hf", "wb97x", "m06-2x"
    ]  # fmt: skip
    with_vv10 = RKS(water(), xc="wb97m_v")
    with_vv10.nlcgrids.level = 1
    assert (with_vv10.settings().xc, with_vv10.settings().nlc_grid) == ("wb97m-v", 1)
    with_vv10.nlcgrids.prune = None
    with pytest.raises(ValueError, match=r"grids\.prune is not PySCF's default"):
        with_vv10.settings()
    settings = RKS(water()).settings()
    assert (settings.xc, settings.grid_level, settings.max_cycles) == ("lda", 3, 50)


def test_importing_interop_does_not_import_pyscf():
    code = "import sys, pyscf_ipu.interop; sys.exit('pyscf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

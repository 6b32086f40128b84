"""States that PySCF's default and an SCF from one guess end in, with lower ones beside them."""

import numpy as np
import pytest
from oracle import OPTIMISED, mole_of, small
from pyscf import dft, scf

from pyscf_ipu import Molecule, Settings, Solver, rks, uks
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV
from pyscf_ipu.commands.report import mole_of as open_mole
from pyscf_ipu.solver import kept

pytestmark = pytest.mark.slow
TETRAONE = "O=C1C(=O)C(=O)C1=O"


def diatomic(numbers, angstrom, multiplicity=1):
    positions = [[0, 0, 0], [0, 0, angstrom / BOHR_TO_ANGSTROM]]
    return Molecule(numbers, positions, multiplicity=multiplicity)


def from_one_guess(mol, precision):
    """A fixed number of cycles: the SCF never starts from another guess."""
    level = Settings(grid_level=0, precision=precision, fixed_cycles=30)
    return rks(mol, solver=Solver(level))


@pytest.fixture(scope="module")
def tetraone():
    return Molecule.from_smiles(TETRAONE, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("precision", ["float32", "mixed"])
def test_cyclobutanetetraone(tetraone, precision):
    plain = rks(tetraone, grid_level=0, precision=precision)
    found = rks(tetraone, grid_level=0, precision=precision, stability=True)
    assert plain.stable is None
    assert plain.followed is None
    assert found.status == plain.status == "converged"
    assert found.stable
    assert found.energy == pytest.approx(-447.15284, abs=5e-5)
    assert found.commutator_norm < 2e-4
    single = from_one_guess(tetraone, precision)
    assert (single.energy - found.energy) * HARTREE_TO_EV > 0.2
    # Its gap is small, so the plain SCF tries other guesses, and finds the same state: then there
    # is nothing to follow.
    assert plain.energy == pytest.approx(found.energy, abs=1e-5)
    assert found.followed == 0


@pytest.mark.long
def test_pyscf_finds_it_stable(tetraone):
    """And lower than where its own default ends."""
    ours = rks(tetraone, grid_level=0, precision="float64", stability=True, orbitals=True)
    field = dft.RKS(mole_of(tetraone), xc="b3lypg")
    field.grids.level = 0
    default = field.kernel()
    assert field.converged
    assert field.kernel(ours.density_matrix) == pytest.approx(ours.energy, abs=1e-6)
    assert field.stability(return_status=True)[2]
    assert default - ours.energy > 0.2 / HARTREE_TO_EV


@pytest.mark.long
def test_a_saddle_in_float64():
    """N2 at 2.75 Angstrom: from one guess an SCF ends 0.5 eV above the lowest state."""
    mol = diatomic([7, 7], 2.75)
    plain, found = (
        rks(mol, grid_level=0, precision="float64", stability=stability)
        for stability in (False, True)
    )
    assert plain.converged
    single = from_one_guess(mol, "float64")
    assert (single.energy - found.energy) * HARTREE_TO_EV > 0.3
    # Of torn bonds rounding decides which of the low states other guesses lead to.
    assert found.energy - 1e-5 < plain.energy < single.energy + 1e-6
    assert found.stable


@pytest.mark.long
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_list(monkeypatch, precision):
    """Stable ones are not changed; torn ones that do not converge are led to a minimum.

    All have two heavy atoms, and so the same programs.  Those of float32 are optimised, as users
    run them: otherwise the two round more differently than the bound allows.
    """
    if precision == "float32":
        options = kept._quick("cpu") | OPTIMISED
        monkeypatch.setattr(kept, "_quick", lambda platform: options)
    solver = Solver(Settings(grid_level=0, precision=precision))
    carbon_monoxide = diatomic([6, 8], 3.0)
    broken = Molecule([6, 7, 1], [[0, 0, 0], [0, 0, 0.1], [0, 0, 2]])
    mols = [small("hydrogen cyanide"), broken, carbon_monoxide, diatomic([9, 9], 1.4)]
    plain, found = rks(mols, solver=solver), rks(mols, solver=solver, stability=True)
    assert found.stable.tolist() == [True, False, True, True]
    # How many instabilities lead down from a torn bond is a matter of rounding.
    assert (found.followed > 0).tolist() == [False, False, True, False]
    assert found.stable.dtype == bool
    assert plain.converged.tolist() == [True, False, False, True]
    assert found.converged.tolist() == [True, False, True, True]
    for i in (0, 3):
        assert found.energy[i] == pytest.approx(plain.energy[i], abs=2e-6)
        assert found.cycles[i] == plain.cycles[i]
    assert np.isnan(found.energy[1])


@pytest.mark.parametrize(
    ("xc", "precision"),
    [
        ("hf", "float64"),
        pytest.param("b3lyp", "float64", marks=pytest.mark.long),
        pytest.param("b3lyp", "float32", marks=pytest.mark.long),
        pytest.param("b3lyp", "mixed", marks=pytest.mark.long),
        pytest.param("pbe", "float64", marks=pytest.mark.long),
        pytest.param("tpss", "float64", marks=pytest.mark.long),
    ],
)
def test_whether_the_spins_of_closed_shells_part(xc, precision):
    """Those of torn bonds do; the plain SCF is the one without this question."""
    mols = [diatomic([1, 1], 0.74), diatomic([1, 1], 3.0), diatomic([7, 7], 2.5)]
    settings = Settings(xc=xc, grid_level=0, precision=precision)
    result = rks(mols, solver=Solver(settings), stable_unrestricted=True)
    plain = rks(mols, solver=Solver(settings))
    np.testing.assert_array_equal(result.energy, plain.energy)
    assert plain.stable_unrestricted is result.stable is None
    assert result.stable_unrestricted.tolist() == [True, False, False]
    for mol, ours in zip(mols, result.stable_unrestricted, strict=True):
        field = settings.pyscf_method(open_mole(mol, settings)).newton()
        field.kernel()
        theirs = field.stability(internal=False, external=True, return_status=True)[3]
        assert ours == theirs


@pytest.mark.long
def test_open_shells_are_led_to_a_minimum():
    """The triplet of dioxygen has no minimum of its full symmetry in Hartree-Fock."""
    mols = [diatomic([8, 8], 1.208, 3), diatomic([8, 1], 0.97, 2), diatomic([1, 1], 3.0)]
    settings = Settings(xc="hf", precision="float64")
    plain, found = (
        uks(mols, solver=Solver(settings), stability=stability) for stability in (False, True)
    )
    assert found.stable.all()
    assert found.followed.tolist() == [1, 0, 0]
    assert (plain.energy[0] - found.energy[0]) * HARTREE_TO_EV > 0.03
    np.testing.assert_allclose(found.energy[1:], plain.energy[1:], atol=1e-6)
    field = scf.UHF(open_mole(mols[0], settings))
    field.kernel()
    lower, _, stable, _ = field.stability(return_status=True)
    assert not stable
    field.kernel(field.make_rdm1(lower, field.mo_occ))
    assert found.energy[0] < field.e_tot + 1e-6


@pytest.mark.long
@pytest.mark.parametrize("xc", ["b3lyp", "pbe", "r2scan"])
def test_dioxygen_is_stable(xc):
    mol = diatomic([8, 8], 1.208, 3)
    found = uks(mol, xc=xc, precision="float64", grid_level=0, stability=True)
    plain = uks(mol, xc=xc, precision="float64", grid_level=0)
    assert found.stable
    assert found.followed == 0
    assert found.energy == pytest.approx(plain.energy, abs=1e-8)


@pytest.mark.parametrize("one", [{"fixed_cycles": 3}, {"history": True}])
def test_what_belongs_to_one_scf_is_refused(one):
    solver = Solver(Settings(grid_level=0, **one))
    mol = Molecule([1, 1], [[0, 0, 0], [0, 0, 1.4]])
    for mols in (mol, [mol, mol]):
        with pytest.raises(ValueError, match="stability=True runs several SCFs"):
            rks(mols, solver=solver, stability=True)
    if "fixed_cycles" in one:
        with pytest.raises(ValueError, match="stability=True makes several of as many cycles"):
            solver.run(solver.shape(mol), [mol], stability=True)

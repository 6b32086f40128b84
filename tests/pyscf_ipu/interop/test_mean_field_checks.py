"""What is set on a PySCF object works, or is an error before anything is computed."""

import numpy as np
import pytest
from pyscf import dft, gto, solvent
from pyscf.dft import gen_grid
from pyscf.dft.numint2c import NumInt2C
from pyscf.scf import addons

from pyscf_ipu import Molecule, Settings
from pyscf_ipu.base.errors import InvalidMolecule, UnknownBasis
from pyscf_ipu.interop import RKS

WATER = "O 0 0 0; H 0 0 1; H 0 1 0"


def mole(atom=WATER, **changes):
    return gto.M(atom=atom, verbose=0, **{"basis": "sto-3g", **changes})


def with_other_shells():
    found = mole()
    found._basis["O"] = found._basis["O"][1:]
    return found


def with_attribute(**settings):
    found = mole()
    for name, value in settings.items():
        setattr(found, name, value)
    return found


def with_another_nuclear_charge():
    found = mole()
    found._atm[1, gto.CHARGE_OF] = 2
    return found


@pytest.mark.parametrize(
    ("molecule", "error", "words"),
    [
        (lambda: mole("O 0 0 0; H 0 0 1", spin=1), InvalidMolecule, "open shell, of multiplicity"),
        (lambda: mole("He 0 0 0").set(cart="6d7f"), InvalidMolecule, r"rks\(..., cart='6d7f'\)"),
        (lambda: mole("I 0 0 0; H 0 0 1.6", basis="def2-svp", ecp="lanl2dz"), InvalidMolecule,
         "atom 0 of the Mole, I, has another core potential .* has one: build .* ecp='def2-svp'"),
        (lambda: mole("I 0 0 0; H 0 0 1.6", basis="def2-svp"), InvalidMolecule, "ecp='def2-svp'"),
        (lambda: mole("I 0 0 0; H 0 0 1.6", ecp="def2-svp"), InvalidMolecule, "which has none"),
        (lambda: mole("Br 0 0 0; H 0 0 1.4", basis="lanl2dz", ecp="lanl2dz"), InvalidMolecule,
         "all-electron"),
        (lambda: mole("He 0 0 0; ghost-H 0 0 2"), InvalidMolecule, "GHOST-H, is a ghost"),
        (lambda: mole(basis={"O": "6-31g", "H": "sto-3g"}), UnknownBasis, "one name"),
        (lambda: mole(basis="6-31G(2df,p)"), UnknownBasis, "other d functions than Gaussian's"),
        (with_other_shells, UnknownBasis, r"atom 0 \(O\) are not those of basis"),
        (lambda: mole(nucmod="g"), InvalidMolecule, "point charges"),
        (lambda: mole().set_nuc_mod(0, 1e9), InvalidMolecule, "point charges"),
        (with_another_nuclear_charge, InvalidMolecule, r"nuclear charges are \[8, 2, 1\]"),
        (lambda: with_attribute(nelectron=8), InvalidMolecule, "nelectron=8, .* 10 electrons"),
        (lambda: with_attribute(omega=0.3), InvalidMolecule, "omega=0.3"),
    ],
)  # fmt: skip
def test_molecules_that_are_refused(molecule, error, words):
    with pytest.raises(error, match=words):
        RKS(molecule()).kernel()


def test_electrons_of_a_mole_for_the_engine():
    with pytest.raises(InvalidMolecule, match="give charge= instead"):
        Molecule.from_pyscf(with_attribute(nelectron=8))


def changed(**settings):
    return RKS(mole()).set(**settings)


def on(part, **settings):
    """A setting of `grids` or of `_numint`."""
    field = RKS(mole())
    for name, value in settings.items():
        setattr(getattr(field, part), name, value)
    return field


def own_points():
    field = RKS(mole())
    field.grids.level = 0
    field.grids.build()
    field.grids.weights = 2 * field.grids.weights
    return field


def own_functional():
    field = RKS(mole())
    field.define_xc_("0.5*HF + 0.5*LDA, LYP", "GGA", 0.5)
    return field


def no_value(*_):
    raise AssertionError("not called")


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (lambda: changed(xc="m06"), "'m06' is not offered: use one of 'hf', 'lda,vwn'"),
        (lambda: changed(xc="no such"), "does not know"),
        (lambda: changed(xc=no_value), "give the name of a functional"),
        (lambda: changed(xc="B3LYP-D3BJ"), "dispersion correction 'd3bj', .* xc='b3lyp'"),
        (lambda: changed(xc="b3lyp-d4"), "dispersion correction 'd4'"),
        (lambda: changed(xc="pbe-d3zero"), "dispersion correction 'd3zero'"),
        (lambda: changed(xc="wb97x-d3"), "PySCF does not offer"),
        (lambda: changed(xc="r2scan-3c"), r"; pyscf_ipu.rks\(..., xc='r2scan-3c'\) has it"),
        (lambda: changed(xc="327"), "the functional of 'b97-3c', whose dispersion correction"),
        (lambda: changed(disp="d3bj"), "disp='d3bj'"),
        (lambda: changed(nlc="vv10"), "nlc='vv10'"),
        (lambda: changed(xc="wb97x_v", nlc=0), "nlc=0 is not offered"),
        (lambda: changed(omega=0.3), "omega=0.3"),
        (own_functional, "_numint is not PySCF's own .*eval_xc, .*hybrid_coeff"),
        (lambda: on("_numint", small_rho_cutoff=0.1), r"_numint .* \(small_rho_cutoff"),
        (lambda: changed(_numint=NumInt2C()), "is a NumInt2C"),
        (lambda: changed(level_shift=0.1), "level_shift=0.1"),
        (lambda: changed(init_guess=np.eye(7)), "init_guess=array"),
        (lambda: changed(small_rho_cutoff=0.1), "small_rho_cutoff=0.1"),
        (lambda: changed(diis_file="d.h5"), "diis_file"),
        (lambda: changed(irrep_nelec={"A1": 4}), "irrep_nelec"),
        (lambda: changed(diis=False), "diis cannot be switched off"),
        (lambda: changed(max_cycle=0), "max_cycles is 0"),
        (lambda: changed(conv_tol=1e-12), "conv_tol=1e-12 .* 1e-09"),
        (lambda: changed(conv_tol=1e-9, precision="float32"), "conv_tol=1e-09 .* 0.0001"),
        (lambda: changed(get_hcore=no_value), "get_hcore is not PySCF's own"),
        (lambda: changed(energy_tot=no_value), "energy_tot is not PySCF's own"),
        (lambda: changed(energy_elec=no_value), "energy_elec is not PySCF's own"),
        (lambda: changed(get_dispersion=no_value), "get_dispersion is not PySCF's own"),
        (lambda: changed(check_convergence=no_value), "check_convergence"),
        (lambda: RKS(mole()).density_fit(), "with_df"),
        (lambda: RKS(mole()).x2c(), "with_x2c|get_hcore|eig"),
        (lambda: solvent.PCM(RKS(mole())), "is not PySCF's own"),
        (lambda: addons.smearing(RKS(mole()), sigma=0.01), "is not PySCF's own"),
        (lambda: on("grids", prune=None), "grids.prune"),
        (lambda: on("grids", atomic_radii=None), "grids.atomic_radii"),
        (lambda: on("grids", small_rho_cutoff=0.1), "grids.small_rho_cutoff would be ignored"),
        (lambda: on("grids", levels=5), "grids.levels would be ignored"),
        (lambda: on("grids", level=11), "grid_level is 11"),
        (lambda: on("grids", level=0, coords=np.zeros((1, 3)), weights=np.ones(1)),
         "custom points"),
        (lambda: on("grids", weights=np.ones(1)), "custom points"),
        (own_points, "custom points"),
        (lambda: changed(grids=type("MyGrids", (gen_grid.Grids,), {})(mole())), "is a MyGrids"),
        (lambda: changed(_eri=np.zeros(406)), "_eri holds other integrals"),
    ],
)  # fmt: skip
def test_settings_that_would_be_ignored_are_errors(field, words):
    with pytest.raises(ValueError, match=words):
        field().kernel()


def test_a_guess_and_a_precision_that_are_not_offered():
    with pytest.raises(ValueError, match="dm0: the SCF starts from atomic densities"):
        RKS(mole()).kernel(dm0=np.eye(7))
    for make in (lambda: RKS(mole(), precision="float16"), lambda: changed(precision="float16")):
        with pytest.raises(
            ValueError, match=r"precision is 'float16'.*: give one of float32, mixed, float64"
        ):
            make()


def test_the_tolerance_is_the_precision_s_unless_set():
    field = RKS(mole())
    assert field.conv_tol == 1e-9
    field.precision = "float32"
    assert (field.conv_tol, field.settings().precision) == (1e-4, "float32")
    field.conv_tol = 1e-4
    field.precision = "mixed"
    assert field.conv_tol == 1e-4
    assert field.settings().precision == "mixed"


def test_what_pyscf_leaves_behind_is_no_setting():
    """Its post-processing builds the grid and keeps the integrals."""
    field = RKS(mole())
    field.grids.level, field.max_memory = 0, 1_000_000  # MB: a process with more keeps none
    field.get_veff(dm=np.eye(7))
    assert field.grids.coords is not None
    assert field._eri is not None
    assert field.settings() == Settings(basis="sto-3g", xc="lda", grid_level=0, precision="float64")
    field.mol.set_geom_(np.array([[0, 0, 0], [0, 0, 1.1], [0, 1, 0]]))
    with pytest.raises(ValueError, match=r"call grids.reset\(\)"):
        field.settings()


def test_numbers_of_numpy_and_names_in_two_spellings():
    field = RKS(mole(basis={"O": "sto-3g", "H": "STO-3G"}))
    field.grids.level, field.max_cycle = np.int64(0), np.int32(20)
    settings = field.settings()
    assert (settings.basis, settings.grid_level, settings.max_cycles) == ("sto-3g", 0, 20)


def test_density_fitting_is_an_argument():
    field = RKS(mole(), jk="ri")
    assert field.settings().jk == "ri"
    assert field.to_pyscf().with_df is not None
    assert RKS(mole()).settings().jk == "exact"


def test_the_fit_of_another_auxiliary_set_is_pyscfs_too():
    field = RKS(mole(basis="def2-mtzvpp"), "r2scan", jk="ri")
    assert set(field.to_pyscf().with_df.auxbasis.values()) == {"def2-universal-jfit"}
    assert RKS(mole(), jk="ri").to_pyscf().with_df.auxbasis is None


@pytest.mark.parametrize("xc", ["lda,vwn", "pbe0", "hse06"])
def test_what_pyscf_computes_of_a_fitted_state_is_fitted(xc):
    field, reference = RKS(mole(), xc, jk="ri"), dft.RKS(mole(), xc).density_fit()
    field.grids.level = reference.grids.level = 0
    density = reference.get_init_guess()
    exact = RKS(mole(), xc)
    exact.grids.level = 0
    found, expected = field.energy_elec(density), reference.energy_elec(density)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert abs(exact.energy_elec(density)[0] - expected[0]) > 1e-7
    fit = field._twin
    field.get_jk(dm=density)
    assert field._twin is fit is not None
    assert field.reset()._twin is None
    field.grids.level = 0
    reference.kernel()
    for name in ("mo_coeff", "mo_energy", "mo_occ", "e_tot", "converged"):
        setattr(field, name, getattr(reference, name))
    gradient = reference.nuc_grad_method().kernel()
    np.testing.assert_allclose(field.nuc_grad_method().kernel(), gradient, atol=1e-9)
    np.testing.assert_allclose(field.Gradients().kernel(), gradient, atol=1e-9)


def test_pyscf_knows_the_attributes(monkeypatch, capsys):
    """Its own check, which runs with the kernel, would name unknown ones on the screen."""
    monkeypatch.setattr("pyscf.lib.misc._warn_once_registry", {})
    RKS(mole(), jk="ri").check_sanity()
    assert capsys.readouterr() == ("", "")

"""Core potentials: elements beyond krypton against PySCF, and what cannot have them."""

import numpy as np
import pytest
from oracle import molecule
from pyscf.tools import molden

import pyscf_ipu as pi
from pyscf_ipu import Settings, energy_function, rks
from pyscf_ipu.api.energies import ill_conditioned
from pyscf_ipu.base.errors import InvalidMolecule, UsageError
from pyscf_ipu.elements.basis_sets import core_electrons, element_shells
from pyscf_ipu.interop import integrals
from pyscf_ipu.shapes.conformer import conformer, empty_batch
from pyscf_ipu.shapes.core import core_forces, core_matrix, has_core, numerics_of
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tables import shape_tables

CHLORIDE = molecule("H 0 0 0; Cl 0 0 1.3")
HI = pi.Molecule([1, 53], [[0.0, 0.0, 0.0], [0.1, 0.2, 3.04]])
SVP = Settings(basis="def2-svp", xc="hf", grid_level=0)


def shape(numbers, level=SVP):
    return shape_of(numbers, level.basis, level.cart, level.grid)


@pytest.mark.parametrize(
    ("basis", "number", "electrons"),
    [
        ("def2-svp", 36, 0), ("def2-svp", 37, 28), ("ma-def2-svp", 53, 28), ("def2-mtzvp", 53, 28),
        ("def2-tzvp", 55, 46), ("def2-tzvppd", 86, 60), ("lanl2dz", 53, 46), ("dzvp", 53, 0),
    ],
)  # fmt: skip
def test_core_electrons(basis, number, electrons):
    assert core_electrons(basis, number) == electrons


@pytest.mark.parametrize(
    ("basis", "symbol", "words"),
    [
        ("lanl2dz", "Br", "replaces core electrons of Br by a potential, as is computed for Rb to"),
        ("def2-svp", "Ce", "beyond f for Ce"),
        ("ma-def2-svp", "Ce", "has no functions for the core electrons of Ce"),
        ("minao", "I", "has no functions for the core electrons of I"),
        ("6-31g*", "I", "has no functions for I"),
        ("def2-tzvppd", "Hg", "beyond f for Hg"),
    ],
)
def test_elements_without_a_potential(basis, symbol, words):
    with pytest.raises(InvalidMolecule, match=words):
        element_shells(basis, symbol)


@pytest.mark.parametrize("basis", ["sto-3g", "3-21g", "dzvp", "x2c-svpall"])
def test_all_electron_sets(basis):
    assert element_shells(basis, "I")
    assert core_electrons(basis, 53) == 0


def test_shapes_of_lighter_elements_have_none():
    """Their programs, tables and conformers are those that they were."""
    light, heavy = shape([17, 1]), shape([53, 1])
    assert not has_core(light, SVP)
    assert has_core(heavy, SVP)
    assert conformer(CHLORIDE, light, SVP).core is None
    assert empty_batch(light, SVP, 2).core is None
    assert empty_batch(heavy, SVP, 2).core.hi.shape == (2, heavy.n_pairs)
    assert all(max(c.family) <= 36 for c in shape([35, 17, 6, 1]).classes)


def test_matrices_are_in_float64_beside_a_potential():
    """With all in float32, I2 was off by 1.1 meV."""
    light, heavy = (numerics_of(shape(z), SVP) for z in ([17, 1], [53, 1]))
    assert not light.wide
    assert heavy.wide
    assert not numerics_of(shape([53, 1]), SVP, has_float64=False).wide


def test_the_message_on_dependent_aos_has_the_limit_of_the_program():
    for mol, limit in ((CHLORIDE, "3e-04"), (HI, "1e-06")):
        assert f"needs {limit}:" in ill_conditioned(5e-7, mol, SVP)


def test_valence_charges_and_pairs():
    (iodine, _) = shape_tables(shape([53, 1]), SVP)
    assert {25.0, 0.0} < set(np.asarray(iodine.charge).tolist())
    assert HI.n_electrons == 54
    assert HI.n_occupied("def2-svp") == (13, 13)
    assert HI.n_occupied("dzvp") == (27, 27)


@pytest.mark.parametrize("cart", [False, True, "6d7f"])
def test_the_forces_are_the_slope_of_the_matrix(cart):
    level = Settings(basis="def2-svp", xc="hf", cart=cart)
    mol = pi.Molecule([53, 47, 2], [[0.0, 0.0, 0.0], [4.0, 1.0, 0.0], [0.5, 3.0, 0.4]])
    rng = np.random.default_rng(5)
    density = rng.normal(size=core_matrix(mol, level).shape)
    density += density.T
    step, move = 1e-4, rng.normal(size=(3, 3))

    def energy(sign):
        there = pi.Molecule(mol.numbers, mol.positions + sign * step * move)
        return np.vdot(density, core_matrix(there, level))

    forces = core_forces(mol, level, density)
    slope = (energy(1) - energy(-1)) / (2 * step)
    assert np.vdot(forces, move) == pytest.approx(-slope, abs=1e-5)
    np.testing.assert_allclose(forces.sum(0), 0, atol=1e-10)


@pytest.mark.slow
def test_energies_and_forces_are_pyscfs(solver_of, tmp_path):
    solver = solver_of(basis="def2-svp", xc="hf", precision="float64")
    result = rks(HI, solver=solver, forces=True, orbitals=True)
    mole = solver.settings.pyscf_mole(HI.numbers, HI.positions)
    assert mole.nelectron == 26
    field = solver.settings.pyscf_method(mole)
    field.conv_tol, field.conv_tol_grad = 1e-12, 1e-8
    assert result.energy == pytest.approx(field.kernel(), abs=1e-9)
    np.testing.assert_allclose(result.mo_energy, field.mo_energy, rtol=0, atol=1e-6)
    np.testing.assert_allclose(result.mulliken_charges, field.mulliken_pop(verbose=0)[1], atol=1e-6)
    np.testing.assert_allclose(result.dipole, field.dip_moment(unit="AU", verbose=0), atol=1e-5)
    method = field.nuc_grad_method()
    method.verbose = 0
    np.testing.assert_allclose(result.forces, -method.kernel(), rtol=0, atol=1e-6)
    result.to_molden(tmp_path / "hi.molden")
    text = (tmp_path / "hi.molden").read_text()
    assert "[Core]\n2 : 28\n[GTO]" in text
    assert "I   2   53  " in text
    occupation = molden.load(str(tmp_path / "hi.molden"))[3]
    assert occupation.sum() == 26


@pytest.mark.long
def test_float32_stability_and_a_batch_of_two_shapes(solver_of):
    """An ion, and a molecule of lighter elements beside it."""
    iodide = pi.Molecule([53], [[0.0, 0.0, 0.0]], charge=-1)
    level = {"basis": "def2-svp", "xc": "pbe"}
    solver, molecules = solver_of(**level), [HI, iodide, CHLORIDE]
    narrow = rks(molecules, solver=solver, stability=True)
    assert narrow.stable.all()
    for energy, mol in zip(narrow.energy, molecules, strict=True):
        mole = solver.settings.pyscf_mole(mol.numbers, mol.positions, mol.charge)
        field = solver.settings.pyscf_method(mole)
        field.conv_tol = 1e-11
        assert energy == pytest.approx(field.kernel(), abs=3.7e-5)


def test_what_is_outside_of_the_engine_refuses():
    with pytest.raises(UsageError, match=r"core potentials .* outside JAX: .* or pi.forces"):
        energy_function(HI, Settings(basis="def2-svp"))
    with pytest.raises(UsageError, match="not the engine's integrals"):
        integrals(HI, Settings(basis="def2-svp"))
    with pytest.raises(InvalidMolecule, match=r"charge 26 gives 0 electrons, .* hold 1 to"):
        pi.Solver(SVP).shape(pi.Molecule([53, 1], HI.positions, charge=26))


@pytest.mark.parametrize(
    ("level", "numbers", "words"),
    [
        ({"basis": "sto-3g", "grid_kind": "gaussian", "grid_level": (75, 302), "prune": False},
         [53, 1], "from H to Kr"),
        ({"basis": "def2-svp", "xc": "wb97x-d"}, [55, 1], "only for H to Xe"),
        ({"basis": "cc-pvtz", "xc": "hf"}, [53, 1], "no functions for I"),
    ],
)  # fmt: skip
def test_elements_that_a_level_lacks(level, numbers, words):
    with pytest.raises(InvalidMolecule, match=words):
        pi.Solver(Settings(**level)).n_ao(numbers)


TABLE = {
    "RbF": "Rb 0 0 0; F 0 0 2.27",
    "AgH": "Ag 0 0 0; H 0 0 1.618",
    "XeF2": "Xe 0 0 0; F 0 0 1.977; F 0 0 -1.977",
    "PbH4": "Pb 0 0 0; H 1 1 1; H -1 -1 1; H -1 1 -1; H 1 -1 -1",
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "jk"), [("RbF", "exact"), ("AgH", "ri"), ("XeF2", "ri"), ("PbH4", "exact")]
)
def test_other_elements(solver_of, name, jk):
    """The fit of silver has i functions."""
    rows = [row.split() for row in TABLE[name].split(";")]
    mol = pi.Molecule.from_symbols(
        [row[0] for row in rows], [[float(x) for x in row[1:]] for row in rows], unit="angstrom"
    )
    solver = solver_of(basis="def2-svp", xc="pbe0", precision="float64", jk=jk)
    field = solver.settings.pyscf_method(solver.settings.pyscf_mole(mol.numbers, mol.positions))
    field.conv_tol = 1e-11
    assert rks(mol, solver=solver).energy == pytest.approx(field.kernel(), abs=1e-7)

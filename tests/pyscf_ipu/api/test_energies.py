"""`rks`, as a user meets it: one molecule or a list, results in order, errors as sentences."""

import numpy as np
import pytest
from oracle import HYDROGEN, SMALL, ground_state, mole_of, small

import pyscf_ipu as pi
from pyscf_ipu import Molecule, rks
from pyscf_ipu.base.errors import ConvergenceError, InvalidMolecule, UnknownBasis
from pyscf_ipu.results.result import TERM_NAMES

NAMES = tuple(SMALL)


@pytest.fixture(scope="module")
def solver(solver_of):
    """float64 B3LYP/STO-3G, shared so that each shape is compiled once."""
    return solver_of(precision="float64")


@pytest.fixture(scope="module")
def table(solver):
    """All molecules of the shared shape in one call, with orbitals."""
    return rks([small(name) for name in NAMES], solver=solver, orbitals=True)


@pytest.fixture(scope="module")
def references():
    return [ground_state(small(name)) for name in NAMES]


def test_energies_are_those_of_pyscf(table, references):
    assert table.status == ["converged"] * len(NAMES)
    np.testing.assert_allclose(table.energy, [r.e_tot for r in references], rtol=0, atol=1e-7)


def test_orbital_energies_and_gap(table, references):
    for b, reference in enumerate(references):
        np.testing.assert_allclose(table.mo_energy[b], reference.mo_energy, rtol=0, atol=1e-6)
        occupied = reference.mol.nelectron // 2
        assert table.homo[b] == pytest.approx(reference.mo_energy[occupied - 1], abs=1e-6)
        assert table.lumo[b] == pytest.approx(reference.mo_energy[occupied], abs=1e-6)
    np.testing.assert_array_equal(table.gap, table.lumo - table.homo)


def test_dipole_of_neutral_and_charged_molecules(table, references):
    """A cation's dipole depends on the origin: it is that of the coordinates given."""
    assert sorted({small(name).charge for name in NAMES}) == [0, 1]
    for b, reference in enumerate(references):
        expected = reference.dip_moment(unit="AU", verbose=0, origin=np.zeros(3))
        np.testing.assert_allclose(table.dipole[b], expected, rtol=0, atol=2e-5)


def test_energy_terms(table, references):
    assert tuple(table.energy_terms) == TERM_NAMES
    np.testing.assert_allclose(sum(table.energy_terms.values()), table.energy, rtol=0, atol=1e-10)
    for b, reference in enumerate(references):
        density, mole = reference.make_rdm1(), reference.mol
        terms = {name: values[b] for name, values in table.energy_terms.items()}
        assert terms["kinetic"] == pytest.approx(
            np.vdot(density, mole.intor("int1e_kin")), abs=2e-5
        )
        assert terms["nuclear_attraction"] == pytest.approx(
            np.vdot(density, mole.intor("int1e_nuc")), abs=2e-4
        )
        assert terms["nuclear_repulsion"] == pytest.approx(mole.energy_nuc(), abs=1e-10)
        summary = reference.scf_summary
        both = terms["electron_repulsion"] + terms["exchange_correlation"]
        assert both == pytest.approx(summary["coul"] + summary["exc"], abs=2e-4)


def test_orbitals_are_in_pyscf_s_order(table):
    for b, name in enumerate(NAMES):
        mol = small(name)
        overlap = mole_of(mol).intor("int1e_ovlp")
        c = table.mo_coeff[b]
        assert c.shape == overlap.shape
        np.testing.assert_allclose(c.T @ overlap @ c, np.eye(len(c)), atol=1e-9)
        occupied = c[:, : mol.n_electrons // 2]
        np.testing.assert_allclose(table.density_matrix[b], 2 * occupied @ occupied.T, atol=1e-5)


def test_density_matrix_gives_the_energy_in_pyscf(table, references):
    for b, reference in enumerate(references):
        energy = reference.energy_tot(dm=table.density_matrix[b])
        assert energy == pytest.approx(table.energy[b], abs=1e-8)


def test_convergence_record(table):
    assert table.converged.all()
    assert np.all((table.cycles >= 4) & (table.cycles < 30))
    assert np.all(table.commutator_norm < 1e-6)
    assert np.all((table.energy_std >= 0) & (table.energy_std < 0.1))


def test_one_molecule_gives_scalars(solver, table):
    one = rks(small(NAMES[0]), solver=solver)
    assert np.ndim(one.energy) == np.ndim(one.gap) == np.ndim(one.converged) == 0
    assert one.energy.dtype == np.float64
    assert one.energy == table.energy[0], "a list of one must be the list's entry"
    assert one.dipole.shape == (3,)
    assert one.mo_energy.shape == (mole_of(small(NAMES[0])).nao,)
    assert one.status == "converged"
    assert one.mo_coeff is None
    assert one.density_matrix is None
    assert float(one.energy_terms["kinetic"]) > 0


def test_a_mixed_list_keeps_its_order(solver, table):
    mols = [small(NAMES[2]), HYDROGEN, small(NAMES[0]), HYDROGEN, small(NAMES[5])]
    mixed = rks(mols, solver=solver)
    np.testing.assert_array_equal(mixed.energy[[0, 2, 4]], table.energy[[2, 0, 5]])
    assert (
        mixed.energy[1] == mixed.energy[3] == pytest.approx(ground_state(HYDROGEN).e_tot, abs=1e-7)
    )
    assert [len(e) for e in mixed.mo_energy] == [mole_of(m).nao for m in mols]
    assert mixed.dipole.shape == (5, 3)


def test_a_list_of_one_and_an_empty_list(solver, table):
    one = rks([small(NAMES[1])], solver=solver)
    assert one.energy.shape == (1,)
    assert one.energy[0] == table.energy[1]
    none = rks([], solver=solver)
    assert none.energy.shape == (0,)
    assert none.status == []


FRANCIUM = Molecule([87, 8], [[0, 0, 0], [0, 0, 3.0]])
RADICAL = Molecule([8, 1], [[0, 0, 0], [0, 0, 1.8]])
FUSED = Molecule([1, 1], [[0, 0, 0], [0, 0, 0.05]])
INVALID = {"H to Rn": FRANCIUM, "odd number of electrons": RADICAL, "0.05 Bohr apart": FUSED}


@pytest.mark.parametrize("words", INVALID)
def test_one_invalid_molecule_raises(solver, words):
    with pytest.raises(ValueError, match=words):
        rks(INVALID[words], solver=solver)


def test_invalid_entries_of_a_list_are_data(solver):
    result = rks([FRANCIUM, HYDROGEN, RADICAL, FUSED], solver=solver, orbitals=True)
    assert result.status[1] == "converged"
    for b, words in ((0, "H to Rn"), (2, "odd number"), (3, "0.05 Bohr")):
        assert result.status[b].startswith("invalid: ")
        assert words in result.status[b]
        assert np.isnan(result.energy[b])
        assert np.isnan(result.gap[b])
        assert np.isnan(result.dipole[b]).all()
        assert not result.converged[b]
        assert len(result.mo_energy[b]) == 0
    assert np.isfinite(result.energy[1])


def test_throw_raises_on_the_first_invalid_entry(solver):
    with pytest.raises(InvalidMolecule, match="odd number of electrons"):
        rks([HYDROGEN, RADICAL, FRANCIUM], solver=solver, throw=True)


def test_not_converged_is_a_status_and_throw_says_the_remedy():
    """Two cycles are not enough for H2 in this density functional either."""
    stretched = Molecule([1, 1, 1], [[0, 0, 0], [0, 0, 1.4], [0.5, 2.5, 4.0]], charge=1)
    level = {"xc": "hf", "max_cycles": 2}
    result = rks([stretched], **level)
    assert result.status == ["not_converged"]
    assert not result.converged[0]
    assert result.cycles[0] == 2
    assert np.isfinite(result.energy[0])
    with pytest.raises(ConvergenceError, match=r"molecule 0 .*2 cycles.*max_cycles=2: raise it"):
        rks([stretched], **level, throw=True)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"basis": "sto-9g"}, UnknownBasis, "sto-9g.*sto-3g, 6-31g"),
        ({"xc": "m06"}, ValueError, "unknown functional 'm06'.*hf, lda, pbe"),
        ({"precision": "float16"}, ValueError, "float32, mixed, float64"),
        ({"grid_level": 10}, ValueError, "0 to 9"),
        ({"max_cycles": 0}, ValueError, "at least 1"),
    ],
)
def test_settings_that_are_not_offered(changes, error, words):
    with pytest.raises(error, match=words):
        rks(HYDROGEN, **changes)


def test_something_that_is_no_molecule(solver):
    with pytest.raises(TypeError, match="Molecule"):
        rks([HYDROGEN, "CCO"], solver=solver)


def test_forces_of_an_scf_for_energies():
    with pytest.raises(ValueError, match="before forces are right"):
        pi.forces(HYDROGEN, solver=pi.Solver(pi.Settings(accuracy="energy")))


def test_settings_where_a_basis_belongs():
    with pytest.raises(TypeError, match=r"solver=pyscf_ipu\.Solver\(settings\)"):
        rks(HYDROGEN, pi.Settings())


def test_a_solver_makes_the_level_of_theory(solver):
    assert rks(HYDROGEN, solver=solver, xc="b3lyp").energy == rks(HYDROGEN, solver=solver).energy
    with pytest.raises(ValueError, match="xc='hf' contradicts the solver"):
        rks(HYDROGEN, solver=solver, xc="hf")


def test_the_package_is_the_api():
    assert pi.rks is rks

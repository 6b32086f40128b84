"""What a molecule's energy must not depend on."""

import numpy as np
import pytest
from oracle import SMALL, WATER, small
from scipy.spatial.transform import Rotation

from pyscf_ipu import Molecule, rks

TOLERANCE = {"float32": 2e-5, "float64": 1e-8}
NAMES = tuple(SMALL)


@pytest.fixture(scope="module", params=["float32", "float64"])
def level(request, solver_of):
    """(solver, tolerance in Hartree)."""
    return solver_of(precision=request.param), TOLERANCE[request.param]


def moved(mol, rotation=None, shift=(0.0, 0.0, 0.0), order=None):
    order = np.arange(mol.n_atoms) if order is None else order
    positions = mol.positions if rotation is None else rotation.apply(mol.positions.copy())
    return Molecule(mol.numbers[order], positions[order] + np.array(shift), mol.charge)


def test_batch_mates(level):
    """A molecule alone, among others, in another place, and beside a bad one: the same bits."""
    solver, tolerance = level
    mols = [small(name) for name in NAMES]
    exploded = Molecule(mols[0].numbers, 0.45 * mols[0].positions)
    together = rks(mols, solver=solver)
    reverse = rks([exploded, *mols[::-1]], solver=solver)
    for b, mol in enumerate(mols):
        alone = rks(mol, solver=solver)
        for other, place in ((together, b), (reverse, len(mols) - b)):
            assert abs(alone.energy - other.energy[place]) <= tolerance
            assert abs(alone.gap - other.gap[place]) <= tolerance
            assert alone.cycles == other.cycles[place]
            # On a CPU the batch is a loop over molecules: nothing may differ at all.
            assert alone.energy == other.energy[place]


def test_order_of_atoms(level):
    solver, tolerance = level
    mol = small("methanol")
    order = np.random.default_rng(2).permutation(mol.n_atoms)
    assert list(order) != sorted(order)
    one = rks(mol, solver=solver, orbitals=True)
    other = rks(moved(mol, order=order), solver=solver, orbitals=True)
    assert abs(one.energy - other.energy) < tolerance
    assert abs(one.gap - other.gap) < tolerance
    np.testing.assert_allclose(one.dipole, other.dipole, rtol=0, atol=100 * tolerance)
    # PySCF's AO order follows the atoms, so the matrices must be permuted and nothing else.
    sizes = np.where(mol.numbers == 1, 1, 5)
    starts = np.concatenate([[0], np.cumsum(sizes)])[:-1]
    aos = np.concatenate([np.arange(starts[a], starts[a] + sizes[a]) for a in order])
    expected = one.density_matrix[np.ix_(aos, aos)]
    np.testing.assert_allclose(other.density_matrix, expected, rtol=0, atol=1e4 * tolerance)


def test_translation(level):
    solver, tolerance = level
    mol = small("methanol")
    shift = np.array([31.3, -17.1, 55.7])
    one = rks([mol, moved(mol, shift=shift)], solver=solver)
    assert abs(one.energy[0] - one.energy[1]) < tolerance
    np.testing.assert_allclose(one.dipole[0], one.dipole[1], rtol=0, atol=100 * tolerance)


def test_a_cation_s_dipole_moves_with_its_origin(level):
    solver, tolerance = level
    mol = small("methylammonium")
    shift = np.array([1.0, -2.0, 3.0])
    result = rks([mol, moved(mol, shift=shift)], solver=solver)
    moment = result.dipole[1] - result.dipole[0]
    np.testing.assert_allclose(moment, mol.charge * shift, rtol=0, atol=100 * tolerance)


ROTATION = Rotation.from_rotvec([0.4, -1.1, 0.7])


def test_rotation_of_the_exact_theory(solver_of):
    """Hartree-Fock has no grid: nothing may change beyond rounding."""
    solver = solver_of(precision="float64", xc="hf")
    one, other = (rks(m, solver=solver) for m in (WATER, moved(WATER, ROTATION)))
    assert abs(one.energy - other.energy) < 1e-9
    np.testing.assert_allclose(other.mo_energy, one.mo_energy, rtol=0, atol=1e-7)
    np.testing.assert_allclose(other.dipole, ROTATION.apply(one.dipole), rtol=0, atol=1e-5)


@pytest.mark.long
def test_rotation_on_a_fine_grid(solver_of):
    """A grid has directions; their influence must vanish as it becomes finer."""
    change = {}
    for grid_level in (0, 5):
        solver = solver_of(precision="float64", xc="lda", grid_level=grid_level)
        one, other = (rks(m, solver=solver) for m in (WATER, moved(WATER, ROTATION)))
        change[grid_level] = abs(one.energy - other.energy)
    assert change[5] < 1e-6
    assert change[5] < change[0]


@pytest.mark.parametrize(
    "level",
    [
        pytest.param({"precision": "mixed"}, marks=pytest.mark.long),
        {"precision": "float64", "xc": "hf"},
    ],
)
def test_empty_slots(level, solver_of):
    """In the coarsest of its shapes a molecule has seven spare atoms, which change digits alone."""
    solver, mol = solver_of(**level), small("methanol")
    shapes = [solver.shape(mol, coarse) for coarse in (0, 2)]
    assert [shape.n_heavy for shape in shapes] == [2, 9]
    one, other = (solver.run(shape, [mol], forces=True)[0] for shape in shapes)
    assert abs(one.energy - other.energy) < 1e-8
    np.testing.assert_allclose(one.mo_energy, other.mo_energy, rtol=0, atol=1e-5)
    np.testing.assert_allclose(one.forces, other.forces, rtol=0, atol=1e-5)
    np.testing.assert_allclose(one.dipole, other.dipole, rtol=0, atol=1e-4)

"""What goes to the device: slots, padding, and the way back to PySCF's AO order."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from oracle import METHYL_CHLORIDE, WATER, mole_of, small

from pyscf_ipu import Molecule, Settings
from pyscf_ipu.elements import free_atom
from pyscf_ipu.numerics.two_words import to_float64
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.shape import shape_of

FLOAT32 = Settings(grid_level=0)


def shape(mol, settings=FLOAT32):
    return shape_of(mol.numbers, settings.basis, settings.cart, settings.grid)


def test_atoms_sit_in_slots_of_their_class():
    mol = Molecule([1, 17, 1, 6, 1], METHYL_CHLORIDE.positions[[2, 1, 3, 0, 4]])
    order = conformer.slot_order(mol, shape(mol), FLOAT32)
    np.testing.assert_array_equal(order[[0, 1, 5, 6, 7]], [1, 3, -1, -1, -1])
    assert sorted(order[2:5]) == [0, 2, 4]


def test_a_conformer_does_not_know_the_order_of_its_atoms():
    """Down to the last bit: float32 arithmetic would otherwise depend on it."""
    rng = np.random.default_rng(5)
    mol = Molecule([6, 7, 8, 1, 1, 1, 1, 1], rng.normal(size=(8, 3)) * 3.0)
    slots = shape(mol)
    expected = conformer.conformer(mol, slots, FLOAT32)
    for _ in range(5):
        order = rng.permutation(mol.n_atoms)
        moved = Molecule(mol.numbers[order], mol.positions[order])
        jax.tree.map(
            np.testing.assert_array_equal, conformer.conformer(moved, slots, FLOAT32), expected
        )


def test_a_conformer_is_centred_and_padded():
    found = conformer.conformer(METHYL_CHLORIDE, shape(METHYL_CHLORIDE), FLOAT32)
    positions = to_float64(found.positions)
    centred = METHYL_CHLORIDE.positions - METHYL_CHLORIDE.positions.mean(0)
    order = conformer.slot_order(METHYL_CHLORIDE, shape(METHYL_CHLORIDE), FLOAT32)
    assert list(order[:2]) == [1, 0]
    expected = np.concatenate([centred[order[:5]], np.zeros((3, 3))])
    np.testing.assert_allclose(positions, expected, atol=1e-13)
    assert found.positions.hi.dtype == np.float32
    assert int(found.n_occupied) == 13
    charge = [t.charge for t in tables.shape_tables(shape(METHYL_CHLORIDE), FLOAT32)]
    owner = shape(METHYL_CHLORIDE).slot_class()
    in_slots = [charge[c][e] for c, e in zip(owner, found.element, strict=True)]
    np.testing.assert_array_equal(in_slots, [17, 6, 1, 1, 1, 0, 0, 0])


def test_padding_rows_hold_nothing():
    for table in tables.shape_tables(shape(METHYL_CHLORIDE), FLOAT32):
        assert not any(to_float64(c)[-1].any() for c in table.coefficients)
        assert not to_float64(table.weights)[-1].any()
        assert not table.guess[-1].any()
        assert all((to_float64(e) > 0).all() for e in table.exponents)


def test_shells_that_an_element_lacks_hold_nothing():
    """Carbon in the slots that it shares with oxygen."""
    mol = Molecule([6, 8], [[0, 0, 0], [0, 0, 2.1]])
    settings = Settings(basis="def2-tzvpd", grid_level=0)
    table, *_ = tables.shape_tables(shape(mol, settings), settings)
    charges = table.charge.tolist()
    empty = [
        [not to_float64(c)[charges.index(z)].any() for c in table.coefficients] for z in (6, 8)
    ]
    assert [sum(x) for x in empty] == [1, 0]
    own = np.diagonal(to_float64(table.one_centre.overlap), axis1=1, axis2=2)
    assert [(own[charges.index(z)] == 0).sum() for z in (6, 8)] == [3, 0]


def test_tables_carry_float64_numbers_in_float32_words():
    for single, double in zip(
        tables.shape_tables(shape(WATER), FLOAT32),
        tables.shape_tables(shape(WATER), Settings(precision="float64", grid_level=0)),
        strict=True,
    ):
        for a, b in zip(single.exponents, double.exponents, strict=True):
            assert a.hi.dtype == np.float32
            np.testing.assert_allclose(to_float64(a), to_float64(b), rtol=2.0**-47)


@pytest.mark.parametrize("number", [1, 2, 6, 8, 17])
@pytest.mark.parametrize("basis", ["sto-3g", "cc-pvdz"])
def test_free_atoms_are_spherical_and_hold_their_electrons(number, basis):
    density = free_atom.atomic_density(number, basis, False)
    mole = mole_of(Molecule([number], np.zeros((1, 3)), charge=-(number % 2)), basis)
    order = tables.element_basis(number, basis, False).pyscf_order
    overlap = mole.intor("int1e_ovlp")[np.ix_(order, order)]
    assert np.vdot(density, overlap) == pytest.approx(number, abs=1e-6)
    np.testing.assert_allclose(density, density.T, atol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        FLOAT32,
        Settings(basis="6-31g*", cart=True, grid_level=0),
        Settings(basis="cc-pvdz", grid_level=0),
        Settings(basis="def2-tzvpd", grid_level=0),
    ],
    ids=lambda s: s.basis,
)
def test_ao_order_is_a_permutation_that_keeps_atoms_together(settings):
    mol = METHYL_CHLORIDE
    slots = shape(mol, settings)
    found = conformer.ao_order(mol, slots, settings)
    mole = mole_of(mol, settings.basis, settings.cart)
    assert len(found) == len(set(found.tolist())) == mole.nao
    sizes = [slots.classes[c].n_ao for c in slots.slot_class()]
    owners = np.repeat(np.arange(slots.n_atoms), sizes)
    in_slot = conformer.slot_order(mol, slots, settings)
    for atom, (_, _, start, stop) in enumerate(mole.aoslice_by_atom()):
        np.testing.assert_array_equal(in_slot[owners[found[start:stop]]], atom)


@pytest.mark.parametrize("kind", ["pyscf", "gaussian"])
def test_a_batch_is_filled_up(kind):
    level = replace(FLOAT32, grid_level=(20, 50), prune=False, grid_kind=kind)
    mols = [small("methanol"), small("fluoromethane")]
    batch = conformer.batch(mols, shape(mols[0], level), level, 4)
    assert batch.element.shape == (4, 8)
    np.testing.assert_array_equal(batch.element[2], batch.element[0])
    assert (batch.axes is None) == (kind == "pyscf")
    empty = conformer.empty_batch(shape(mols[0], level), level, 4)
    assert jax.tree.structure(batch) == jax.tree.structure(empty)
    for a, b in zip(jax.tree.leaves(batch), jax.tree.leaves(empty), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)

"""Shapes: what molecules share a program, with limits that never change with the input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import METHYL_CHLORIDE, mole_of, small

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.elements.atomic_grid import atomic_grid
from pyscf_ipu.elements.basis import element_basis
from pyscf_ipu.shapes.shape import (
    count_ao,
    hydrogen_limits,
    padded_heavy,
    padded_hydrogens,
    shape_of,
    slot_class,
    slot_places,
)

LEVEL = ("sto-3g", False, 0)


def test_hydrogen_limits_are_fixed():
    """Changing one of them recompiles everybody's programs: do it on purpose."""
    assert {n: hydrogen_limits(n) for n in range(1, 12)} == {
        1: (4,),
        2: (6,),
        3: (8,),
        4: (10,),
        5: (7, 12),
        6: (9, 14),
        7: (7, 10, 16),
        8: (8, 10, 13, 18),
        9: (8, 11, 14, 20),
        10: (9, 13, 16, 22),
        11: (10, 14, 17, 24),
    }


@pytest.mark.parametrize("n_heavy", range(1, 20))
def test_every_hydrogen_count_finds_the_next_limit(n_heavy):
    saturated = 2 * n_heavy + 2
    assert hydrogen_limits(n_heavy)[-1] == saturated
    for n in range(saturated + 1):
        padded = padded_hydrogens(n_heavy, n)
        assert padded >= n
        assert not [limit for limit in hydrogen_limits(n_heavy) if n <= limit < padded]


def test_coarse_limits_are_fixed():
    assert {n: hydrogen_limits(n, coarse=True) for n in range(1, 12)} == {
        1: (4,),
        2: (6,),
        3: (8,),
        4: (10,),
        5: (12,),
        6: (14,),
        7: (10, 16),
        8: (13, 18),
        9: (14, 20),
        10: (16, 22),
        11: (17, 24),
    }


def test_the_coarsest_limits_are_fixed():
    assert [padded_heavy(n, 2) for n in (1, 9, 10, 14, 25, 36, 37)] == [9, 9, 13, 18, 25, 36, 37]
    assert [padded_heavy(n, coarse) for n in (1, 8) for coarse in (0, 1)] == [1, 1, 8, 8]
    assert {n: hydrogen_limits(n, coarse=2) for n in (9, 13, 37)} == {
        9: (20,),
        13: (28,),
        37: (76,),
    }


@given(st.integers(1, 40), st.integers(0, 90), st.integers(0, 2))
def test_every_molecule_fits_as_tightly_as_the_limits_allow(n_heavy, n_hydrogen, coarse):
    limits = hydrogen_limits(n_heavy, coarse)
    assert list(limits) == sorted(set(limits))
    assert set(limits) <= set(hydrogen_limits(n_heavy))  # programs of one serve the other
    padded = padded_hydrogens(n_heavy, n_hydrogen, coarse)
    enough = [limit for limit in limits if limit >= n_hydrogen]
    assert padded == min(enough, default=n_hydrogen)
    assert padded_hydrogens(n_heavy, n_hydrogen) <= padded


def test_molecules_of_several_fine_shapes_share_a_coarse_one():
    numbers = [[6] * 8 + [1] * n for n in (6, 9, 12)]
    assert len({shape_of(each, *LEVEL) for each in numbers}) == 3
    (shape,) = {shape_of(each, *LEVEL, coarse=True) for each in numbers}
    assert (shape.n_heavy, shape.n_hydrogen) == (8, 13)


def test_molecules_of_up_to_nine_heavy_atoms_share_the_coarsest_shape():
    """Spare slots are of the lightest row, so that chlorine makes one other shape and not eight."""
    numbers = [[6] * n + [1] * h for n, h in ((1, 4), (4, 6), (7, 16), (9, 20))]
    (shape,) = {shape_of(each, *LEVEL, coarse=2) for each in numbers}
    assert (shape.n_heavy, shape.n_hydrogen) == (9, 20)
    chlorides = [[6] * n + [17] + [1] * 3 for n in (1, 5, 8)]
    (shape,) = {shape_of(each, *LEVEL, coarse=2) for each in chlorides}
    assert shape.counts == (1, 8, 20)


def test_the_coarsest_shape_of_few_atoms_is_exact():
    assert shape_of([1, 1], *LEVEL, coarse=2) == shape_of([1, 1], *LEVEL)
    exact = {shape_of([6, 8], "cc-pcvdz", False, 0, coarse=c) for c in (0, 2)}
    assert len(exact) == 1  # a basis without hydrogen


@pytest.mark.parametrize("coarse", [0, 1, 2])
def test_beyond_saturation_counts_are_exact(coarse):
    assert padded_hydrogens(1, 5, coarse) == 5
    assert padded_hydrogens(0, 2, coarse) == 2


def test_first_row_atoms_share_a_shape():
    shapes = {shape_of(small(name).numbers, *LEVEL) for name in ("methanol", "fluoromethane")}
    assert len(shapes) == 1
    (shape,) = shapes
    assert (shape.n_heavy, shape.n_hydrogen, shape.n_ao) == (2, 6, 16)
    assert shape.n_pairs == 16 * 17 // 2
    assert shape.n_grid == 2 * len(atomic_grid(6, 0)) + 6 * len(atomic_grid(1, 0))
    assert shape.label == f"2 heavy + 6 H (16 AOs, {shape.n_grid} grid points)"


@pytest.mark.parametrize("basis", ["6-31+g*", "def2-tzvpd", "def2-tzvppd", "cc-pvtz"])
def test_carbon_to_fluorine_share_a_slot(basis):
    """In def2-TZVPD carbon and nitrogen have three functions less than the others."""
    level = basis, False, 0
    assert len({shape_of([z, 6, 1], *level) for z in (6, 7, 8, 9)}) == 1
    carbon = slot_class(6, *level)
    lacking = carbon.n_ao - count_ao([6], basis)
    assert lacking == (3 if basis.startswith("def2") else 0)
    places = slot_places(6, carbon.kinds, basis, False)
    assert len(set(places.tolist())) == count_ao([6], basis)
    of_slot = [kind.ls for kind in carbon.kinds for _ in range(kind.n_functions)]
    own = element_basis(6, basis, False).kinds
    assert [of_slot[p] for p in places] == [k.ls for k in own for _ in range(k.n_functions)]


def test_an_element_that_lacks_much_has_its_own_slot():
    assert slot_class(3, "def2-tzvpd", False, 0) != slot_class(6, "def2-tzvpd", False, 0)


def test_other_rows_are_another_class():
    shape = shape_of(METHYL_CHLORIDE.numbers, *LEVEL)
    assert shape.counts == (1, 1, 6)
    assert [c.n_ao for c in shape.classes] == [9, 5, 1]
    assert slot_class(2, *LEVEL) != slot_class(1, *LEVEL)  # helium's grid is not hydrogen's
    np.testing.assert_array_equal(shape.slot_class(), [0, 1, 2, 2, 2, 2, 2, 2])


def test_order_of_atoms_does_not_matter():
    numbers = METHYL_CHLORIDE.numbers
    assert shape_of(numbers[::-1], *LEVEL) == shape_of(numbers, *LEVEL)


def test_without_padding_the_counts_are_exact():
    shape = shape_of(METHYL_CHLORIDE.numbers, *LEVEL, pad=False)
    assert shape.n_hydrogen == 3
    assert shape.n_ao == mole_of(METHYL_CHLORIDE).nao


@pytest.mark.parametrize(
    ("basis", "cart"), [("sto-3g", False), ("6-31g*", True), ("cc-pvdz", False)]
)
def test_count_ao(basis, cart):
    assert (
        count_ao(METHYL_CHLORIDE.numbers, basis, cart) == mole_of(METHYL_CHLORIDE, basis, cart).nao
    )


def test_an_element_beyond_the_engine():
    with pytest.raises(InvalidMolecule, match="element 87"):
        shape_of([87, 1], *LEVEL)

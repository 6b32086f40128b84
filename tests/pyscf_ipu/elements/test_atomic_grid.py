"""Grids against PySCF's ``Grids.build``, and padding that must leave no trace."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pyscf import gto
from pyscf.data import elements
from pyscf.dft import gen_grid
from scipy.spatial import cKDTree

from pyscf_ipu.elements.atomic_grid import (
    Grid,
    atomic_grid,
    bragg_adjust,
    coarse_grid,
    near_order,
)
from pyscf_ipu.grid.becke import Cells, becke_weights
from pyscf_ipu.numerics.two_words import Pair

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
METHYL_CHLORIDE = "C 0 0 0; Cl 0 0 1.781; H 1.03 0 -.35; H -.515 .892 -.35; H -.515 -.892 -.35"


@pytest.fixture(autouse=True)
def strict_promotion():
    with jax.numpy_dtype_promotion("strict"):
        yield


def pyscf_grid(atoms, level, sort_grids=False):
    """The molecule and PySCF's grid of it, atom after atom unless sorted."""
    mol = gto.M(atom=atoms, basis="sto-3g", verbose=0)
    grids = gen_grid.Grids(mol)
    grids.level = level
    return mol, grids.build(sort_grids=sort_grids)


def padded_slots(numbers, level, extra_points=3):
    """Points, volumes and true sizes of all atoms, each padded with points at the nucleus."""
    tables = [atomic_grid(int(number), level) for number in numbers]
    size = max(len(table) for table in tables) + extra_points
    points = np.zeros((len(tables), size, 3))
    volumes = np.zeros((len(tables), size))
    for row, table in enumerate(tables):
        points[row, : len(table)] = table.points
        volumes[row, : len(table)] = table.weights
    return points, volumes, [len(table) for table in tables]


def device_weights(numbers, positions, points, volumes, dtype, empty_at=()):
    """Weights from ``becke_weights`` with empty slots appended at the given positions, float64."""
    real = len(numbers)
    numbers = np.concatenate([numbers, np.zeros(len(empty_at), int)])
    positions = np.concatenate([positions, np.reshape(empty_at, (-1, 3))])
    high = positions.astype(dtype)
    low = (positions - high.astype(np.float64)).astype(dtype)
    owner = np.arange(len(points))

    @jax.jit
    def compute(points, volumes, high, low, radius, mask):
        return becke_weights(points, volumes, owner, Cells(Pair(high, low), radius, mask))

    with jax.enable_x64(dtype == np.float64):
        floats = (points, volumes, high, low, bragg_adjust(numbers))
        arrays = [jnp.asarray(array, dtype) for array in floats]
        weights = compute(*arrays, jnp.asarray(np.arange(len(numbers)) < real))
        assert weights.dtype == dtype
        return np.asarray(weights, np.float64)


def unpad(array, sizes):
    return np.concatenate([row[:size] for row, size in zip(array, sizes, strict=True)])


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("atoms", [WATER, METHYL_CHLORIDE])
def test_molecular_grid_is_that_of_pyscf(atoms, level):
    mol, grids = pyscf_grid(atoms, level)
    numbers, positions = mol.atom_charges(), mol.atom_coords()
    points, volumes, sizes = padded_slots(numbers, level)
    total = sum(sizes)
    absolute = unpad(points + positions[:, None], sizes)
    _, order = cKDTree(grids.coords[:total]).query(absolute)
    np.testing.assert_array_equal(np.sort(order), np.arange(total))
    np.testing.assert_allclose(absolute, grids.coords[order], atol=1e-13)
    expected = grids.weights[order]

    weights = device_weights(numbers, positions, points, volumes, np.float64)
    # PySCF's cell functions are good to 1e-16 absolute, which is what an outer point is left with.
    # Some Lebedev spheres have negative weights.
    size = np.abs(unpad(volumes, sizes))
    slack = 1e-10 * np.abs(expected) + 1e-14 * size
    assert np.all(np.abs(unpad(weights, sizes) - expected) <= slack)
    assert np.all(weights[volumes == 0] == 0)

    single = device_weights(numbers, positions, points, volumes, np.float32)
    slack = 3e-6 * size
    assert np.all(np.abs(unpad(single, sizes) - expected) <= slack)
    assert np.median(np.abs(single - weights)[weights > 1e-6] / weights[weights > 1e-6]) < 2e-7


def test_sorted_pyscf_grid_holds_the_same_points():
    mol, grids = pyscf_grid(METHYL_CHLORIDE, 0, sort_grids=True)
    points, volumes, sizes = padded_slots(mol.atom_charges(), 0)
    weights = device_weights(mol.atom_charges(), mol.atom_coords(), points, volumes, np.float64)
    ours = np.column_stack(
        [unpad(points + mol.atom_coords()[:, None], sizes), unpad(weights, sizes)]
    )
    theirs = np.column_stack([grids.coords, grids.weights])[: len(ours)]
    order = [np.lexsort(np.round(table[:, :3], 8).T) for table in (ours, theirs)]
    np.testing.assert_allclose(ours[order[0]], theirs[order[1]], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("level", range(10))
def test_atomic_grids_from_hydrogen_to_chlorine_and_of_bromine(level):
    for number in (*range(1, 18), 35):
        symbol = elements.ELEMENTS[number]
        mol = gto.M(
            atom=f"{symbol} 0 0 0", basis={symbol: [[0, [1, 1]]]}, spin=number % 2, verbose=0
        )
        grids = gen_grid.Grids(mol)
        grids.level = level
        grids.build(sort_grids=False)
        table = atomic_grid(number, level)
        size = len(table)
        # PySCF pads to a multiple of eight with points of zero weight.
        assert 0 <= len(grids.weights) - size < 8
        assert np.all(grids.weights[size:] == 0)
        order = near_order(grids.coords[:size])
        np.testing.assert_array_equal(table.points, grids.coords[:size][order])
        np.testing.assert_array_equal(table.weights, grids.weights[:size][order])


@pytest.mark.parametrize("grid", [Grid(0), Grid(3), Grid((75, 302), pruned=False)])
def test_neighbours_follow_one_another(grid):
    points = atomic_grid(8, grid).points
    np.testing.assert_array_equal(np.sort(near_order(points)), np.arange(len(points)))
    octant = (points > 0) @ np.array([4, 2, 1])
    whole = len(points) // 64 * 64
    bands = octant[:whole].reshape(-1, 64)
    assert np.mean([len(set(band)) for band in bands]) < 2.5
    radius = np.linalg.norm(points, axis=1)[:whole].reshape(-1, 64)
    outer = radius.min(1) > 0.5
    assert np.all(radius.max(1)[outer] < 8.0 * radius.min(1)[outer])


def test_atomic_grid_is_cached_and_read_only():
    table = atomic_grid(6, 0)
    assert table is atomic_grid(6, 0)
    assert len(table) == 1086
    with pytest.raises(ValueError, match="read-only"):
        table.points[0, 0] = 1.0


@pytest.mark.parametrize("number", [0, 104])
def test_element_without_a_grid(number):
    with pytest.raises(ValueError, match=r"atomic numbers must lie in 1\.\.103"):
        atomic_grid(number, 0)


def test_radius_of_an_empty_slot_is_harmless():
    assert bragg_adjust(np.array([0]))[0] == 1.0
    with pytest.raises(ValueError, match="got \\[-1\\]"):
        bragg_adjust(np.array([1, -1]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_empty_slots_influence_nothing(dtype):
    mol, _ = pyscf_grid(WATER, 0)
    numbers, positions = mol.atom_charges(), mol.atom_coords()
    points, volumes, _ = padded_slots(numbers, 0)
    alone = device_weights(numbers, positions, points, volumes, dtype)
    # Two share a place, one lies on oxygen, one on a grid point, and one slot owns points itself.
    places = [(0, 0, 0), (0, 0, 0), positions[0], positions[1] + points[1, 5]]
    points, volumes = np.concatenate([points, points[:1]]), np.concatenate([volumes, volumes[:1]])
    padded = device_weights(numbers, positions, points, volumes, dtype, empty_at=places)
    np.testing.assert_array_equal(padded[:3], alone)
    assert np.all(padded[3] == 0)


def test_float32_does_not_notice_a_distant_origin():
    mol, _ = pyscf_grid(WATER, 0)
    numbers, positions = mol.atom_charges(), mol.atom_coords()
    points, volumes, _ = padded_slots(numbers, 0)
    here = device_weights(numbers, positions, points, volumes, np.float32)
    there = device_weights(numbers, positions + 1000 / 3, points, volumes, np.float32)
    np.testing.assert_allclose(there, here, rtol=1e-4, atol=3e-6 * volumes.max())
    assert abs(np.sum(there - here)) < 1e-6 * np.sum(here)


def test_single_atom_keeps_its_volumes():
    points, volumes, _ = padded_slots([18], 0)
    weights = device_weights(np.array([18]), np.zeros((1, 3)), points, volumes, np.float64)
    np.testing.assert_array_equal(weights, volumes)


@pytest.mark.parametrize("pruned", [True, False])
def test_radial_points_and_spheres(pruned):
    mol = gto.M(atom=METHYL_CHLORIDE, basis="sto-3g", verbose=0)
    grids = gen_grid.Grids(mol).set(atom_grid=(35, 110))
    if not pruned:
        grids.prune = None
    expected = gen_grid.gen_atomic_grids(mol, grids.atom_grid, grids.radi_method, prune=grids.prune)
    for symbol, number in (("C", 6), ("Cl", 17), ("H", 1)):
        found = atomic_grid(number, Grid((35, 110), pruned))
        points, weights = expected[symbol]
        order = near_order(points)
        np.testing.assert_array_equal(found.points, points[order])
        np.testing.assert_array_equal(found.weights, weights[order])
        assert (len(found) == 35 * 110) is not pruned


@pytest.mark.parametrize(("size", "share"), [(0, 0.09), (1, 0.11), (3, 0.06), ((75, 302), 0.06)])
def test_a_coarse_grid_has_a_tenth_of_the_points_or_less(size, share):
    few = coarse_grid(Grid(size))
    for number in (1, 6, 17):
        points = len(atomic_grid(number, few))
        assert points < 2 * share * len(atomic_grid(number, Grid(size)))
    assert len(atomic_grid(6, few)) < share * len(atomic_grid(6, Grid(size)))

"""Attraction cut by chunks and nuclei against the engine's, nucleus after nucleus."""

import jax
import numpy as np
import pytest
from oracle import WATER

from pyscf_ipu import Settings
from pyscf_ipu.integrals.one_electron import attraction
from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.ipu import BOW, profile_of
from pyscf_ipu.ipu.spread.attraction import spread_attraction
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan


@pytest.fixture(scope="module")
def water():
    settings = Settings(grid_level=0)
    shape = shape_of(WATER.numbers, settings.basis, False, 0)
    plan = tile_plan(shape)
    arrays = tables.shape_tables(shape, settings), conformer.conformer(WATER, shape, settings)
    atoms = jax.jit(lambda t, c: gather_atoms(plan, t, c, np.float32))(*arrays)
    return atoms, jax.jit(pair_strips)(atoms)


@pytest.mark.parametrize("n_tiles", [1472, 3], ids=["a nucleus to a vertex", "several"])
def test_the_sum_is_that_of_the_engine(water, n_tiles):
    atoms, strips = water
    found = jax.jit(lambda a, s: spread_attraction(n_tiles, a, s))(atoms, strips)
    expected = jax.jit(attraction)(atoms, strips)
    assert len(found) == len(expected) > 1
    for a, b in zip(found, expected, strict=True):
        assert np.abs(b).max() > 0.1
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-6 * np.abs(b).max())


def test_all_classes_share_a_compute_set(water):
    profile = profile_of(lambda a, s: spread_attraction(1472, a, s), BOW, *water)
    sets = [step for step, _ in profile.steps() if step.name.startswith("nuclear")]
    assert [step.name for step in sets] == ["nuclear_attraction*", "nuclear_sum"]
    atoms, _ = water
    chunks = sum(plan.atom.size for plan in atoms.plan.strips)
    assert sets[0].vertices == chunks * len(atoms.charge)
    assert profile.unknown_ops == {}

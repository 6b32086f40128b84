"""Attraction cut by chunks and nuclei against the engine's, nucleus after nucleus."""

import jax
import numpy as np
import pytest

from pyscf_ipu.integrals.one_electron import attraction
from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.ipu import BOW, profile_of
from pyscf_ipu.ipu.engine.spread.attraction import spread_attraction


@pytest.fixture(scope="module")
def both(water):
    """The atoms, and the data of their pairs."""
    return water, jax.jit(pair_strips)(water)


@pytest.mark.parametrize("n_tiles", [1472, 3], ids=["a nucleus to a vertex", "several"])
def test_the_sum_is_that_of_the_engine(both, n_tiles):
    atoms, strips = both
    found = jax.jit(lambda a, s: spread_attraction(n_tiles, a, s))(atoms, strips)
    expected = jax.jit(lambda a, s: attraction(a.plan, s, a.charge, a.nuclei))(atoms, strips)
    assert len(found) == len(expected) > 1
    for a, b in zip(found, expected, strict=True):
        assert np.abs(b).max() > 0.1
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-6 * np.abs(b).max())


def test_all_classes_share_a_compute_set(both):
    profile = profile_of(lambda a, s: spread_attraction(1472, a, s), BOW, *both)
    sets = [step for step, _ in profile.steps() if step.name.startswith("nuclear")]
    assert [step.name for step in sets] == ["nuclear_attraction*", "nuclear_sum"]
    atoms, _ = both
    chunks = sum(plan.atom.size for plan in atoms.plan.strips)
    assert sets[0].vertices == chunks * len(atoms.charge)
    assert profile.unknown_ops == {}

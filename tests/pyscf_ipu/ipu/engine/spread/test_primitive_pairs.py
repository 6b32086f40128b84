"""Hermite data by primitive pairs against the engine's, shell pair by shell pair."""

import jax
import numpy as np
import pytest

from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.ipu import BOW, profile_of
from pyscf_ipu.ipu.engine.spread.primitive_pairs import spread_pairs


@pytest.mark.parametrize("n_tiles", [1472, 9], ids=["a pair to a vertex", "several"])
def test_the_data_are_those_of_the_engine(water, n_tiles):
    found = jax.jit(lambda a: spread_pairs(n_tiles, a))(water)
    expected = jax.jit(pair_strips)(water)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-6 * max(1.0, np.abs(b).max()))


def test_all_groups_share_a_compute_set(water):
    profile = profile_of(lambda a: spread_pairs(1472, a), BOW, water)
    (pairs,) = (step for step, _ in profile.steps() if step.name.startswith("primitive_pairs"))
    groups = water.layout.groups
    assert pairs.vertices == sum(
        len(m.first) * groups[m.a].kind.n_prim * groups[m.b].kind.n_prim
        for s in water.plan.strips
        for m in s.pair_class.members
    )
    assert profile.unknown_ops == {}

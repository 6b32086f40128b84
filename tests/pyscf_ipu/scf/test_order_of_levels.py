"""Levels of orbitals: order, gap, and how far two sets are apart."""

import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.scf.orbitals import are_lowest, frontier_gap, level_error

LEVELS = jnp.asarray([-2.0, -1.0, 0.5, 3.0], jnp.float32)
TWO = jnp.int32(2)


def test_an_occupied_level_above_an_empty_one_is_seen():
    assert bool(are_lowest(LEVELS, TWO))
    assert not bool(are_lowest(LEVELS[jnp.asarray([0, 2, 1, 3])], TWO))


def test_the_gap_is_between_the_frontier_levels():
    assert float(frontier_gap(LEVELS, TWO)) == 1.5


@pytest.mark.parametrize(("place", "error"), [(0, 0.25), (2, 0.25), (3, 0.0)])
def test_differences_count_up_to_the_first_empty_level(place, error):
    moved = LEVELS + 0.25 * np.eye(4, dtype=np.float32)[place]
    assert float(level_error(moved, LEVELS, TWO)) == error

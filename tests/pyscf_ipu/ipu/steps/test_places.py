"""Linear mapping, rows on tiles, and what a rearrangement costs."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyscf_ipu.ipu import BOW, simulate
from pyscf_ipu.ipu.steps.places import linear, on_tiles, spread


@given(st.integers(0, 10**7), st.sampled_from([1, 2, 4]), st.sampled_from([1, 7, 1472]))
def test_every_element_has_a_tile(size, itemsize, n_tiles):
    for place in (linear(size, itemsize, n_tiles), spread(size, n_tiles)):
        assert place.elements.sum() == size
        assert place.elements.shape == (n_tiles,)


def test_small_arrays_stay_on_few_tiles():
    assert np.count_nonzero(linear(64, 4, 1472).elements) == 2  # 128 bytes each
    assert np.count_nonzero(spread(64, 1472).elements) == 64


def test_workers_of_a_tile_share_its_memory():
    place = on_tiles((5, 5, 7), 10, 8)
    np.testing.assert_array_equal(place.elements, [0, 0, 0, 0, 0, 20, 0, 10])
    with pytest.raises(ValueError, match="tile 9, and the target has tiles 0 to 7"):
        on_tiles((9,), 1, 8)


def exchanged(fn, *args):
    profile = simulate(fn, BOW)(*args)[1]
    return sum(s.moved_bytes * n for s, n in profile.steps() if s.kind == "exchange")


def test_rearranging_costs_the_exchange_of_what_is_used():
    x = np.ones((64, 64), np.float32)
    assert exchanged(lambda x: x + x, x) == 0
    assert exchanged(lambda x: x.reshape(-1) + x.reshape(-1), x) == 0
    assert exchanged(lambda x: x + x.T, x) == x.nbytes
    assert exchanged(lambda x: x + x[0], x) == x.nbytes
    assert exchanged(lambda x: jnp.concatenate([x, x])[:64] + x, x) == x.nbytes


def test_a_number_does_not_travel_to_its_own_tile():
    """Neither do conditions, though a condition has one byte and a number four."""

    def decide(x, y):
        low = jnp.minimum(x, y)
        return jnp.where((low < 1.0) & (jnp.max(y) > low), low, -y)

    assert exchanged(decide, np.float32(1.0), np.float32(2.0)) == 0
    profile = simulate(decide, BOW)(np.float32(1.0), np.float32(2.0))[1]
    assert {s.kind for s, _ in profile.steps()} == {"compute", "host"}

    def everywhere(x, y):
        return x * jnp.sum(y)

    x = np.ones((64, 64), np.float32)  # on 128 tiles, all but the first of which want the sum
    last = [s for s, _ in simulate(everywhere, BOW)(x, x)[1].steps() if s.kind == "exchange"][-1]
    assert last.moved_bytes == 4 * 127

"""Regions of a tile's memory: what code and the matrix unit need, and what is left over."""

import numpy as np
import pytest

from pyscf_ipu.base.errors import TileMemoryError
from pyscf_ipu.ipu.profile.regions import Memory

LIMIT, CODE = 624 * 1024, 208 * 1024
FAR = LIMIT - CODE


def tile(code=0, data=0, operands=0, **others):
    """A tile that holds so many bytes."""
    categories = {"Vertex Code": np.array([code]), "Variables": np.array([data])}
    none = np.zeros(1, np.int64)
    return Memory(LIMIT, categories, none, (), (), CODE, interleaved=np.array([operands]), **others)


def regions(memory):
    return [int(v[0]) for v in memory.regions.values()]


def test_data_fill_the_interleaved_region_first():
    assert list(tile().regions) == ["Non-interleaved", "Interleaved", "Overflowed"]
    assert regions(tile(1000, 5000)) == [1000, 5000, 0]
    assert regions(tile(1000, FAR + 5000)) == [6000, FAR, 0]
    assert regions(tile(CODE, FAR)) == [CODE, FAR, 0]


@pytest.mark.parametrize(
    ("memory", "lost", "match"),
    [
        (tile(0, LIMIT + 1), 1, "need up to 638977 bytes and have 638976"),
        (tile(CODE + 7, 100), 7, "212999 bytes of code, and only 212992 can run"),
        (tile(10, FAR + 100, FAR + 9), 9, "425993 bytes of interleaved memory at once"),
    ],
    ids=["full", "code", "operands"],
)
def test_what_has_no_place_overflows_and_strict_refuses_it(memory, lost, match):
    assert regions(memory)[2] == lost
    assert not memory.fits
    with pytest.raises(TileMemoryError, match=match):
        memory.check()


def test_what_fits_to_the_last_byte_is_not_refused():
    full = tile(CODE, FAR, FAR)
    assert full.fits
    full.check()


def test_streaming_memory_is_checked_too():
    held = {"streaming_bytes": 11, "streaming_limit_bytes": 10}
    with pytest.raises(TileMemoryError, match="the machine has 10"):
        tile(**held).check()


def test_a_chip_whose_regions_are_unknown_has_none():
    none = np.zeros(1, np.int64)
    memory = Memory(10, {"Vertex Code": np.array([9])}, none, (), (), interleaved=np.array([9]))
    assert memory.regions == {}
    assert memory.fits

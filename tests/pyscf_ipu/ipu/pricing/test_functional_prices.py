"""Every functional has a price on the simulated IPU, at every point."""

import numpy as np
import pytest

from pyscf_ipu.ipu import BOW, simulate
from pyscf_ipu.tiles import tile_map, tile_put_sharded
from pyscf_ipu.xc.registry import functional

POINT = np.ones((1, 6), np.float32)


@pytest.mark.parametrize("name", ["bp86", "hse06", "cam-b3lyp", "wb97m-d3bj", "tpss", "r2scan"])
def test_every_operation_has_a_price(name):
    xc = functional(name)
    ingredients = [POINT] * (3 if xc.needs_tau else 2)

    def on_tiles(*columns):
        return tile_map(xc.energy_density, *(tile_put_sharded(x, (0,)) for x in columns)).array

    _, profile = simulate(on_tiles, BOW)(*ingredients)
    assert profile.unknown_ops == {}
    assert profile.total_by("name")["energy_density"].high > 0

"""Exchange, links and host traffic, on cases small enough to do by hand."""

import numpy as np
import pytest

from pyscf_ipu.ipu.chip.quantity import UnknownQuantityError
from pyscf_ipu.ipu.chip.target import BOW, GC2, GC200
from pyscf_ipu.ipu.chip.transfer import exchange_cycles, host_seconds, link_cycles, sync_cost


def _bytes(n=8, **at):
    found = np.zeros(n)
    for tile, value in at.items():
        found[int(tile[1:])] = value
    return found


class TestOnChip:
    def test_the_busiest_receiver(self):
        assert exchange_cycles(BOW, _bytes(t1=400, t2=40), _bytes(t5=220, t6=220)) == 100

    def test_a_bus_carries_what_both_of_its_tiles_send(self):
        to = _bytes(t0=300, t1=300)
        assert exchange_cycles(BOW, to, _bytes(t4=300, t5=300)) == 150
        assert exchange_cycles(BOW, to, _bytes(t4=300, t6=300)) == 75

    def test_part_of_a_word_takes_a_cycle(self):
        assert exchange_cycles(BOW, _bytes(t0=5), _bytes(t1=5)) == 2

    def test_nothing_to_do(self):
        assert exchange_cycles(BOW, _bytes(), _bytes()) == 0

    def test_an_odd_tile_has_a_bus_of_its_own(self):
        assert exchange_cycles(BOW, _bytes(3, t0=8), _bytes(3, t2=8)) == 2

    def test_a_whole_chip(self):
        tiles = int(BOW.tiles_per_ipu)
        assert exchange_cycles(BOW, np.full(tiles, 1000.0), np.full(tiles, 1000.0)) == 500

    def test_shapes(self):
        with pytest.raises(ValueError, match=r"\(8,\) and bytes_out \(4,\)"):
            exchange_cycles(BOW, np.zeros(8), np.zeros(4))

    def test_a_chip_without_a_published_rate(self):
        with pytest.raises(UnknownQuantityError, match="exchange_bytes_per_cycle of GC2"):
            exchange_cycles(GC2, _bytes(t0=8), _bytes(t1=8))

    def test_sync(self):
        assert float(sync_cost(BOW)) == 126
        assert float(sync_cost(BOW, 2)) == 600


class TestLinks:
    def test_one_link(self):
        traffic = np.zeros((4, 4))
        traffic[0, 1] = 160e9
        assert link_cycles(BOW, traffic) == 1.85e9
        assert link_cycles(GC200, traffic) == 1.33e9

    def test_the_two_directions_run_together(self):
        traffic = np.zeros((4, 4))
        traffic[0, 1] = traffic[1, 0] = 160e9
        assert link_cycles(BOW, traffic) == 1.85e9

    def test_what_stays_on_its_ipu_is_free(self):
        assert link_cycles(BOW, np.diag([1e9, 2e9])) == 0

    def test_between_machines(self):
        traffic = np.zeros((8, 8))
        traffic[:4, 4:] = 125e9 / 16
        assert link_cycles(BOW, traffic) == 1.85e9
        inside = np.zeros((8, 8))
        inside[0, 1:4] = 125e9 / 3
        assert link_cycles(BOW, inside) == pytest.approx(1.85e9 * 125 / 160)

    def test_between_pods(self):
        traffic = np.zeros((128, 128))
        traffic[:64, 64:] = 16 * 25e9 / 64**2
        assert link_cycles(BOW, traffic) == 1.85e9

    @pytest.mark.parametrize("shape", [(2, 3), (4,), (0, 0)])
    def test_shapes(self, shape):
        with pytest.raises(ValueError, match="one row per sending IPU"):
            link_cycles(BOW, np.zeros(shape))


class TestHost:
    def test_a_range(self):
        low, mid, high = host_seconds(GC200, 5.5e9)
        assert high == pytest.approx(1.0)
        assert low < mid < high
        assert high / low == pytest.approx(20.1 / 5.5)

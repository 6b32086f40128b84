"""The targets: every figure has a source, and an unknown one cannot be used by accident."""

import dataclasses

import pytest

from pyscf_ipu.ipu.chip.quantity import HOWS, Quantity, UnknownQuantityError, unknown, weakest
from pyscf_ipu.ipu.chip.target import BOW, GC2, GC200, TARGETS, Target, priced_target, target

ALL = pytest.mark.parametrize("chip", TARGETS.values(), ids=TARGETS)


class TestQuantity:
    def test_is_a_number(self):
        q = Quantity(4, "B/cycle", "vendor", "a datasheet")
        assert float(q) == 4.0
        assert int(q) == 4

    def test_a_fraction_is_no_count(self):
        with pytest.raises(ValueError, match="not a whole number"):
            int(Quantity(7.44, "", "measured", "a profile"))

    @pytest.mark.parametrize("how", ["guessed", "", "Measured"])
    def test_provenance_is_checked(self, how):
        with pytest.raises(ValueError, match=r"unknown provenance.*measured, vendor"):
            Quantity(1.0, "s", how, "somewhere")

    def test_needs_a_source(self):
        with pytest.raises(ValueError, match="needs a source"):
            Quantity(1.0, "s", "vendor", "")

    @pytest.mark.parametrize(("value", "how"), [(None, "measured"), (1.0, "unknown")])
    def test_unknown_means_no_value(self, value, how):
        with pytest.raises(ValueError, match="None goes with"):
            Quantity(value, "s", how, "somewhere")

    def test_an_unknown_one_raises_and_names_itself(self):
        q = unknown("link latency of GC9", "s")
        assert not q.known
        for use in (float, int):
            with pytest.raises(UnknownQuantityError, match="link latency of GC9"):
                use(q)

    def test_weakest(self):
        assert weakest("measured") == "measured"
        assert weakest("measured", "formula", "vendor") == "formula"
        assert weakest("estimated", "measured") == "estimated"
        assert weakest(*HOWS) == "unknown"

    def test_weakest_of_nothing(self):
        with pytest.raises(ValueError, match="at least one"):
            weakest()

    def test_weakest_checks(self):
        with pytest.raises(ValueError, match="unknown provenance"):
            weakest("measured", "rumoured")


class TestTarget:
    def test_by_name(self):
        assert target("bow") is BOW
        assert target("GC200") is GC200
        assert list(TARGETS)[:3] == ["gc2", "gc200", "bow"]

    def test_unknown_name_lists_the_names(self):
        with pytest.raises(ValueError, match=r"'gc300'.*gc2, gc200, bow"):
            target("gc300")

    @pytest.mark.parametrize(
        ("name", "why"),
        [
            ("gc2", "too little is public about 'gc2'"),
            ("bow-pod4:8", "'bow-pod4:8': give no number"),
            ("gpu", "unknown target 'gpu'"),
        ],
    )
    def test_what_has_no_price_is_refused_with_what_has_one(self, name, why):
        with pytest.raises(ValueError, match=f"^{why}.*choose one of gc200, bow, "):
            priced_target(name)
        assert priced_target("BOW-pod4") is TARGETS["bow-pod4"]

    def test_no_silent_defaults(self):
        for f in dataclasses.fields(Target):
            assert f.default is dataclasses.MISSING
            assert f.default_factory is dataclasses.MISSING

    def test_is_immutable(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            BOW.name = "other"  # type: ignore[misc]
        with pytest.raises(TypeError):
            TARGETS["x"] = BOW  # type: ignore[index]

    @ALL
    def test_every_number_is_a_quantity(self, chip):
        strings = {"name", "ipu_version"}
        for f in dataclasses.fields(chip):
            assert isinstance(getattr(chip, f.name), str if f.name in strings else Quantity)

    @ALL
    def test_table_has_every_figure(self, chip):
        rows = {row[0]: row for row in chip.table()}
        assert set(rows) == set(chip.quantities())
        for name, (_, value, unit, how, source) in rows.items():
            figure = getattr(chip, name)
            assert (unit, how, source) == (figure.unit, figure.how, figure.source)
            assert (value == "-") == (how == "unknown")

    @ALL
    def test_memory_is_consistent(self, chip):
        limits = (chip.executable_memory_bytes, chip.loadable_bytes_per_tile)
        for smaller, larger in zip(limits, (limits[1], chip.memory_bytes_per_tile), strict=True):
            if smaller.known:
                assert float(smaller) < float(larger)

    @pytest.mark.parametrize("name", ["exchange_bytes_per_cycle", "global_sync_cycles"])
    def test_what_is_not_public_of_the_first_chip_raises(self, name):
        with pytest.raises(UnknownQuantityError, match=f"{name} of GC2"):
            float(getattr(GC2, name))

    @pytest.mark.parametrize(
        ("chip", "half", "single"), [(GC2, 124.5e12, 31.1e12), (BOW, 1.394e15 / 4, 0.349e15 / 4)]
    )
    def test_published_peak_rates(self, chip, half, single):
        cycles = float(chip.tiles_per_ipu) * float(chip.tile_clock_frequency)
        assert cycles * float(chip.fp16_amp_flops_per_cycle) == pytest.approx(half, rel=2e-3)
        assert cycles * float(chip.fp32_amp_flops_per_cycle) == pytest.approx(single, rel=2e-3)

    @pytest.mark.parametrize(("chip", "total"), [(GC2, 304), (GC200, 897), (BOW, 897)])
    def test_published_memory_of_a_chip(self, chip, total):
        mebibytes = float(chip.tiles_per_ipu) * float(chip.memory_bytes_per_tile) / 2**20
        assert mebibytes == pytest.approx(total, rel=1e-3)

    def test_measured_times_give_the_clock(self):
        for cycles, microseconds in ((6_681_766, 5_023.9), (25_444_984, 19_131.6)):
            hertz = cycles / (microseconds * 1e-6)
            assert float(GC200.tile_clock_frequency) == pytest.approx(hertz, rel=1e-5)

    def test_what_was_measured_with_one_chip_is_an_estimate_for_another(self):
        assert GC200.host_bandwidth_high.how == "measured"
        assert BOW.host_bandwidth_high.how == "estimated"

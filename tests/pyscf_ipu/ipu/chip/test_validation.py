"""The model against hardware.  Each class asserts what its kind of evidence allows, and no more."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.ipu.validation import (
    ADD_1024,
    KINDS,
    MATMUL_FLOAT16,
    SCALED_ADD,
    fitted_line,
    validation_table,
)
from pyscf_ipu.ipu.chip.amp import matmul_cycles
from pyscf_ipu.ipu.chip.target import BOW

DATA = Path(__file__).parents[3] / "data" / "ipu_amp_fp16_bow.csv"


def rows(id_, kind):
    found = [r for r in validation_table() if r.id == id_]
    assert found
    assert {r.kind for r in found} == {kind}
    return found


@pytest.fixture(scope="module")
def matmul_data():
    """[128, 4]: rows, Tflop/s, cycles without the counter's, PopLibs's estimate."""
    data = np.loadtxt(DATA, delimiter=",", skiprows=5)
    assert data.shape == (128, 4)
    return data


class TestPredictions:
    """Unfitted formulas of PopLibs."""

    def test_v1_is_the_unfitted_formula(self, matmul_data):
        for n, _, _, estimate in matmul_data:
            assert matmul_cycles(int(n), 16, 16, "float16") == estimate

    def test_v1_worst_of_128_points(self, matmul_data):
        modelled = np.array([matmul_cycles(int(n), 16, 16, "float16") for n in matmul_data[:, 0]])
        relative = modelled / matmul_data[:, 2] - 1
        assert np.abs(relative).max() < 0.08
        assert matmul_data[np.abs(relative).argmax(), 0] == 32

    @pytest.mark.parametrize(("n", "percent"), [(16, -6.2), (32, -7.9), (1024, -0.9), (2048, -0.4)])
    def test_v1_as_stated(self, matmul_data, n, percent):
        measured = matmul_data[matmul_data[:, 0] == n, 2][0]
        difference = 100 * (matmul_cycles(n, 16, 16, "float16") / measured - 1)
        assert difference == pytest.approx(percent, abs=0.05)

    def test_v1_lacks_a_constant_start_and_has_the_slope_right(self, matmul_data):
        """The 37 cycles are a finding about these data.  The model does not add them."""
        modelled = np.array([matmul_cycles(int(n), 16, 16, "float16") for n in matmul_data[:, 0]])
        missing = matmul_data[:, 2] - modelled
        assert missing.mean() == pytest.approx(37.3, abs=0.1)
        assert missing.std() == pytest.approx(1.6, abs=0.1)

    def test_v1_rows_of_the_table(self, matmul_data):
        found = rows("V1", "prediction")
        assert max(abs(r.difference_percent) for r in found) < 8
        measured = dict(zip(matmul_data[:, 0], matmul_data[:, 2], strict=True))
        assert all(measured[n] == cycles for n, cycles in MATMUL_FLOAT16)

    def test_v1_cycles_are_the_published_rates(self, matmul_data):
        n, rate, cycles, _ = matmul_data.T
        flops = float(BOW.tiles_per_ipu) * 2 * n * 16 * 16
        from_rate = flops / (rate * 1e12) * float(BOW.tile_clock_frequency)
        np.testing.assert_allclose(cycles, from_rate, rtol=2e-4)

    def test_v2_addition(self):
        (row,) = rows("V2", "prediction")
        assert row.measured == ADD_1024 - 45 == 1815
        assert row.modelled == 1733
        assert abs(row.difference_percent) < 5


class TestKnownMisses:
    def test_v3_the_start_of_a_short_addition(self):
        """Both the formula's value and its distance are pinned: a better formula must say so."""
        (row,) = rows("V3", "known miss")
        assert row.modelled == 203
        assert row.measured == 284.5
        assert row.difference_percent == pytest.approx(-28.6, abs=0.1)


class TestFits:
    def test_v4_scaled_addition(self):
        """Residuals of a line through its own four points: no evidence for the model."""
        found = rows("V4", "fit")
        assert len(found) == len(SCALED_ADD)
        assert max(abs(r.difference_percent) for r in found) < 2
        offset, slope = fitted_line(SCALED_ADD)
        assert offset == pytest.approx(280, abs=2)
        assert slope == pytest.approx(1.49, abs=0.01)

    def test_a_line_is_found_again(self):
        assert fitted_line(((0.0, 3.0), (1.0, 5.0), (2.0, 7.0))) == pytest.approx((3.0, 2.0))


class TestCalibrations:
    """Constants beside the measurement that they are from."""

    def test_v5_six_workers_take_turns(self):
        (row,) = rows("V5", "calibration")
        assert row.modelled == row.measured == 90

    def test_v6_triad(self):
        memory, arithmetic = rows("V6", "calibration")
        assert abs(memory.difference_percent) < 1
        assert abs(arithmetic.difference_percent) < 1
        # A peak cannot lie below what was reached.
        assert memory.modelled > memory.measured
        assert arithmetic.modelled > arithmetic.measured

    def test_v8_host(self):
        (row,) = rows("V8", "calibration")
        assert abs(row.difference_percent) < 1


def test_what_is_left_out():
    """V7, the exchange of tutorial 6: where Poplar put its tensors is not public."""
    table = validation_table()
    assert {r.id for r in table} == {"V1", "V2", "V3", "V4", "V5", "V6", "V8"}
    assert {r.kind for r in table} == set(KINDS)
    assert all(r.source and r.unit for r in table)

"""The matrix unit's formula, against values worked out by hand and against its limits."""

import numpy as np
import pytest

from pyscf_ipu.ipu.chip.amp import matmul_cycles
from pyscf_ipu.ipu.chip.target import BOW, GC2, GC200

# Number formats and operations per cycle of one tile, as the datasheet of the Bow-2000 has them.
BOTH = pytest.mark.parametrize(("dtype", "flops"), [("float16", 128), ("float32", 32)])


def test_one_pass_in_float16():
    # 50 + 6 * 7 set-up, 12 + 1 and 11 + 19 - 1 of loops, 7 + 32 to load the weights,
    # and six times the 37 - 7 + (11 - 3) * 4 cycles of the workers with 11 of 64 rows.
    assert matmul_cycles(64, 16, 16, "float16") == 92 + 13 + 29 + 39 + 6 * (30 + 32)


def test_one_pass_in_float32():
    # No retained set-up; clearing the sums adds 2 + 8 per row to 46 + (11 - 3) * 8.
    expected = 50 + 13 + 29 + 39 + 6 * (46 + 2 + 8 * 11 + 8 * 8)
    assert matmul_cycles(64, 8, 16, "float32") == expected


def test_a_second_chunk_adds_to_the_sums():
    # 16 - 1 + 19 of the loop, 6 + 32 for the weights, 46 + (11 - 3) * 8 per worker.
    added = matmul_cycles(64, 16, 16) - matmul_cycles(64, 8, 16)
    assert added == 34 + 38 + 6 * (46 + 8 * 8)


def test_a_second_pass_repeats_the_first():
    one, two, three = (matmul_cycles(64, 16, n, "float16") for n in (16, 32, 48))
    assert two - one == three - two == 7 + 32 + 6 * (30 + 32)


def test_equal_workers_wait_for_the_supervisors_tag():
    # 48 rows: eight for each worker, and the worker with the tag ends 14 cycles later.
    assert matmul_cycles(48, 16, 16, "float16") == 173 + 6 * (30 + 5 * 4) + 14


def test_fewer_rows_than_workers():
    assert matmul_cycles(1, 16, 16, "float16") == 173 + 6 * (32 - 7)


@pytest.mark.parametrize(("dtype", "chunk"), [("float16", 16), ("float32", 8)])
def test_padding(dtype, chunk):
    whole = matmul_cycles(10, 2 * chunk, 32, dtype)
    assert matmul_cycles(10, chunk + 1, 17, dtype) == whole
    assert matmul_cycles(10, 2 * chunk + 1, 32, dtype) > whole


@BOTH
def test_never_faster_than_the_peak(dtype, flops):
    for shape in np.random.default_rng(0).integers(1, 600, (200, 3)):
        rows, inner, columns = map(int, shape)
        ideal = 2 * rows * inner * columns / flops
        assert matmul_cycles(rows, inner, columns, dtype) > ideal


@BOTH
def test_large_products_approach_the_peak(dtype, flops):
    rows, inner, columns = 6000, 512, 16
    ideal = 2 * rows * inner * columns / flops
    assert 0.95 < ideal / matmul_cycles(rows, inner, columns, dtype) < 1


@pytest.mark.parametrize(
    ("chip", "dtype", "flops"),
    [(BOW, "fp16", 348.6e12), (GC200, "fp32", 62.6e12), (GC2, "fp16", 124.5e12)],
)
def test_peak_flops(chip, dtype, flops):
    rate = float(getattr(chip, f"{dtype}_amp_flops_per_cycle"))
    found = float(chip.tiles_per_ipu) * float(chip.tile_clock_frequency) * rate
    assert found == pytest.approx(flops, rel=1e-3)


@pytest.mark.parametrize("shape", [(0, 8, 16), (8, 0, 16), (8, 8, 0)])
def test_empty_matrices_are_refused(shape):
    with pytest.raises(ValueError, match="empty matrix"):
        matmul_cycles(*shape)


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_other_formats_are_refused(dtype):
    with pytest.raises(ValueError, match=f"float16 and float32, not {dtype}"):
        matmul_cycles(8, 8, 16, dtype)

"""Operations that training needs: each has a price, of the right size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from pyscf_ipu.ipu import BOW, BFloat16OnIpuError, DtypeOnIpuError, simulate
from pyscf_ipu.ipu.chip.amp import matmul_cycles
from pyscf_ipu.tiles import tile_map, tile_put_replicated, tile_put_sharded

X = np.linspace(0.1, 0.9, 4096, dtype=np.float32)
IMAGE = np.ones((8, 16, 16, 4), np.float32)
KERNEL = np.ones((3, 3, 4, 32), np.float32)
NUMBERS = ("NHWC", "HWIO", "NHWC")


def convolved(x, k):
    return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=NUMBERS)


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (lambda x: jax.checkpoint(jnp.sin)(x), (X,)),
        (jax.grad(lambda x: jnp.sum(jax.checkpoint(jnp.tanh)(x) ** 2)), (X,)),
        (lambda x: lax.top_k(x, 10), (X,)),
        (lambda x: x * jax.random.uniform(jax.random.key(0), x.shape), (X,)),
        (lambda x: x * jax.random.normal(jax.random.key(0), x.shape), (X,)),
        (lax.erf_inv, (X,)),
        (convolved, (IMAGE, KERNEL)),
        (lambda x: lax.while_loop(lambda v: jnp.sum(v) < 1e4, lambda v: v * 2.0, x), (X,)),
    ],
    ids=["remat", "remat-grad", "top_k", "uniform", "normal", "erf_inv", "convolution", "while"],
)
def test_has_a_price(fn, args):
    outputs, found = simulate(fn, BOW)(*args)
    assert found.unknown_ops == {}
    assert found.cycles.low > 0
    jax.tree.map(np.testing.assert_array_equal, outputs, jax.jit(fn)(*args))


def test_a_convolution_has_the_work_of_its_windows():
    _, found = simulate(convolved, BOW)(IMAGE, KERNEL)
    flops = [s.flops for s, _ in found.steps() if s.name == "conv_general_dilated"]
    assert max(flops) == 2 * 8 * 16 * 16 * 9 * 4 * 32


def test_a_loop_in_the_test_of_a_while_counts_its_turns():
    def go_on(v):
        return lax.while_loop(lambda x: x < 100.0, lambda x: x * 2.0, v) < 150.0

    def fn(v):
        return lax.while_loop(go_on, lambda v: v + 10.0, v)

    # 60 -> 120, 70 -> 140, 80 -> 160: the test asks three times, and doubles once each time.
    outputs, found = simulate(fn, BOW)(np.float32(60.0))
    assert outputs == 80.0
    assert [n for s, n in found.steps() if s.kind == "compute"] == [3, 2]
    assert found.unknown_ops == {}


class TestTypes:
    def test_the_matrix_unit_s_table_through_simulate(self):
        """[N, 16] @ [16, 16] on every tile: TessellateIPU's notebook measures these on a Bow."""
        for rows, measured in ((16, 402.0), (64, 584.0), (1024, 4424.0), (2048, 8525.3)):
            a, b = np.ones((1472, rows, 16), np.float16), np.ones((1472, 16, 16), np.float16)
            _, found = simulate(lambda a, b: a @ b, BOW)(a, b)
            (step,) = [s for s, _ in found.steps() if s.kind == "compute"]
            assert step.cycles.low == matmul_cycles(rows, 16, 16, "float16")
            assert step.cycles.low == pytest.approx(measured, rel=0.08)
        assert step.flops / (step.cycles.low / 1.85e9) == pytest.approx(334.9e12, rel=0.01)

    def test_half_the_bytes_and_more_per_cycle(self):
        def fn(x):
            return jnp.exp(x @ x) + x

        found = [simulate(fn, BOW)(np.ones((1024, 1024), t))[1] for t in (np.float32, np.float16)]
        full, half = found
        moved = [
            sum(s.moved_bytes * n for s, n in p.steps() if s.kind == "exchange") for p in found
        ]
        assert moved[1] < 0.7 * moved[0]
        assert half.cycles.low < 0.6 * full.cycles.low
        assert half.peaks.flops == 128

    def test_bfloat16_is_refused_with_the_remedy(self):
        with pytest.raises(BFloat16OnIpuError, match=r"mul computes in bfloat16.*float16"):
            simulate(lambda x: x * x, BOW)(jnp.ones(8, jnp.bfloat16))

    @pytest.mark.parametrize(
        ("dtype", "remedy"),
        [
            (jnp.float8_e4m3fn, "does not have.*use float16 or float32"),
            (jnp.float8_e5m2, "does not have.*use float16 or float32"),
            (jnp.int4, "does not have.*use int32"),
            (np.int8, "only stores.*use int32"),
            (np.uint16, "only stores.*use int32"),
            (np.complex64, "does not have.*real and imaginary part"),
        ],
    )
    def test_a_dtype_without_arithmetic_is_refused_with_the_remedy(self, dtype, remedy):
        name = np.dtype(dtype).name
        with pytest.raises(DtypeOnIpuError, match=f"mul computes in {name}, which an IPU {remedy}"):
            simulate(lambda x: x * x, BOW)(jnp.ones(8, dtype))

    @pytest.mark.parametrize("dtype", [np.int64, np.float64, np.complex128])
    def test_64_bits_are_refused(self, dtype):
        with jax.enable_x64(True), pytest.raises(DtypeOnIpuError, match=np.dtype(dtype).name):
            simulate(lambda x: x + x, BOW)(jnp.ones(8, dtype))

    def test_bytes_may_be_stored_and_moved_and_converted(self):
        def fn(x, y):
            chosen = jnp.where(y > 0, x[::-1], x).reshape(2, 4)
            return chosen, chosen[jnp.argmax(y[:2])].astype(jnp.float32) * y[:4]

        _, profile = simulate(fn, BOW)(jnp.ones(8, jnp.uint8), jnp.ones(8, jnp.float32))
        assert profile.unknown_ops == {}

    def test_a_vertex_is_looked_into(self):
        def fn(x):
            rows = tile_put_sharded(x, (1, 2))
            return tile_map(lambda row: row + row, rows, name="twice").array

        with pytest.raises(DtypeOnIpuError, match="add computes in int8"):
            simulate(fn, BOW)(jnp.ones((2, 8), jnp.int8))


def test_a_product_that_does_not_fit_is_cut_into_parts():
    x = np.ones((4096, 4096), np.float32)
    from pyscf_ipu.ipu import memory_of

    memory = memory_of(lambda a, b: a @ b, BOW, 1, x, x)
    assert memory.max_tile_bytes < 624 * 1024


def test_a_matrix_vector_product_waits_for_memory():
    """J = E v: two operations for each element that is read."""
    e, v = np.ones((4096, 4096), np.float32), np.ones(4096, np.float32)
    _, found = simulate(lambda e, v: jnp.sum(e * v, axis=1), BOW)(e, v)
    rate = found.rates()["all"]
    assert rate.bytes_share > rate.flops_share
    assert rate.bound in ("memory", "exchange")


def test_no_vertex_reads_faster_than_its_tile_s_memory():
    """Eight rows of E on every tile: 16 bytes a cycle are 43.6 TB/s for a Bow, 65 with stores."""
    e, v = np.ones((1471, 8, 1024), np.float32), np.ones(1024, np.float32)

    def product(e, v):
        rows = tile_put_sharded(e, tuple(range(1, 1472)))
        vector = tile_put_replicated(v, rows.tiles)
        return tile_map(lambda a, x: a @ x, rows, vector, name="e_v", shared=True).array

    outputs, found = simulate(product, BOW)(e, v)
    np.testing.assert_array_equal(outputs, np.full((1471, 8), 1024.0))
    (step,) = [s for s, _ in found.steps() if s.kind == "compute"]
    assert step.cycles.low == 11 + (8 * 1024 + 1024) * 4 / 16
    assert step.memory_bytes / (step.cycles.low / 1.85e9) < 65.4e12

"""What is live when: data on the move, memory inside vertices, code that vertices share."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.ipu import BOW, TileMemoryError, simulate
from pyscf_ipu.ipu.simulate import profile_of
from pyscf_ipu.ipu.steps.tile_memory import Tracker
from pyscf_ipu.tiles import subroutine, tile_map, tile_put_replicated, tile_put_sharded

ALL = tuple(range(1472))


def variables(fn, *args):
    return profile_of(fn, BOW, *args).memory.by_category["Variables"]


def test_rows_that_a_variable_keeps_are_not_counted_twice():
    """1,000 numbers on one tile, received into the variable that has them, and a result."""
    x = np.ones((1, 1000), np.float32)

    def fn(x):
        return tile_map(lambda r: r + 1.0, tile_put_sharded(x, (700,)), name="add").array

    assert variables(fn, x)[700] == 2 * 4000


def test_what_no_variable_keeps_lives_for_one_compute_set():
    x = np.ones((1472, 64), np.float32)
    memory = profile_of(lambda x: x.T * 2.0, BOW, x).memory
    received = memory.by_category["Variables"].max() - 2 * 256
    assert received == 256


def test_all_vertices_of_a_compute_set_have_their_operands_at_once():
    """Two maps that share a set: the rows of the first live until both have run."""
    x = np.ones((1472, 1000), np.float32)

    def fn(x):
        first = tile_map(jnp.sum, tile_put_replicated(x[0], ALL), name="a").array
        second = tile_map(jnp.sum, tile_put_replicated(x[1], ALL), name="b").array
        return first + second

    found = variables(fn, x).max()
    assert 4000 + 2 * 4000 <= found < 4000 + 2 * 4000 + 600


def test_scratch_lives_as_long_as_its_compute_set():
    """A wide vertex first, much data later: they are never there together."""

    def vertex(r):
        return jnp.sum(jnp.dot(r[:, None], r[None], precision="highest"))

    def first(x):
        return tile_map(vertex, tile_put_sharded(x, ALL), name="outer", shared=True).array

    def both(x):
        much = x[:, :1] + jnp.arange(60_000.0)[None]  # 240 kB on a tile
        return jnp.sum(first(x)) + jnp.sum(jnp.exp(much - jnp.sum(first(x))))

    x = np.ones((1472, 200), np.float32)
    alone, together = (profile_of(fn, BOW, x).memory for fn in (first, both))
    assert alone.by_category["Vertex Scratch"].max() >= 200 * 200 * 4
    assert together.by_category["Vertex Scratch"].max() == 0


def test_a_tile_has_the_code_of_a_subroutine_once():
    def long(x):
        for _ in range(40):
            x = jnp.exp(x) + 1.0
        return x

    def fn(x, made):
        shared = made(long)
        parts = [
            tile_map(lambda r: shared(r) * 2.0, tile_put_sharded(x, ALL), name="a"),
            tile_map(lambda r: shared(shared(r[:3])) - 1.0, tile_put_sharded(x, ALL), name="b"),
        ]
        return sum(p.array.sum() for p in parts)

    x = np.ones((1472, 8), np.float32)
    own, once = (
        profile_of(lambda x, m=m: fn(x, m), BOW, x).memory.code.max()
        for m in (lambda f: f, subroutine)
    )
    operations = 80 * 12 * 4
    calls = 3 * 12 * 4
    assert own - once == 2 * operations - calls  # three times inlined, once as a subroutine
    np.testing.assert_array_equal(subroutine(long)(x), jax.jit(long)(x))


def test_code_is_where_its_vertices_are():
    tracker = Tracker(4)
    tracker.add_code("v", np.array([True, False, False, False]), 100)
    tracker.add_code("v", np.array([True, True, False, False]), 100)
    assert tracker.fixed["Vertex Code"].tolist() == [100, 100, 0, 0]


def test_lifetimes_say_what_is_live():
    def fn(x):
        return jnp.sum(jnp.exp(x)) + x

    memory = profile_of(fn, BOW, np.ones(1472 * 64, np.float32)).memory
    by_name = {x.name: x for x in memory.lifetimes}
    assert by_name["argument"].first == 0
    assert by_name["argument"].total_bytes == 1472 * 256
    assert by_name["exp"].first < by_name["exp"].end <= by_name["add"].end
    assert by_name["add"].end == len(memory.timeline)


class TestProducts:
    @staticmethod
    def of(n, dtype=np.float32, **options):
        x = jax.ShapeDtypeStruct((n, n), dtype)
        return simulate(jnp.matmul, BOW, **options), x

    @pytest.mark.parametrize("dtype", [np.float32, np.float16])
    def test_a_large_one_fits_in_parts(self, dtype):
        """4096 x 4096: uncut, its blocks take more than a tile has."""
        x = jax.ShapeDtypeStruct((4096, 4096), dtype)
        found = profile_of(jnp.matmul, BOW, x, x)
        found.memory.check()
        assert found.memory.only_interleaved.max() <= 0.6 * 624 * 1024
        (parts,) = [node.count for node in found.program if hasattr(node, "count")]
        assert parts > 1
        assert 2.0 * 4096**3 / found.cycles.low < 1472 * (32 if dtype == np.float32 else 128)
        work = sum(s.flops * n for s, n in found.steps())
        assert work == pytest.approx(2.0 * 4096**3, rel=0.01)

    def test_less_memory_makes_more_parts_and_takes_longer(self):
        x = np.ones((1024, 1024), np.float32)
        found = [
            simulate(jnp.matmul, BOW, available_memory_proportion=share)(x, x)[1]
            for share in (0.6, 0.1, 0.05)
        ]
        assert [p.memory.max_tile_bytes for p in found] == sorted(
            (p.memory.max_tile_bytes for p in found), reverse=True
        )
        assert found[0].cycles.low < found[1].cycles.low < found[2].cycles.low
        assert found[2].memory.only_interleaved.max() <= 0.05 * 624 * 1024
        for share in (0.0, 1.5):
            with pytest.raises(ValueError, match=f"available_memory_proportion={share}"):
                simulate(jnp.matmul, BOW, available_memory_proportion=share)

    def test_operands_that_are_too_large_for_interleaved_memory_are_refused(self):
        """One vertex with operands of 480 KiB: the tile has room, its interleaved part has not."""

        def fn(x):
            return tile_map(
                lambda r: jnp.matmul(r, r[:, :16], precision="highest"),
                tile_put_sharded(x[None], (3,)), name="square", shared=True,
            ).array  # fmt: skip

        x = np.ones((340, 340), np.float32)
        _, profile = simulate(fn, BOW)(x)
        assert profile.memory.interleaved_overflowing.tolist() == [3]
        assert "interleaved memory, more than there is" in profile.to_dict()["findings"][2]
        with pytest.raises(TileMemoryError, match="interleaved memory at once"):
            simulate(fn, BOW, strict=True)(x)


class TestConstants:
    TABLE = np.linspace(1.0, 2.0, 50, dtype=np.float32)

    @staticmethod
    def of(fn):
        return profile_of(fn, BOW, np.ones((3, 50), np.float32)).memory.by_category["Constants"]

    def vertex(self, r):
        return r * jnp.asarray(self.TABLE)

    def test_a_table_is_once_on_each_tile_whose_vertices_read_it(self):
        """Two vertices on tile 5, one on tile 6; the program's own copy is on tiles 0 and 1."""
        at = (5, 5, 6)
        found = self.of(lambda x: tile_map(self.vertex, tile_put_sharded(x, at), name="v").array)
        assert found[4:8].tolist() == [0, 200, 200, 0]

    def test_a_table_of_a_subroutine_is_counted(self):
        def fn(x):
            here = tile_put_sharded(x, (5, 5, 6))
            once = tile_map(lambda r: subroutine(self.vertex)(r) + 1.0, here, name="a").array
            return once + tile_map(self.vertex, here, name="b").array  # the same table

        assert self.of(fn)[4:8].tolist() == [0, 200, 200, 0]

    def test_a_table_of_an_ordinary_operation_is_where_its_elements_are(self):
        x = np.ones((1472, 50), np.float32)
        found = profile_of(lambda x: x * jnp.asarray(self.TABLE), BOW, x).memory
        assert found.by_category["Constants"][100:].tolist() == [200] * 1372

    def test_equal_numbers_are_in_the_code(self):
        assert not self.of(lambda x: x * jnp.full((3, 50), 2.0)).any()

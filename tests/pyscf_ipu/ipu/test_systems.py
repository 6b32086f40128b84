"""Systems, replicas and what they exchange with each other and with their host."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from pyscf_ipu.ipu import (
    BOW,
    TARGETS,
    Quantity,
    TileMemoryError,
    simulate,
    streaming_load,
    streaming_store,
    target,
)
from pyscf_ipu.ipu.chip.collectives import collective_cycles, levels

X = np.linspace(0.1, 1.0, 4096, dtype=np.float32)
POD16 = target("bow-pod16")
CLOCK = 1.85e9


def reducing(fn):
    """`fn` on every replica, and the sum of its results."""
    mesh = Mesh(np.array(jax.devices()[:1]), ("replica",))
    none = PartitionSpec()
    return jax.shard_map(
        lambda x: lax.psum(fn(x), "replica"),
        mesh=mesh,
        in_specs=none,
        out_specs=none,
        check_vma=False,
    )


class TestSystems:
    @pytest.mark.parametrize(("name", "ipus"), [("pod4", 4), ("pod16", 16), ("pod256", 256)])
    @pytest.mark.parametrize("chip", ["bow", "gc200"])
    def test_have_ipus_and_machines(self, chip, name, ipus):
        system = target(f"{chip}-{name}")
        assert int(system.ipus_per_system) == ipus
        assert system.machines == ipus // 4
        assert system.tile_clock_frequency == TARGETS[chip].tile_clock_frequency
        for figure in ("host_link_bytes_per_second", "host_cores", "streaming_memory_bytes"):
            assert getattr(system, figure).known

    def test_what_a_system_does_not_have_is_refused(self):
        for options in ({"num_ipus": 17}, {"num_ipus": 4, "replicas": 5}):
            with pytest.raises(ValueError, match="bow-pod16 has 16 IPUs"):
                simulate(jnp.exp, POD16, **options)
        with pytest.raises(ValueError, match="replicas=0"):
            simulate(jnp.exp, BOW, replicas=0)
        simulate(jnp.exp, BOW, 64)  # a chip stands for any number

    def test_published_peak_of_a_machine(self):
        rate = int(BOW.tiles_per_ipu) * float(BOW.tile_clock_frequency)
        assert 4 * rate * BOW.peaks(half=True).flops == pytest.approx(1.394e15, rel=2e-3)
        assert rate * BOW.peaks().bytes == pytest.approx(65.4e12, rel=2e-3)  # 261 TB/s of four


class TestRings:
    def test_one_level_is_the_formula(self):
        for n in (2, 3, 4):
            found = collective_cycles(BOW, "psum", 160e6, n)
            assert found.low == pytest.approx(2 * (n - 1) / n * 160e6 / 160e9 * CLOCK, abs=1)
            assert found.high == found.low + 2 * (n - 1) * 600

    def test_levels_follow_the_machines(self):
        assert [x.members for x in levels(BOW, 16)] == [4, 4]
        assert [x.members for x in levels(BOW, 256)] == [4, 16, 4]
        assert [x.members for x in levels(BOW, 16, num_ipus=4)] == [16]
        assert [x.members for x in levels(BOW, 4, num_ipus=16)] == [4]
        assert levels(BOW, 1) == ()

    def test_two_levels_by_hand(self):
        found = collective_cycles(BOW, "psum", 1e9, 16).low / CLOCK
        assert found == pytest.approx(1.5 * (1e9 / 160e9 + 1e9 / 125e9), rel=1e-6)

    def test_a_gather_moves_what_results(self):
        assert collective_cycles(BOW, "all_gather", 1e6, 4).low == pytest.approx(
            collective_cycles(BOW, "reduce_scatter", 4e6, 4).low, abs=1
        )
        one = collective_cycles(BOW, "ppermute", 160e6, 2).low
        assert one == pytest.approx(1e-3 * CLOCK, abs=1)


class TestReplicas:
    def test_one_of_sixteen_costs_what_one_costs_and_its_collectives(self):
        fn = reducing(lambda x: jnp.exp(x) * x)
        expected, alone = simulate(fn, POD16)(X)
        outputs, one = simulate(fn, POD16, replicas=16)(X)
        np.testing.assert_array_equal(outputs, expected)
        (reduce,) = [s for s, _ in one.steps() if s.name == "psum"]
        assert reduce.cycles.low == collective_cycles(POD16, "psum", float(X.nbytes), 16).low
        assert one.cycles.low == alone.cycles.low + reduce.cycles.low + 600
        assert not [s for s, _ in alone.steps() if s.name == "psum"]

    def test_successive_reductions_are_one(self):
        def pair(x):
            return x * 2.0, x * 3.0

        _, found = simulate(reducing(pair), POD16, replicas=4)(X)
        (reduce,) = [s for s, _ in found.steps() if s.name == "psum"]
        assert reduce.moved_bytes == 2 * X.nbytes

    def test_the_profile_has_a_row_for_every_ipu(self):
        _, found = simulate(reducing(jnp.exp), POD16, 2, replicas=8)(X)
        rows = found.ipus()
        assert [r.ipu for r in rows] == list(range(16))
        assert [r.replica for r in rows][:4] == [0, 0, 1, 1]
        assert rows[-1].machine == 3
        assert len(found.to_dict()["ipus"]) == 16
        assert "8 replicas" in found.summary() or "Replicas" in found.summary()

    def test_a_mesh_of_other_size_is_refused(self):
        def traced(x):  # a mesh of four devices, of which this machine may have one
            mesh = jax.sharding.AbstractMesh((4,), ("replica",))
            spec = PartitionSpec()
            run = partial(jax.shard_map, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
            return run(lambda y: lax.psum(y, "replica"))(x)

        with pytest.raises(ValueError, match="spread over 4 devices"):
            simulate(traced, POD16, replicas=16)(X)


class TestHost:
    def step(self, name, profile):
        return [s for s, _ in profile.steps() if s.name == name]

    def test_streams_are_steps_outside_the_cycles(self):
        _, found = simulate(jnp.exp, POD16)(X)
        (into,), (outof,) = (self.step(n, found) for n in ("stream in", "stream out"))
        assert into.kind == outof.kind == "host"
        assert into.moved_bytes == outof.moved_bytes == X.nbytes
        assert found.program[0] is into
        assert found.program[-1] is outof
        assert found.cycles.low == sum(s.cycles.low for s, _ in found.steps() if s.kind != "host")
        moved = (into.cycles.low + outof.cycles.low) / CLOCK
        assert found.wall_seconds.low == pytest.approx(found.seconds.low + moved)

    def test_traffic_beside_the_program_costs_the_longer_of_both(self):
        _, found = simulate(jnp.exp, POD16, overlap=True)(X)
        moved = sum(s.cycles.low for s, _ in found.steps() if s.kind == "host")
        assert found.wall_seconds.low == pytest.approx(max(found.cycles.low, moved) / CLOCK)

    def test_replicas_of_a_machine_share_its_link(self):
        one, sixteen = (simulate(jnp.exp, POD16, replicas=n)(X)[1].host_seconds[0] for n in (1, 16))
        assert sixteen == pytest.approx(4 * one)
        assert one == pytest.approx(2 * X.nbytes / 12.5e9)

    def test_what_stays_is_not_charged_again(self):
        def step(weights, x):
            return {"w": weights["w"] + x.sum()}, x * 2.0

        weights = {"w": np.ones(1000, np.float32)}
        _, all_ = simulate(step, POD16)(weights, X)
        _, kept = simulate(step, POD16, resident=(0,))(weights, X)
        for profile, nbytes in ((all_, X.nbytes + 4000), (kept, X.nbytes)):
            for name in ("stream in", "stream out"):
                assert self.step(name, profile)[0].moved_bytes == nbytes
        assert kept.cycles == all_.cycles
        with pytest.raises(ValueError, match=r"resident=\[2\].*arguments 0 to 1"):
            simulate(step, POD16, resident=(2,))(weights, X)


class TestStreamingMemory:
    X = np.ones((1472, 4096), np.float32)  # 16 KiB on every tile

    @staticmethod
    def fn(x):
        kept = streaming_store(jnp.exp(x))
        small = jnp.sum(x)
        return streaming_load(kept) + small

    def test_stores_and_loads_cost_their_bytes_over_the_machine_s_dram(self):
        outputs, found = simulate(self.fn, POD16)(self.X)
        np.testing.assert_array_equal(outputs, jax.jit(self.fn)(self.X))
        moves = [s for s, _ in found.steps() if "streaming memory" in s.name]
        assert [s.name.split()[0] for s in moves] == ["store", "load"]
        for s in moves:
            assert s.cycles.low == pytest.approx(self.X.nbytes / 38.4e9 * CLOCK)
        assert found.memory.streaming_bytes == self.X.nbytes

    def test_replicas_of_a_machine_share_it(self):
        one, four = (simulate(self.fn, POD16, replicas=n)(self.X)[1] for n in (1, 4))
        (a, *_), (b, *_) = (
            [s.cycles.low for s, _ in p.steps() if "streaming" in s.name] for p in (one, four)
        )
        assert b == pytest.approx(4 * a)
        assert four.memory.streaming_bytes == 4 * self.X.nbytes

    def test_what_is_stored_takes_no_tile_memory(self):
        def wide(x):
            return jnp.sum(jnp.tanh(x)[None] * jnp.arange(1.0, 5.0)[:, None, None] + x, axis=0)

        def plain(x):
            kept = jnp.exp(x)
            return wide(x) + kept

        def streamed(x):
            kept = streaming_store(jnp.exp(x))
            return wide(x) + streaming_load(kept)

        full, less = (simulate(f, BOW)(self.X)[1].memory.max_tile_bytes for f in (plain, streamed))
        assert full - less == pytest.approx(self.X.nbytes / 1472, rel=0.05)

    def test_strict_knows_its_size(self):
        tiny = dataclasses.replace(
            BOW, streaming_memory_bytes=Quantity(1e6, "B", "estimated", "a test")
        )
        with pytest.raises(TileMemoryError, match="kept off the chip"):
            simulate(self.fn, tiny, strict=True)(self.X)

    def test_a_stored_array_has_to_be_loaded(self):
        with pytest.raises(ValueError, match="streaming_load first"):
            simulate(lambda x: streaming_store(x) + 1.0, BOW)(self.X)
        with pytest.raises(ValueError, match="on the tiles"):
            simulate(streaming_load, BOW)(self.X)

    def test_derivatives_go_the_other_way(self):
        gradient = jax.grad(lambda x: jnp.sum(streaming_load(streaming_store(x * 2.0))))
        np.testing.assert_array_equal(gradient(self.X), np.full_like(self.X, 2.0))


def test_code_that_cannot_run_is_counted():
    tiny = dataclasses.replace(BOW, executable_memory_bytes=Quantity(8, "B", "estimated", "a test"))
    _, found = simulate(jnp.exp, tiny)(X)
    assert found.memory.code_overflowing.size
    with pytest.raises(TileMemoryError, match="only 8 can run"):
        simulate(jnp.exp, tiny, strict=True)(X)

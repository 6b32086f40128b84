"""Stages on IPUs of their own: where operations go, what crosses, how micro-batches follow."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pyscf_ipu.ipu import BOW, on_ipu, simulate, target
from pyscf_ipu.ipu.findings.pipelines import Pipeline
from pyscf_ipu.ipu.profile.data import Cycles

X = np.ones((64, 64), np.float32)


def two_layers(x):
    with on_ipu(0):
        y = jnp.tanh(x @ x)
    with on_ipu(1):
        return jnp.exp(y @ y)


def found(fn, *args, ipus=2):
    return simulate(fn, BOW, ipus)(*args)


def test_stages_are_priced_as_alone_and_pay_for_what_crosses():
    outputs, profile = found(two_layers, X)
    np.testing.assert_array_equal(outputs, jax.jit(two_layers)(X))
    first = simulate(lambda x: jnp.tanh(x @ x), BOW)(X)[1].cycles.low
    second = simulate(lambda y: jnp.exp(y @ y), BOW)(X)[1].cycles.low
    (link,) = [s for s, _ in profile.steps() if s.name == "IPU 0 to IPU 1"]
    assert link.moved_bytes == X.nbytes
    stages = profile.pipeline().stages
    assert stages[0].low == first
    assert stages[1].low == second + link.cycles.low + 600
    assert profile.cycles.low == stages[0].low + stages[1].low


def test_tiles_and_memory_are_those_of_both():
    _, profile = found(two_layers, X)
    assert profile.n_tiles == 2 * 1472
    assert profile.memory.per_tile.size == 2 * 1472
    assert [row.compute_cycles > 0 for row in profile.ipus()] == [True, True]


def test_derivatives_stay_with_their_stage():
    def loss(x):
        return jnp.sum(two_layers(x))

    _, profile = found(jax.grad(loss), X)
    names = [s.name for s, _ in profile.steps() if s.name.startswith("IPU")]
    assert "IPU 1 to IPU 0" in names  # the cotangent goes back


def test_unmarked_operations_follow_their_operands_and_loops_have_one_ipu():
    def fn(x):
        with on_ipu(0):
            y = jnp.exp(x)

        def body(_, c):
            with on_ipu(1):
                return c * y

        return jax.lax.fori_loop(0, 3, body, y) - 2.0

    _, profile = found(fn, X)
    where = {s.name: s.ipu for s, _ in profile.steps() if s.kind == "compute"}
    assert where["exp"] == 0
    assert {ipu for name, ipu in where.items() if name != "exp"} == {1}
    assert sum(n for s, n in profile.steps() if s.name == "IPU 0 to IPU 1") <= 2


def test_without_marks_several_ipus_share_every_layer():
    _, profile = found(lambda x: x @ x, X)
    assert profile.pipeline() is None
    assert profile.to_dict()["pipeline"] is None


def test_errors():
    with pytest.raises(ValueError, match=r"stage on IPU 1.*num_ipus=1"):
        found(two_layers, X, ipus=1)
    with pytest.raises(ValueError, match="numbered from 0"), on_ipu(-1):
        pass
    with pytest.raises(ValueError, match="bow-pod4 has 4 IPUs"):
        simulate(two_layers, target("bow-pod4"), 2, replicas=3)
    with pytest.raises(ValueError, match="micro_batches=0"):
        found(two_layers, X)[1].pipeline(0)


class TestSchedule:
    even = Pipeline((Cycles(10.0, 20.0),) * 4, 16)

    def test_equal_stages_have_gpipe_s_bubble(self):
        assert self.even.cycles == Cycles(190.0, 380.0)
        assert self.even.bubble == pytest.approx(3 / 19)
        assert self.even.phases == {"warm_up": 30.0, "full": 130.0, "drain": 30.0}

    def test_the_slowest_stage_sets_the_pace(self):
        found = Pipeline((Cycles(1.0, 1.0), Cycles(5.0, 5.0), Cycles(2.0, 2.0)), 10)
        assert found.cycles.low == 8 + 9 * 5
        assert max(b.end for b in found.bars) == found.cycles.low

    def test_a_stage_does_one_thing_at_a_time_and_in_order(self):
        for ipu in range(4):
            bars = [b for b in self.even.bars if b.ipu == ipu]
            assert all(a.end <= b.start for a, b in itertools.pairwise(bars))
        for k in range(16):
            bars = [b for b in self.even.bars if b.micro_batch == k]
            assert all(a.end <= b.start for a, b in itertools.pairwise(bars))

    def test_one_micro_batch_waits_for_itself(self):
        alone = Pipeline(self.even.stages, 1)
        assert alone.cycles.low == 40.0
        assert alone.bubble == pytest.approx(0.75)


def test_the_page_has_the_chart(tmp_path):
    _, profile = found(two_layers, X)
    profile.to_html(tmp_path / "page.html")
    assert '"pipeline": {"micro_batches": 16' in (tmp_path / "page.html").read_text()
    assert "Bubble" in profile.summary()

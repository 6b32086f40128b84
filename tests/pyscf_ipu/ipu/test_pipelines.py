"""Stages on IPUs of their own: where operations go, what crosses, how micro-batches follow."""

import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyscf_ipu.ipu import BOW, MicroBatches, on_ipu, simulate, target
from pyscf_ipu.ipu.findings.pipelines import STASH, Pipeline, StageCycles
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
    assert stages[0].forward.low == first
    assert stages[1].forward.low == second + link.cycles.low + 600
    assert profile.cycles.low == sum(s.forward.low for s in stages)
    assert all(s.backward.high == s.update.high == 0.0 for s in stages)


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


def inference(*cycles):
    return tuple(StageCycles(Cycles(c, 2.0 * c)) for c in cycles)


class TestForwardOnly:
    even = Pipeline(inference(*[10.0] * 4), MicroBatches(16))

    def test_equal_stages_have_gpipe_s_bubble(self):
        assert self.even.cycles == Cycles(190.0, 380.0)
        assert self.even.bubble == pytest.approx(3 / 19)
        phases = {"warm_up": 30.0, "full": 130.0, "drain": 30.0, "update": 0.0}
        assert self.even.phases == phases

    def test_the_slowest_stage_sets_the_pace(self):
        uneven = Pipeline(inference(1.0, 5.0, 2.0), MicroBatches(10))
        assert uneven.cycles.low == 8 + 9 * 5
        assert max(b.end for b in uneven.bars) == uneven.cycles.low

    def test_between_two_stages_there_is_room_for_one(self):
        chart = Pipeline(inference(1.0, 5.0), MicroBatches(4)).bars
        first, second = ([b for b in chart if b.ipu == k] for k in range(2))
        assert all(a.start >= b.start for a, b in zip(first[1:], second, strict=False))

    def test_one_micro_batch_waits_for_itself(self):
        alone = Pipeline(self.even.stages, MicroBatches(1))
        assert alone.cycles.low == 40.0
        assert alone.bubble == pytest.approx(0.75)
        one_at_a_time = Pipeline(self.even.stages, MicroBatches(16, "sequential"))
        assert one_at_a_time.cycles.low == 16 * 40.0


orders = pytest.mark.parametrize("order", ["sequential", "grouped", "1f1b"])
times = st.floats(0.0, 1e7)


class TestTraining:
    @pytest.mark.parametrize("order", ["grouped", "1f1b"])
    @pytest.mark.parametrize(("p", "m"), [(1, 1), (2, 1), (3, 8), (4, 4), (5, 3), (8, 64)])
    def test_equal_stages_have_the_bubble_of_the_literature(self, order, p, m):
        """Huang et al. and Narayanan et al.: (p - 1) of (m + p - 1), whatever an update takes."""
        stage = StageCycles(Cycles(7.0, 9.0), Cycles(16.0, 31.0), Cycles(100.0, 100.0))
        chart = Pipeline((stage,) * p, MicroBatches(m, order))
        assert abs(chart.bubble - (p - 1) / (m + p - 1)) < 1e-12
        assert chart.cycles == Cycles((m + p - 1) * 23.0 + 100.0, (m + p - 1) * 40.0 + 100.0)
        assert chart.phases["update"] == 100.0

    def test_one_at_a_time_takes_the_sum(self):
        stage = StageCycles(Cycles(7.0, 9.0), Cycles(16.0, 31.0))
        chart = Pipeline((stage,) * 3, MicroBatches(5, "sequential"))
        assert chart.cycles.low == 5 * 3 * 23.0
        assert chart.bubble == pytest.approx(2 / 3)

    @orders
    @given(st.lists(st.tuples(times, times, times), min_size=1, max_size=6), st.integers(1, 9))
    def test_every_order_is_possible(self, order, stages, m):
        cycles = [[Cycles(x, 2.0 * x) for x in stage] for stage in stages]
        pipe = Pipeline(tuple(StageCycles(*stage) for stage in cycles), MicroBatches(m, order))
        last, bars = len(stages) - 1, pipe.bars
        done = {(b.kind, b.ipu, b.micro_batch): b for b in bars}
        assert len(done) == len(bars)
        passes = [b for b in bars if b.kind != "update"]
        trained = any(b for _, b, _ in stages)
        assert len(passes) == (1 + trained) * m * len(stages)
        for bar in passes:
            kind, k, i = bar.kind, bar.ipu, bar.micro_batch
            needs = [(kind, k - 1, i)] * (kind == "forward" and k > 0)
            if kind == "backward":
                needs = [("forward", k, i), *[(kind, k + 1, i)] * (k < last)]
            assert all(done[x].end <= bar.start for x in needs)
            assert bar.end == bar.start + getattr(pipe.stages[k], kind).low
        for bar in bars[len(passes) :]:
            assert bar.start == max(b.end for b in passes)
        for k in range(len(stages)):
            own = sorted((b for b in bars if b.ipu == k), key=lambda b: (b.start, b.end))
            assert all(a.end <= b.start for a, b in itertools.pairwise(own))
            events = [(b.end, 1, -1) for b in own if b.kind == "backward"]
            events += [(b.start, 2, 1) for b in own if b.kind == "forward"]
            depths = itertools.accumulate(x for _, _, x in sorted(events))
            assert (
                not trained or not all(b.end > b.start for b in own) or max(depths) == pipe.depth(k)
            )
        if order == "sequential":
            assert pipe.cycles.low <= m * sum(f + b for f, b, _ in stages) * (1 + 1e-9) + max(
                u for _, _, u in stages
            )

    @pytest.mark.parametrize("order", ["grouped", "1f1b"])
    def test_of_uneven_stages_the_slowest_sets_the_pace(self, order):
        uneven = [StageCycles(Cycles(f, f), Cycles(b, b)) for f, b in ((1.0, 2.0), (5.0, 9.0))]
        assert Pipeline(tuple(uneven), MicroBatches(6, order)).cycles.low == 1.0 + 6 * 14.0 + 2.0


W = [np.ones((256, 256), np.float32)] * 3


def update(weights, xs):
    """A training step: three stages, a micro-batch after another, then gradient descent."""

    def loss(weights, x):
        for k, w in enumerate(weights):
            with on_ipu(k):
                x = jnp.tanh(x @ w)
        return jnp.sum(x)

    def one(total, x):
        return jax.tree.map(jnp.add, total, jax.grad(loss)(weights, x)), None

    zero = jax.tree.map(jnp.zeros_like, weights)
    gradient, _ = jax.lax.scan(one, zero, xs)
    return jax.tree.map(lambda w, g: w - 1e-3 * g, weights, gradient)


@pytest.fixture(scope="module")
def profile():
    return simulate(update, BOW, 3)(W, np.ones((8, 512, 256), np.float32))[1]


class TestTracedTraining:
    """What the jaxpr of a training step says of its stages."""

    def test_a_step_has_forward_backward_and_one_update(self, profile):
        pipe = profile.pipeline()
        assert pipe.micro_batches == MicroBatches(8)
        assert profile.rounds == (1, 8)
        for stage in pipe.stages:
            assert 0.0 < stage.update.low < min(stage.forward.low, stage.backward.low)
        total = sum(8 * s.both.low + s.update.low for s in pipe.stages)
        assert total == pytest.approx(profile.cycles.low, rel=1e-12)

    def test_activations_go_forward_and_cotangents_back(self, profile):
        where = {(s.phase, s.name) for s, _ in profile.steps() if s.crosses}
        assert {("forward", "IPU 0 to IPU 1"), ("forward", "IPU 1 to IPU 2")} <= where
        assert {("backward", "IPU 2 to IPU 1"), ("backward", "IPU 1 to IPU 0")} <= where

    def test_memory_holds_as_many_micro_batches_as_are_on_their_way(self, profile):
        def stash(*how):
            memory = profile.scheduled(MicroBatches(*how)).memory
            return memory.by_category[STASH].reshape(3, -1).sum(1).tolist()

        one = profile.memory.stashed.reshape(2, 3, -1).sum(2)
        assert (one[0, 1:] >= 2 * 512 * 256 * 4).all()  # what came in, and its tanh
        assert one[1].tolist() == [512 * 256 * 4] * 3
        assert stash(8, "sequential") == [0, 0, 0]
        assert stash(8, "grouped") == (7 * one[0]).tolist()
        assert stash(8, "1f1b") == [2 * one[0, 0], one[0, 1], 0]
        assert stash(2, "1f1b") == [one[0, 0], one[0, 1], 0]
        assert stash(8, "grouped", True) == (7 * one[1]).tolist()
        again = profile.scheduled(MicroBatches(8, "grouped")).scheduled(MicroBatches(8))
        assert again.memory.max_tile_bytes == profile.memory.max_tile_bytes

    def test_recomputing_adds_the_forward_pass_without_what_came_in(self, profile):
        plain = profile.pipeline().stages
        again = profile.scheduled(MicroBatches(8, "1f1b", True)).pipeline().stages
        links = [0.0] * 3
        for step, n in profile.steps():
            links[step.ipu] += step.cycles.low * n / 8 * (step.crosses and step.phase == "forward")
        for a, b, link in zip(plain, again, links, strict=True):
            assert b.backward.low == pytest.approx(a.both.low - link)
            assert b.forward == a.forward

    def test_a_single_micro_batch_needs_no_loop(self):
        _, alone = simulate(update, BOW, 3)(W, np.ones((1, 512, 256), np.float32))
        assert alone.pipeline().micro_batches.count == 1
        assert alone.pipeline().bubble > 0.6
        assert any(s.phase == "update" for s, _ in alone.steps())

    def test_page_trace_and_text_show_them(self, profile, tmp_path):
        profile.to_html(tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        assert '"order": "1f1b"' in page
        assert '"update"]' in page
        profile.to_trace(tmp_path / "trace.json")
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        names = [e["name"] for e in events if e.get("cat") == "pipeline"]
        assert len(names) == 3 * (2 * 8 + 1)
        assert {"forward 0", "backward 7", "update"} <= set(names)
        assert "8 micro-batches, 1f1b" in profile.summary()


def test_the_page_has_the_chart(tmp_path):
    _, profile = found(two_layers, X)
    profile.to_html(tmp_path / "page.html")
    assert '"pipeline": {"micro_batches": 16' in (tmp_path / "page.html").read_text()
    assert "Bubble" in profile.summary()

"""The price of a training: the keys of its figures, and how they hang together."""

import functools
import json
from dataclasses import replace

import numpy as np
import pytest

from pyscf_ipu.ipu import target
from pyscf_ipu.ipu.chip.collectives import collective_cycles
from pyscf_ipu.ipu.chip.quantity import unknown
from schnet.cli import main
from schnet.errors import UserError
from schnet.network.config import ModelConfig, Optimizer, Schedule
from schnet.training.costs.layout import PodLayout
from schnet.training.costs.training_price import packs_of, price_training

pytestmark = pytest.mark.slow

SMALL = ModelConfig(width=32, filters=32, interactions=2, gaussians=16)
SIZES = np.array([18, 20, 15, 21] * 16)


def priced(name, accumulation=1):
    packs = packs_of(SIZES, SMALL, 8)
    schedule = Schedule(accumulation=accumulation)
    return price_training(SMALL, Optimizer(), packs, target(name), schedule)


def test_sixteen_replicas_learn_from_sixteen_times_as_much_and_pay_the_all_reduce():
    one, sixteen = priced("bow"), priced("bow-pod16")
    assert sixteen.molecules == 16 * one.molecules
    assert one.cycles["all_reduce"].low == 0
    for part in ("forward", "backward"):
        assert sixteen.cycles[part] == one.cycles[part]
    assert sixteen.cycles["update"].low == one.cycles["update"].low
    (step,) = [s for s, _ in sixteen.profile.steps() if s.name == "psum"]
    expected = collective_cycles(target("bow-pod16"), "psum", step.moved_bytes, 16)
    assert sixteen.cycles["all_reduce"].low == expected.low + 600
    assert sixteen.molecules_per_second.low <= sixteen.molecules_per_second.high
    assert sixteen.profile.unknown_ops == {}


def test_accumulation_shares_an_update_among_packs():
    one, two = priced("bow-pod4"), priced("bow-pod4", 2)
    assert two.cycles["all_reduce"].low == one.cycles["all_reduce"].low
    for part in ("forward", "backward"):
        assert 1.8 < two.cycles[part].low / one.cycles[part].low < 2.2


FOUR = replace(SMALL, interactions=4)
PACKS = packs_of(SIZES, FOUR, 8)
TWO_STAGES = PodLayout(stages=2)


@functools.cache
def staged(target_name="bow-pod16", packs=6, precision="float32", **layout):
    schedule = Schedule(accumulation=packs, precision=precision)
    return price_training(
        FOUR, Optimizer(), PACKS, target(target_name), schedule, PodLayout(**layout)
    )


@pytest.mark.long
def test_two_stages_share_the_work_and_only_activations_travel():
    whole, halves = staged(stages=1), staged(stages=2)
    assert halves.profile.replicas == 8
    assert halves.molecules == whole.molecules / 2
    pipe = halves.profile.pipeline()
    for part in ("forward", "backward"):
        alone = whole.cycles[part].low / 6
        each = [getattr(stage, part).low for stage in pipe.stages]
        assert 0.9 * alone < sum(each) < 2.0 * alone
        assert max(each) < 0.9 * alone
    shape = PACKS.shape
    largest = 4 * max(shape.atoms * FOUR.width, shape.pairs)
    moved = [s.moved_bytes for s, _ in halves.profile.steps() if s.crosses]
    assert max(moved) == largest  # the features of all atoms, or the distances of all pairs
    assert "backward" in {s.phase for s, _ in halves.profile.steps() if s.crosses}
    updates = [s for s, n in halves.profile.steps() if s.phase == "update" and n > 1]
    assert updates == []
    assert {s.phase for s, _ in halves.profile.steps() if s.stage == "all_reduce"} == {"update"}
    assert {s.ipu for s, _ in halves.profile.steps() if s.stage == "all_reduce"} == {0, 1}
    assert halves.seconds.low == pytest.approx(pipe.cycles.low / halves.profile.clock_hz)


@pytest.mark.long
def test_orders_of_a_pipeline_trade_time_for_memory():
    orders = {o: staged(stages=4, schedule=o) for o in ("sequential", "grouped")}
    orders["1f1b"] = staged(stages=4)
    assert orders["1f1b"].to_dict()["pipeline"]["order"] == "1f1b"
    times = {o: x.device_seconds.low for o, x in orders.items()}
    fullest = {o: x.profile.memory.max_tile_bytes for o, x in orders.items()}
    assert times["sequential"] > 1.5 * times["1f1b"]
    assert fullest["sequential"] < fullest["1f1b"] < fullest["grouped"]
    again = staged(stages=4, schedule="grouped", recompute=True)
    assert again.profile.memory.max_tile_bytes < fullest["grouped"]
    assert again.device_seconds.low > times["grouped"]


@pytest.mark.parametrize("stages", [pytest.param(1, marks=pytest.mark.long), 2])
def test_moments_off_the_chip_travel_once_for_every_update(stages):
    here, away = staged(stages=stages), staged(stages=stages, offload_moments=True)
    memory = away.profile.memory
    variables = (x.by_category["Variables"] for x in (memory, here.profile.memory))
    assert next(variables).sum() < next(variables).sum()
    weights = memory.streaming_bytes / 2 / (4 // stages)
    moved = {
        name: sum(s.moved_bytes * n for s, n in away.profile.steps() if s.name.startswith(name))
        for name in ("load from streaming", "store to streaming")
    }
    assert set(moved.values()) == {2 * weights}
    assert weights % 4 == 0
    assert weights > 4 * FOUR.width**2 * FOUR.interactions
    assert away.cycles["forward"] == here.cycles["forward"]
    assert away.cycles["update"].low > here.cycles["update"].low
    slow = replace(target("bow-pod16"), streaming_bytes_per_second=unknown("streaming", "B/s"))
    with pytest.raises(ValueError, match="streaming"):
        price_training(FOUR, Optimizer(), PACKS, slow, layout=PodLayout(offload_moments=True))


@pytest.mark.slow
def test_ipus_that_make_no_replica_are_idle_and_too_many_stages_refused():
    three = staged(stages=3)
    assert (three.profile.replicas, three.idle_ipus) == (5, 1)
    assert three.to_dict()["idle_ipus"] == 1
    chip = staged("bow", stages=3)
    assert (chip.profile.replicas, chip.idle_ipus) == (1, 0)
    with pytest.raises(UserError, match="forces"):
        price_training(
            FOUR, Optimizer(), replace(PACKS, forces=True), target("bow"), layout=TWO_STAGES
        )
    five = replace(FOUR, interactions=5)
    with pytest.raises(UserError, match="--stages 5: bow-pod4 has 4 IPUs"):
        price_training(five, Optimizer(), PACKS, target("bow-pod4"), layout=PodLayout(stages=5))


@pytest.mark.long
def test_float16_and_smaller_products_can_be_stages_too():
    half, full = (staged("bow", 2, x, stages=2) for x in ("float16", "float32"))
    assert half.cycles["forward"].low < full.cycles["forward"].low
    rounded = Schedule(precision="float16", stochastic_rounding=True)
    with_keys = price_training(FOUR, Optimizer(), PACKS, target("bow"), rounded)
    for price in (half, full, with_keys):
        assert price.profile.unknown_ops == {}
    small = staged("bow", 2, stages=2, available_memory_proportion=1e-3)
    assert small.cycles["forward"].low > full.cycles["forward"].low


def test_predictions_go_forward_only():
    alone, halves = (staged(packs=8, inference=True, stages=k) for k in (1, 2))
    assert set(alone.cycles) == {"forward"}
    assert alone.molecules == 16 * 8 * PACKS.molecules == 2 * halves.molecules
    assert alone.molecules_per_second.low > priced("bow-pod16").molecules_per_second.high
    pipe = halves.profile.pipeline()
    assert {b.kind for b in pipe.bars} == {"forward"}
    forward = [s.forward.low for s in pipe.stages]
    assert pipe.cycles.low == pytest.approx(sum(forward) + 7 * max(forward))
    tables = 2 * 4 * FOUR.gaussians * 32 * FOUR.filters
    assert max(s.moved_bytes for s, _ in halves.profile.steps() if s.crosses) < tables


def test_the_command_writes_its_figures_and_a_page(tmp_path, capsys):
    figures, page = tmp_path / "out.json", tmp_path / "page.html"
    options = ["--preset", "small", "--ipu", "bow-pod16", "--json", str(figures)]
    assert main(["price", *options, "--html", str(page)]) == 0
    found = json.loads(figures.read_text())
    assert set(found) == {
        "target", "replicas", "molecules_per_second", "cycles", "memory", "unknown_ops",
        "idle_ipus", "pipeline",
    }  # fmt: skip
    assert set(found["molecules_per_second"]) == {"low", "high"}
    cycles = found["cycles"]
    assert set(cycles) == {"forward_backward", "forward", "backward", "update", "all_reduce"}
    assert all(v > 0 for v in cycles.values())
    assert cycles["forward_backward"] == cycles["forward"] + cycles["backward"]
    assert (found["target"], found["replicas"]) == ("bow-pod16", 16)
    assert found["unknown_ops"] == {}
    assert "16 replicas" in page.read_text()
    assert "molecules/s" in capsys.readouterr().out


@pytest.mark.slow
def test_the_command_prices_a_pipeline(tmp_path, capsys):
    figures, page = tmp_path / "out.json", tmp_path / "page.html"
    options = "--preset small --stages 3 --accumulation 4 --schedule grouped --recompute"
    options += " --offload-moments --available-memory-proportion 0.5"
    files = ["--json", str(figures), "--html", str(page)]
    assert main(["price", *options.split(), *files]) == 0
    text, pipe = capsys.readouterr().out, json.loads(figures.read_text())["pipeline"]
    assert (pipe["micro_batches"], pipe["order"], pipe["recompute"]) == (4, "grouped", True)
    assert len(pipe["stages"]) == 3
    assert "bars" not in pipe
    assert "4 micro-batches, grouped, recomputed" in text
    assert "too few for one more replica of 3" in text
    assert "bytes of a machine" in text
    assert '"backward"]' in page.read_text()
    assert main(["price", "--preset", "small", "--inference", "--stages", "3"]) == 0
    assert "1 micro-batches" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--ipu", "pod17"], "bow-pod16"),
        (["--accumulation", "0"], "--accumulation 0"),
        (["--stages", "6"], "give 1 to 5"),
        (["--inference", "--precision", "float16"], "--precision"),
    ],
)
def test_what_cannot_be_priced_is_one_sentence(capsys, options, says):
    assert main(["price", *options]) == 2
    assert says in capsys.readouterr().err

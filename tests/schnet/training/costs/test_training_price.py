"""The price of a training: the keys of its figures, and how they hang together."""

import json

import numpy as np
import pytest

from pyscf_ipu.ipu import target
from pyscf_ipu.ipu.chip.collectives import collective_cycles
from schnet.cli import main
from schnet.network.config import ModelConfig, Optimizer, Schedule
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
    assert "all_reduce" not in one.cycles
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


@pytest.mark.parametrize(
    ("options", "says"),
    [(["--ipu", "pod17"], "bow-pod16"), (["--accumulation", "0"], "--accumulation 0")],
)
def test_what_cannot_be_priced_is_one_sentence(capsys, options, says):
    assert main(["price", *options]) == 2
    assert says in capsys.readouterr().err

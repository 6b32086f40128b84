"""A Profile's sums, and what its JSON promises."""

import json

import numpy as np
import pytest
from sample_profile import OVERFLOWING_TILE, bow_profile, compute, scf_profile

from pyscf_ipu.ipu.findings.totals import program_counts, shares, vertex_totals
from pyscf_ipu.ipu.profile.data import Cycles, Repeat


def test_json_has_what_readers_need(tmp_path):
    profile = scf_profile()
    text = profile.to_json(tmp_path / "profile.json")
    assert (tmp_path / "profile.json").read_text() == text
    found = json.loads(text)
    assert found == json.loads(json.dumps(profile.to_dict()))
    assert found["energy_hartree"] == -76.026789
    assert found["cycles"]["total"] == profile.cycles.low > 0
    assert found["cycles"]["by_stage"]["eri"]["low"] > 0
    assert found["seconds"]["low"] == pytest.approx(profile.cycles.low / 1.33e9)
    assert found["memory"]["max_tile_bytes"] == profile.memory.max_tile_bytes
    assert found["memory"]["overflowing_tiles"] == [OVERFLOWING_TILE]
    assert set(found["tile_balance"]) == {"all", *found["cycles"]["by_stage"]}
    assert found["unknown_ops"] == {"sort": 20, "cumsum": 1}
    assert found["cycles"]["is_lower_bound"] is True
    assert set(found["provenance"]) == {"counted", "estimated", "formula", "measured"}


@pytest.mark.parametrize("attribute", ["kind", "stage", "name", "how"])
def test_every_breakdown_adds_up_to_the_total(attribute):
    profile = scf_profile()
    parts = profile.total_by(attribute)
    assert sum(c.low for c in parts.values()) == pytest.approx(profile.cycles.low, rel=1e-12)
    assert sum(c.high for c in parts.values()) == pytest.approx(profile.cycles.high, rel=1e-12)
    lows = [c.low for c in parts.values()]
    assert lows == sorted(lows, reverse=True)


def test_loops_multiply():
    step = compute("v", "s", 3, 5)
    program = (Repeat(4, (step, Repeat(10, (step,)))), step)
    profile = scf_profile(program=program)
    assert profile.cycles == Cycles(3.0 * 45, 5.0 * 45)
    counts = program_counts(profile)
    assert (counts["compute sets"].written, counts["compute sets"].executed) == (3, 45)
    assert (counts["loops"].written, counts["loops"].executed) == (2, 5)
    assert (counts["iterations"].written, counts["iterations"].executed) == (14, 44)


def test_a_mean_number_of_turns_multiplies_too():
    profile = scf_profile(program=(Repeat(4, (Repeat(2.5, (compute("v", "s", 3, 5),)),)),))
    assert profile.cycles == Cycles(30.0, 50.0)
    assert program_counts(profile)["compute sets"].executed == 10


def test_balance_weighs_by_cycles_and_keeps_stages_apart():
    program = (
        compute("a", "x", 300, 300, balance=1.0),
        compute("b", "x", 100, 100, balance=0.2),
        compute("c", "", 400, 400, balance=0.5),
    )
    profile = scf_profile(program=program)
    assert profile.balance("x") == pytest.approx(0.8)
    assert profile.balance() == pytest.approx(0.65)
    assert profile.balance_by_stage() == pytest.approx({"other": 0.5, "x": 0.8})
    assert scf_profile(program=()).balance() == 1.0


def test_vertex_totals():
    totals = {v.name: v for v in vertex_totals(scf_profile())}
    integrals = totals["eri_sp_sp"]
    assert integrals.cycles == Cycles(20 * 2.4e5, 20 * 9.6e5)
    assert (integrals.runs, integrals.instances, integrals.how) == (20, 20 * 6 * 1472, "counted")
    assert totals["jacobi_rows"].runs == 20 * 8 * 23
    assert sum(v.cycles.low for v in totals.values()) == pytest.approx(
        scf_profile().total_by("kind")["compute"].low
    )
    both = scf_profile(program=(compute("v", "", 1, 1, how="counted"), compute("v", "", 1, 1)))
    assert vertex_totals(both)[0].how == "counted+formula"


def test_shares_of_nothing_are_zero():
    assert shares({"eri": Cycles(0.0, 0.0)}) == {"eri": 0.0}


def test_memory_overflows_tile_by_tile():
    memory = bow_profile().memory
    assert memory.per_tile.shape == (1472,)
    assert memory.max_tile_bytes == memory.per_tile[OVERFLOWING_TILE] > memory.limit_bytes
    np.testing.assert_array_equal(memory.overflowing, [OVERFLOWING_TILE])

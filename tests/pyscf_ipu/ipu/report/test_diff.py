"""Comparing two profiles."""

import numpy as np
import pytest
from sample_profile import bow_profile, scf_profile

from pyscf_ipu.ipu.profile.regions import Memory
from pyscf_ipu.ipu.report.diff import compare, diff


def rows(found):
    return {row.name: row for row in found}


def test_stages_of_either_profile_are_compared():
    a, b = scf_profile(), bow_profile()
    low = rows(compare(a, b).low)
    assert low["eri"].ratio == pytest.approx(0.5)
    assert low["xc"].ratio == 1.0
    assert (low["diis"].b, low["diis"].ratio) == (0.0, 0.0)
    assert rows(compare(b, a).low)["diis"].ratio is None
    assert list(low)[-1] == "total"
    for side in ("a", "b"):
        parts = [getattr(row, side) for name, row in low.items() if name != "total"]
        assert sum(parts) == pytest.approx(getattr(low["total"], side))


def test_times_follow_the_clock():
    seconds = rows(compare(scf_profile(), scf_profile(clock_hz=2.66e9)).seconds)
    assert seconds["device, low"].ratio == pytest.approx(0.5)
    assert seconds["host exchange, about"].ratio == 1.0


def test_categories_that_only_one_profile_has():
    one = np.full(1472, 10, dtype=np.int64)
    other = Memory(100, {"control code": one}, one, (), ())
    memory = rows(compare(scf_profile(), scf_profile(memory=other)).memory)
    assert (memory["control code"].a, memory["control code"].b) == (0.0, 10.0)
    assert memory["stack"].b == 0.0
    assert memory["total"].b == 10.0


def test_table():
    text = diff(scf_profile(), bow_profile())
    lines = text.splitlines()
    assert max(len(x) for x in lines) <= 100
    assert "  A  gc200, 1 IPU" in lines
    assert "  B  bow, 1 IPU" in lines
    eri = next(x.split() for x in lines if x.startswith("  eri "))
    assert eri == ["eri", *_cells(scf_profile()), *_cells(bow_profile()), eri[-1]]
    assert eri[-1] == "0.500"
    assert lines[-1].split() == ["A", "cumsum,", "sort"]
    assert "lower bounds" not in diff(bow_profile(), bow_profile())
    reverse = diff(bow_profile(), scf_profile()).splitlines()
    assert next(x for x in reverse if "diis" in x)[-1] == "-"


def _cells(profile):
    cycles = profile.total_by("stage")["eri"]
    return f"{cycles.low:,.0f}", f"{cycles.high:,.0f}"

"""Work units: every line in one unit, every unit in one share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qm1b.errors import UserError
from qm1b.folder.manifest.work_units import (
    MOST_PARTS,
    MOST_ROWS,
    UNIT_SECONDS,
    Share,
    WorkPlan,
    cut,
)


@given(st.integers(1, 300), st.integers(1, 20), st.integers(1, 9))
def test_shares_are_a_partition_of_the_lines(n_lines, unit_lines, count):
    plans = [WorkPlan(n_lines, unit_lines, Share(i, count)) for i in range(count)]
    owner = {unit: plan for plan in plans for unit in plan.units}
    found = dict.fromkeys(plans, 0)
    for line in range(1, n_lines + 1):
        found[owner[plans[0].unit_of(line)]] += 1
    assert all(plan.lines == n for plan, n in found.items())
    assert sum(len(plan.units) for plan in plans) == len(owner)
    assert sum(plans[0].lines_of(unit) for unit in owner) == n_lines


def test_share_from_text():
    assert Share.parse("3/16") == Share(3, 16)
    assert str(Share(3, 16)) == "3/16"
    for wrong in ("", "3", "16/16", "-1/4", "1/0", "a/b", "1/2/3", "1.0/2"):
        with pytest.raises(UserError, match="0 <= i < n"):
            Share.parse(wrong)


SECONDS = st.lists(st.floats(0.0, 1e5), min_size=1, max_size=99)


@given(SECONDS, st.integers(1, 40), st.integers(1, 2000), st.sampled_from([1, 2, 8]))
def test_the_parts_of_a_cut_are_the_input(line_seconds, repeats, conformers, stride):
    n_lines = len(line_seconds) * repeats
    parts = cut(line_seconds, n_lines, conformers, stride=stride)
    assert sum(lines for lines, _ in parts) == n_lines
    assert len(parts) <= MOST_PARTS
    for lines, each in parts:
        assert lines >= 1
        assert each == stride or each * conformers <= MOST_ROWS
        assert each % stride == 0
    plan = WorkPlan(n_lines, parts)
    ends = [plan.last_line(unit) for unit in plan.units]
    assert ends[-1] == n_lines
    assert all(end % stride == 0 for end in ends[:-1])


@pytest.mark.parametrize("seconds", [0.1, 1.0, 7.0, 50.0, 119.0])
def test_a_unit_takes_about_two_minutes(seconds):
    (part,) = cut([seconds] * 100, 5000, 1)
    assert UNIT_SECONDS / 1.5 <= part[1] * seconds <= 1.5 * UNIT_SECONDS


def test_sorted_inputs_have_shorter_units_at_their_end():
    line_seconds = [0.01 * 1.02**k for k in range(1000)]
    plan = WorkPlan(1000, cut(line_seconds, 1000, 1))
    costs = []
    for unit in plan.units:
        last = plan.last_line(unit)
        costs.append(sum(line_seconds[last - plan.lines_of(unit) : last]))
    dear = max(line_seconds)
    assert max(costs) < 2 * UNIT_SECONDS + dear
    assert plan.lines_of(0) > 100 > plan.lines_of(plan.units[-2])


@given(SECONDS, st.integers(1, 9), st.integers(1, 30))
def test_shares_of_a_cut_are_a_partition_of_the_lines(line_seconds, count, repeats):
    n_lines = len(line_seconds) * repeats
    parts = cut(line_seconds, n_lines, 4)
    plans = [WorkPlan(n_lines, parts, Share(i, count)) for i in range(count)]
    assert sum(plan.lines for plan in plans) == n_lines
    owner = {unit: plan for plan in plans for unit in plan.units}
    lines = [plans[0].unit_of(line) for line in range(1, n_lines + 1)]
    assert lines == sorted(lines)
    assert {*lines} == {*owner}
    assert all(plans[0].lines_of(unit) == lines.count(unit) for unit in owner)

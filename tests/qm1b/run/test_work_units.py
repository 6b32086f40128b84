"""Work units: every line in one unit, every unit in one share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qm1b.errors import UserError
from qm1b.folder.manifest.work_units import Share, WorkPlan


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
